//! A registered scan of chunks of a plan, and the dynamic filters that narrow it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use coscan_runtime::core::ChunkIndex;
use coscan_runtime::{
    BufferManager, ExtendError, Scan, ScanError, ScanMetrics, ScanRequest, ScanStream, SharedTable,
};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;

use crate::dynamic_pruning::DynamicPruning;
use crate::error::from_scan;
use crate::metrics::ScanCounts;
use crate::ranking::Queue;

/// What the scans of a plan have in common.
#[derive(Debug)]
pub(crate) struct ReadingPlan {
    pub(crate) manager: BufferManager,
    pub(crate) table: SharedTable,
    /// Of all chunks that the plan needs, for as many workers as it has partitions.
    pub(crate) request: ScanRequest,
    pub(crate) dynamic_filters: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) in_list_max: usize,
    /// The rank of each chunk of the table, if those of lower ranks may make others unwanted.
    pub(crate) ranks: Option<Vec<usize>>,
    pub(crate) counts: ScanCounts,
}

/// A scan of some chunks of a plan. It ends when this and all its streams are dropped.
#[derive(Debug)]
pub(crate) struct Reading {
    plan: Arc<ReadingPlan>,
    workers: usize,
    /// What it does not read yet: dynamic filters may rule it out by then.
    later: Mutex<Queue>,
    /// Once there is something to read.
    scan: OnceLock<Arc<Scan>>,
    /// Whoever finds it locked leaves narrowing to the other worker.
    dynamic_pruning: Mutex<Option<DynamicPruning>>,
    /// What the counts know of the scan.
    counted: Mutex<ScanMetrics>,
}

impl Reading {
    /// Of no chunk yet.
    pub(crate) fn new(plan: &Arc<ReadingPlan>, workers: usize) -> Self {
        let dynamic_pruning = (!plan.dynamic_filters.is_empty())
            .then(|| DynamicPruning::new(plan.dynamic_filters.clone(), plan.in_list_max));
        let first = if plan.ranks.is_some() { workers } else { usize::MAX };
        Self {
            plan: Arc::clone(plan),
            workers,
            later: Mutex::new(Queue::new(first)),
            scan: OnceLock::new(),
            dynamic_pruning: Mutex::new(dynamic_pruning),
            counted: Mutex::default(),
        }
    }

    /// Is to read chunks, too, as far as dynamic filters do not rule them out when their turn comes.
    pub(crate) fn add(&self, chunks: Vec<ChunkIndex>) {
        self.plan.counts.chunks_needed.add(chunks.len());
        lock(&self.later).add(chunks, self.plan.ranks.as_deref());
    }

    /// Whether there is something for a worker to ask for: not all was handed out, or it is the turn of more. After an
    /// error another call tries again. No two of them may be under way.
    pub(crate) fn go_on(&self) -> Result<bool> {
        loop {
            let has_more = self.scan.get().is_some_and(|scan| !scan.is_handed_out());
            if has_more && self.plan.ranks.is_some() {
                return Ok(true);
            }
            let next = lock(&self.later).take();
            if next.is_empty() {
                return Ok(has_more);
            }
            if self.read(next)? {
                return Ok(true);
            }
        }
    }

    /// Reads chunks that dynamic filters do not rule out by now; whether there are any.
    fn read(&self, chunks: Vec<ChunkIndex>) -> Result<bool> {
        let count = chunks.len();
        let wanted = match lock(&self.dynamic_pruning).as_mut() {
            Some(dynamic_pruning) => dynamic_pruning.add(self.plan.table.table(), chunks),
            None => chunks,
        };
        self.plan.counts.chunks_pruned_dynamic.add(count - wanted.len());
        if wanted.is_empty() {
            return Ok(false);
        }
        let reads = match self.scan.get() {
            Some(scan) => scan.extend(&wanted),
            None => self.start(&wanted).map_err(|error| ExtendError { error, left: wanted }),
        };
        match reads {
            Ok(()) => Ok(true),
            Err(ExtendError { error, left }) => {
                lock(&self.later).add(left, self.plan.ranks.as_deref());
                Err(from_scan(error))
            }
        }
    }

    fn start(&self, chunks: &[ChunkIndex]) -> Result<(), ScanError> {
        let request = ScanRequest { workers: self.workers, ..self.plan.request.clone() };
        let scan = self.plan.manager.start_scan_of(&self.plan.table, request, chunks)?;
        self.scan.get_or_init(|| scan);
        Ok(())
    }

    /// The batches of a worker; `None` if there is nothing to read.
    pub(crate) fn worker(&self, worker: usize) -> Option<ScanStream> {
        self.scan.get().map(|scan| scan.worker(worker))
    }

    /// Gives up chunks that dynamic filters have ruled out.
    pub(crate) fn prune(&self) {
        if self.plan.dynamic_filters.is_empty() {
            return;
        }
        let (Some(scan), Ok(mut dynamic_pruning)) =
            (self.scan.get(), self.dynamic_pruning.try_lock())
        else {
            return;
        };
        if let Some(dynamic_pruning) = dynamic_pruning.as_mut() {
            self.plan.counts.chunks_pruned_dynamic.add(dynamic_pruning.prune(scan));
        }
    }

    /// Reads no more of the chunks that nobody was handed and that are meant.
    pub(crate) fn give_up(&self, is_meant: impl Fn(ChunkIndex) -> bool) {
        lock(&self.later).give_up(&is_meant);
        let Some(scan) = self.scan.get() else { return };
        let mut unwanted = scan.remaining();
        unwanted.retain(|&chunk| is_meant(chunk));
        if !unwanted.is_empty() {
            scan.prune(&unwanted);
        }
    }

    /// Reads nothing more, also not what its workers give back. The chunks that were handed out, each with its worker.
    pub(crate) fn close(&self) -> Vec<(ChunkIndex, usize)> {
        lock(&self.later).give_up(|_| true);
        self.scan.get().map_or_else(Vec::new, |scan| scan.close())
    }

    /// The chunks that were handed out, if nothing is left to be handed out.
    pub(crate) fn all_handed_out(&self) -> Option<Vec<(ChunkIndex, usize)>> {
        self.scan.get().map_or_else(|| Some(Vec::new()), |scan| scan.all_handed_out())
    }

    /// The chunks that were handed out so far, each with its worker.
    pub(crate) fn handed(&self) -> Vec<(ChunkIndex, usize)> {
        self.scan.get().map_or_else(Vec::new, |scan| scan.handed())
    }

    /// Adds what the scan did to the counts of the plan.
    pub(crate) fn count(&self) {
        let Some(scan) = self.scan.get() else { return };
        let mut counted = lock(&self.counted);
        let now = scan.metrics();
        self.plan.counts.add(&counted, &now);
        *counted = now;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
