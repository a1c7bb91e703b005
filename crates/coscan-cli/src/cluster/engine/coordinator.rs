//! The coordinator of the engine without coscan, in this process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use coscan_distributed::Connections;
use coscan_storage::stores::StoreMetrics;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use datafusion_distributed::{
    ChannelResolver, DistributedExec, DistributedExt, SessionStateBuilderExt, WorkerResolver,
};
use url::Url;

use super::{environment, security};
use crate::Failure;
use crate::child::{Counts, SlowStore};

/// A session of the engine, whose queries its workers execute.
pub(in crate::cluster) struct Coordinator {
    context: SessionContext,
    reads: Arc<StoreMetrics>,
}

struct Workers(Vec<Url>);

impl WorkerResolver for Workers {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(self.0.clone())
    }
}

impl Coordinator {
    /// A session on these tables. Scans of at least `divided_bytes_min` bytes are divided among all workers.
    pub(in crate::cluster) async fn new(
        workers: &[SocketAddr],
        key: &Path,
        tables: &[(&'static str, PathBuf)],
        (store, memory_bytes): (&SlowStore, u64),
        divided_bytes_min: u64,
    ) -> Result<Self, Failure> {
        let reads = StoreMetrics::new();
        let urls = workers.iter().map(|address| Url::parse(&format!("http://{address}")));
        let urls = urls.collect::<Result<Vec<_>, _>>()?;
        let channels: Arc<dyn ChannelResolver + Send + Sync> =
            Arc::new(Connections::new(security(key)?));
        let mut state = SessionStateBuilder::new()
            .with_default_features()
            .with_runtime_env(environment(store, memory_bytes, &reads)?)
            .build();
        let partitions = urls.len() * state.config().target_partitions();
        let partition_bytes = usize::try_from(divided_bytes_min)? / partitions.max(1);
        state = SessionStateBuilder::new_from_existing(state)
            .with_distributed_planner()
            .with_distributed_worker_resolver(Workers(urls))
            .with_distributed_channel_resolver(channels)
            .with_distributed_file_scan_config_bytes_per_partition(partition_bytes.max(1))?
            .build();
        let context = SessionContext::new_with_state(state);
        for (name, path) in tables {
            let path = path.display().to_string();
            context.register_parquet(*name, path, ParquetReadOptions::default()).await?;
        }
        Ok(Self { context, reads })
    }

    /// The rows of a query.
    pub(in crate::cluster) async fn query(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        self.context.sql(sql).await?.collect().await
    }

    /// Whether workers execute a query.
    pub(in crate::cluster) async fn divides(&self, sql: &str) -> Result<bool> {
        let plan = self.context.sql(sql).await?.create_physical_plan().await?;
        Ok(plan.is::<DistributedExec>())
    }

    /// What this process has used.
    pub(in crate::cluster) fn counts(&self) -> Counts {
        Counts::of_process(&self.reads)
    }
}
