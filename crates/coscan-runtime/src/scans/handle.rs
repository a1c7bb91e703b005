//! A registered scan, as its workers know it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use coscan_core::{MemoryStage, PriorityClass, ScanCounts, ScanId, ScanSpec, WorkerIndex};

use crate::cpu::activity::WorkerActivity;
use crate::driver::{Driver, Message, RunningScan};
use crate::error::ScanError;
use crate::memory::Reservation;
use crate::observe::metrics::{ScanCounters, ScanMetrics};
use crate::scans::parts::ScanParts;
use crate::scans::request::ScanLabel;
use crate::sync::destructor::InDestructor;

/// A registered scan. It ends when it is dropped, and releases all that it held.
#[derive(Debug)]
pub(crate) struct ScanHandle {
    driver: Arc<Driver>,
    id: ScanId,
    parts: Arc<ScanParts>,
    counters: Arc<ScanCounters>,
    activity: Arc<WorkerActivity>,
    workers: usize,
    /// The report, once the scan has ended.
    ended: OnceLock<ScanCounts>,
    /// Keeps the tables that it reads registered.
    _registered: Box<dyn fmt::Debug + Send + Sync>,
}

impl ScanHandle {
    /// Registers a scan of tables that are registered as long as `registered` is kept.
    ///
    /// # Errors
    /// If the pool is too small for one of its chunks, queries hold the memory that the pool would need for it, or there
    /// are no workers.
    pub(crate) fn start(
        driver: &Arc<Driver>,
        registered: impl fmt::Debug + Send + Sync + 'static,
        spec: &ScanSpec,
        parts: ScanParts,
        label: ScanLabel,
    ) -> Result<Arc<Self>, ScanError> {
        let parts = Arc::new(parts);
        let counters = Arc::new(ScanCounters::new(Arc::clone(driver.slices_of_all())));
        let activity = Arc::new(WorkerActivity::new(spec.workers));
        let running = RunningScan {
            column_names: parts.column_names(),
            parts: Arc::clone(&parts),
            label,
            started: driver.now(),
            counters: Arc::clone(&counters),
            activity: Arc::clone(&activity),
            handed: Vec::new(),
            failed: None,
            revocations: BTreeMap::new(),
            is_closed: false,
            has_ended: false,
        };
        let id = driver.start_scan(spec, &running)?;
        Ok(Arc::new(Self {
            driver: Arc::clone(driver),
            id,
            parts,
            counters,
            activity,
            workers: spec.workers,
            ended: OnceLock::new(),
            _registered: Box::new(registered),
        }))
    }

    /// Ends the scan now and releases all that it held. Its workers get [`ScanError::Cancelled`] if they ask again.
    pub(crate) fn cancel(&self) {
        self.ended.get_or_init(|| self.driver.cancel_scan(self.id));
    }

    /// Its counters so far.
    pub(crate) fn metrics(&self) -> ScanMetrics {
        let ended = self.ended.get().copied();
        self.counters.with_chunks(ended.unwrap_or_else(|| self.driver.report_scan(self.id)))
    }

    /// Ends the scan for all its workers because one of them has failed.
    pub(crate) fn fail(&self, error: &ScanError) {
        self.driver.fail_scan(self.id, error);
    }

    /// Waits for memory for one of its workers, until there is enough.
    ///
    /// # Errors
    /// As [`Driver::reserve`].
    pub(crate) async fn reserve(
        &self,
        worker: WorkerIndex,
        bytes: u64,
        stage: MemoryStage,
    ) -> Result<Reservation, ScanError> {
        let _waiting = self.activity.in_memory_queue(worker, self.driver.now());
        self.driver.reserve(self.id, bytes, stage).await
    }

    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    pub(crate) fn id(&self) -> ScanId {
        self.id
    }

    /// The parts that it reads of each chunk.
    pub(crate) fn parts(&self) -> &ScanParts {
        &self.parts
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    pub(crate) fn activity(&self) -> &Arc<WorkerActivity> {
        &self.activity
    }

    /// The priority class by its length: longer scans yield to it.
    pub(crate) fn priority(&self) -> PriorityClass {
        self.activity.priority()
    }

    pub(crate) fn counters(&self) -> &ScanCounters {
        &self.counters
    }
}

impl Drop for ScanHandle {
    fn drop(&mut self) {
        let _destructor = InDestructor::enter();
        if self.ended.get().is_none() {
            self.driver.post(Message::ScanDropped(self.id));
        }
    }
}
