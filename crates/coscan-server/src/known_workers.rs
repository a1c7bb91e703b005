//! What a server knows of distributed queries: the workers that it divides its own among, and the tasks of others.

#[cfg(feature = "distributed")]
use std::sync::Arc;

#[cfg(feature = "distributed")]
use coscan_distributed::{Health, RunningTasks, WorkerHealth};

/// The workers of a server with their health, and its tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownWorkers {
    #[cfg(feature = "distributed")]
    pub(crate) workers: Option<Arc<WorkerHealth>>,
    /// The tasks of other servers, if this one is a worker.
    #[cfg(feature = "distributed")]
    pub(crate) running: Option<RunningTasks>,
}

/// A worker.
#[derive(Clone, Debug)]
pub(crate) struct KnownWorker {
    pub(crate) address: String,
    pub(crate) status: &'static str,
    /// The reason why it gets no tasks.
    pub(crate) reason: Option<String>,
}

impl KnownWorkers {
    /// The number of tasks of other servers that run here, if this is a worker.
    pub(crate) fn tasks(&self) -> Option<usize> {
        #[cfg(feature = "distributed")]
        return self.running.as_ref().map(RunningTasks::count);
        #[cfg(not(feature = "distributed"))]
        None
    }

    /// All workers, by address.
    pub(crate) fn all(&self) -> Vec<KnownWorker> {
        #[cfg(feature = "distributed")]
        if let Some(workers) = &self.workers {
            let known = workers.all().into_iter().map(|(url, health)| {
                let address = url.authority().to_owned();
                let (status, reason) = match health {
                    Health::Unknown => ("not asked yet", None),
                    Health::Healthy => ("healthy", None),
                    Health::OtherVersion(version) => {
                        ("other version", Some(format!("it has version {version}")))
                    }
                    Health::Unreachable(reason) => ("unreachable", Some(reason)),
                };
                KnownWorker { address, status, reason }
            });
            return known.collect();
        }
        Vec::new()
    }
}
