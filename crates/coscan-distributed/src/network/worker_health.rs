//! All workers of a cluster, with what is known of their health.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use datafusion::error::{DataFusionError, Result};
use datafusion_distributed::{ChannelResolver, GetWorkerInfoRequest, WorkerResolver};
use futures::future::join_all;
use url::Url;

use super::connections::Connections;
use crate::coordinator::WorkerList;
use crate::session_header::version;

/// The interval at which workers are asked whether they are there.
const INTERVAL: Duration = Duration::from_secs(1);

/// The time for their answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// What is known of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It was not asked yet.
    Unknown,
    /// It answers, and has the version of this server.
    Healthy,
    /// It has another version.
    OtherVersion(String),
    /// It does not answer, or is leaving.
    Unreachable(String),
}

/// The workers of a cluster, each with its health. Statements are planned for those that are healthy.
#[derive(Debug)]
pub struct WorkerHealth {
    connections: Arc<Connections>,
    workers: RwLock<BTreeMap<Url, Health>>,
}

impl WorkerHealth {
    /// Workers that were not asked yet.
    #[must_use]
    pub fn new(connections: Arc<Connections>, workers: impl IntoIterator<Item = Url>) -> Self {
        let workers = workers.into_iter().map(|url| (url, Health::Unknown)).collect();
        Self { connections, workers: RwLock::new(workers) }
    }

    /// All workers, with what is known of them.
    pub fn all(&self) -> BTreeMap<Url, Health> {
        self.workers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks each worker, again and again. One that does not answer holds up no news of the others.
    pub async fn watch(&self) {
        let watch = async |url: &Url| {
            loop {
                self.ask(url).await;
                tokio::time::sleep(INTERVAL).await;
            }
        };
        let urls: Vec<_> = self.all().into_keys().collect();
        join_all(urls.iter().map(watch)).await;
    }

    /// Asks all workers at once whether they are there.
    pub async fn ask_all(&self) {
        let urls: Vec<_> = self.all().into_keys().collect();
        join_all(urls.iter().map(|url| self.ask(url))).await;
    }

    async fn ask(&self, url: &Url) {
        let health = match tokio::time::timeout(ANSWER_TIMEOUT, self.version_of(url)).await {
            Ok(Ok(theirs)) if theirs == version() => Health::Healthy,
            Ok(Ok(theirs)) => Health::OtherVersion(theirs),
            Ok(Err(error)) => Health::Unreachable(error.strip_backtrace()),
            Err(_) => Health::Unreachable("no answer within 3 s".to_owned()),
        };
        self.set(url, health);
    }

    async fn version_of(&self, url: &Url) -> Result<String, DataFusionError> {
        let mut worker = self.connections.get_worker_client_for_url(url).await?;
        Ok(worker.get_worker_info(GetWorkerInfoRequest {}).await?.version)
    }

    fn set(&self, url: &Url, health: Health) {
        let mut workers = self.workers.write().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = workers.get_mut(url) else { return };
        if *known != health {
            match &health {
                Health::Healthy => log::info!("worker {url} answers"),
                Health::OtherVersion(theirs) => log::warn!(
                    "worker {url} has another version ({theirs}), so it gets no tasks; this is {}",
                    version()
                ),
                Health::Unreachable(reason) => log::warn!("worker {url} gets no tasks: {reason}"),
                Health::Unknown => {}
            }
            *known = health;
        }
    }
}

#[async_trait]
impl WorkerList for WorkerHealth {
    async fn refresh(&self) {
        self.ask_all().await;
    }
}

impl WorkerResolver for WorkerHealth {
    fn get_urls(&self) -> Result<Vec<Url>> {
        let workers = self.workers.read().unwrap_or_else(PoisonError::into_inner);
        let healthy = workers.iter().filter(|(_, health)| **health == Health::Healthy);
        Ok(healthy.map(|(url, _)| url.clone()).collect())
    }
}
