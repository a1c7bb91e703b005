//! The engine of distributed queries without coscan: its own workers, and scans of Parquet files as they come with it.

mod coordinator;
mod worker;

use std::path::Path;
use std::sync::Arc;

use coscan_distributed::Security;
use coscan_storage::stores::{DirectFileStore, StoreMetrics};
use coscan_transport::Credentials;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use url::Url;

pub(super) use self::coordinator::Coordinator;
pub(super) use self::worker::EngineWorker;
use crate::Failure;
use crate::child::SlowStore;

/// The environment of a process of the engine, whose files are in a slow store.
fn environment(
    store: &SlowStore,
    memory_bytes: u64,
    metrics: &Arc<StoreMetrics>,
) -> Result<Arc<RuntimeEnv>, Failure> {
    let pool = FairSpillPool::new(usize::try_from(memory_bytes)?);
    let environment = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(pool)).build_arc()?;
    let limited = store.limit(Arc::new(DirectFileStore::default()), metrics);
    environment.register_object_store(&Url::parse("file:///")?, limited);
    Ok(environment)
}

/// What processes with the same key trust each other by.
fn security(key: &Path) -> Result<Security, Failure> {
    Ok(Security::MutualTls(Credentials::Key(key.to_owned()).load()?))
}
