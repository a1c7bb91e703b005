//! How statements are divided, and among which workers: extensions of the session that plans one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::SessionConfig;
use datafusion_distributed::WorkerResolver;
use url::Url;

/// How a coordinator divides statements.
#[derive(Clone, Debug)]
pub struct CoordinatorOptions {
    /// Scans of at least this many stored bytes are divided among all workers. Smaller ones are executed by one. The
    /// default is 64 MB.
    pub divided_bytes_min: u64,
    /// The most distributed queries that each worker, and this coordinator, execute at the same time. The default is 16.
    pub queries_max: usize,
    /// The longest time that a query waits while workers, or this coordinator, execute as many as they may. The default is a
    /// minute.
    pub busy_timeout: Duration,
    /// The longest time that a query for which memory was short waits to be executed alone, while later ones wait behind it. Then it
    /// is tried beside those that still run. The default is 20 s.
    pub alone_timeout: Duration,
    /// The scalar functions that workers know, by name. Queries that call others are not distributed. `None`: functions are not
    /// checked.
    pub functions: Option<Arc<HashMap<String, Arc<ScalarUDF>>>>,
}

impl Default for CoordinatorOptions {
    fn default() -> Self {
        Self {
            divided_bytes_min: 64_000_000,
            queries_max: 16,
            busy_timeout: Duration::from_secs(60),
            alone_timeout: Duration::from_secs(20),
            functions: None,
        }
    }
}

/// The workers of one statement. They stay the same while it is planned and executed.
#[derive(Debug)]
pub(crate) struct Workers(pub(crate) Vec<Url>);

impl WorkerResolver for Workers {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(self.0.clone())
    }
}

/// The workers of the statement that a session plans.
pub(crate) fn workers_of(config: &SessionConfig) -> Arc<Workers> {
    config.get_extension::<Workers>().expect("the session of a statement has its workers")
}

/// How the statement that a session plans is divided.
pub(crate) fn options_of(config: &SessionConfig) -> Arc<CoordinatorOptions> {
    config.get_extension::<CoordinatorOptions>().unwrap_or_default()
}
