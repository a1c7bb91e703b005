//! What a server knows of the workers that it divides queries among.

#[cfg(feature = "distributed")]
use std::sync::Arc;

#[cfg(feature = "distributed")]
use coscan_distributed::{Health, HealthyWorkers};

/// The workers of a server, with their health now.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownWorkers {
    #[cfg(feature = "distributed")]
    pub(crate) workers: Option<Arc<HealthyWorkers>>,
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
