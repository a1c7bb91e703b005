//! The coordinator, which plans statements and divides them among workers.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::error::{DataFusionError, Result};
use datafusion_distributed::{ChannelResolver, WorkerResolver};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::options::CoordinatorOptions;

/// The most queries that a coordinator executes at once, whatever its options say.
const QUERIES_MAX: u32 = 1 << 20;

/// The workers that can be given tasks.
#[async_trait]
pub trait WorkerList: WorkerResolver {
    /// Finds out which workers are there.
    async fn refresh(&self);
}

/// Plans statements, and divides them among workers.
#[derive(Clone)]
pub struct Coordinator {
    pub(crate) workers: Arc<dyn WorkerList>,
    pub(crate) options: CoordinatorOptions,
    pub(crate) channels: Arc<dyn ChannelResolver + Send + Sync>,
    /// The number of queries that it executes at once, so that its own do not make workers busy.
    pub(crate) queries_max: u32,
    permits: Arc<Semaphore>,
}

impl Coordinator {
    /// The coordinator for the workers of a list, with connections to them.
    #[must_use]
    pub fn new(
        options: CoordinatorOptions,
        workers: Arc<dyn WorkerList>,
        channels: Arc<dyn ChannelResolver + Send + Sync>,
    ) -> Self {
        let queries_max = u32::try_from(options.queries_max).unwrap_or(u32::MAX);
        let queries_max = queries_max.clamp(1, QUERIES_MAX);
        let permits = Arc::new(Semaphore::new(queries_max as usize));
        Self { workers, options, channels, queries_max, permits }
    }

    /// Waits for the right to execute this many queries at once.
    pub(crate) async fn acquire(&self, count: u32) -> Result<OwnedSemaphorePermit> {
        let permits = Arc::clone(&self.permits).acquire_many_owned(count).await;
        permits.map_err(|error| DataFusionError::External(error.into()))
    }

    /// Whether it executes other queries than that of the caller.
    pub(crate) fn has_other_queries(&self) -> bool {
        self.permits.available_permits() + 1 < self.queries_max as usize
    }
}

impl fmt::Debug for Coordinator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coordinator").field("options", &self.options).finish_non_exhaustive()
    }
}
