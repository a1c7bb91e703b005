//! The store of a server of a demonstration.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use coscan_runtime::units::parse_duration;
use coscan_storage::stores::{LimitedStore, Limits, MeteredStore, StoreMetrics};
use datafusion::object_store::ObjectStore;

use crate::sizes::parse_bytes;

/// The limits of a store, whose reads are counted.
#[derive(Clone, Debug, Args)]
pub(crate) struct SlowStore {
    /// Bytes per second that it gets from the store
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) store_bandwidth: Option<u64>,
    /// Time until the store answers a request
    #[arg(long, default_value = "0s", value_name = "TIME", value_parser = parse_duration)]
    pub(crate) store_latency: Duration,
}

impl SlowStore {
    /// A store with these limits.
    pub(crate) fn limit(
        &self,
        store: Arc<dyn ObjectStore>,
        metrics: &Arc<StoreMetrics>,
    ) -> Arc<dyn ObjectStore> {
        let limits = Limits { bytes_per_second: self.store_bandwidth, latency: self.store_latency };
        let limited = LimitedStore::new(store, limits);
        Arc::new(MeteredStore::new(Arc::new(limited), Arc::clone(metrics)))
    }
}
