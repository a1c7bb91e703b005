//! A registered scan of chunks of a plan, with the dynamic filters that prune it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

use coscan_runtime::core::ChunkIndex;
use coscan_runtime::{
    BufferManager, ExtendError, Scan, ScanError, ScanMetrics, ScanRequest, ScanStream, SharedTable,
};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;

use crate::error::from_scan;
use crate::execution::dynamic_pruning::DynamicPruner;
use crate::execution::metrics::ScanCounts;
use crate::execution::ranking::Queue;
use crate::execution::taken_states::TakenStates;
use crate::shared_results::{ChunkState, ResultSharing, Subscription};

/// The common part of all scans of a plan.
#[derive(Debug)]
pub(crate) struct ChunkScanPlan {
    pub(crate) manager: BufferManager,
    pub(crate) table: SharedTable,
    /// Requests all chunks that the plan needs, with a worker for each of its partitions.
    pub(crate) request: ScanRequest,
    pub(crate) dynamic_filters: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) in_list_max: usize,
    /// The rank of each chunk of the table, if rows of low ranks may rule out chunks of high ranks.
    pub(crate) ranks: Option<Vec<usize>>,
    /// What it shares of its results. Then there are no dynamic filters and no ranks.
    pub(crate) sharing: Option<ResultSharing>,
    pub(crate) counts: ScanCounts,
}

/// A scan of some chunks of a plan. It ends when this value and all its streams are dropped.
#[derive(Debug)]
pub(crate) struct ChunkScan {
    plan: Arc<ChunkScanPlan>,
    workers: usize,
    /// Chunks to read later. Dynamic filters may rule them out until then.
    later: Mutex<Queue>,
    /// Set once there is something to read.
    scan: OnceLock<Arc<Scan>>,
    /// A worker that finds it locked skips pruning, which the worker that holds the lock does.
    pruner: Mutex<Option<DynamicPruner>>,
    /// The states that other queries have published of its chunks, if it takes any.
    states: Option<TakenStates>,
    /// The metrics of the scan that were already added to the counts.
    counted: Mutex<ScanMetrics>,
}

impl ChunkScan {
    /// Creates a scan without chunks for all partitions, which takes states of others.
    pub(crate) fn shared(plan: &Arc<ChunkScanPlan>, workers: usize) -> Self {
        let states = plan.sharing.as_ref().map(|sharing| TakenStates::new(sharing, workers));
        Self { states, ..Self::new(plan, workers) }
    }

    /// Creates a scan without chunks.
    pub(crate) fn new(plan: &Arc<ChunkScanPlan>, workers: usize) -> Self {
        let pruner = (!plan.dynamic_filters.is_empty())
            .then(|| DynamicPruner::new(plan.dynamic_filters.clone(), plan.in_list_max));
        let first = if plan.ranks.is_some() { workers } else { usize::MAX };
        Self {
            plan: Arc::clone(plan),
            workers,
            later: Mutex::new(Queue::new(first)),
            scan: OnceLock::new(),
            pruner: Mutex::new(pruner),
            states: None,
            counted: Mutex::default(),
        }
    }

    /// Adds chunks to read. Dynamic filters may still rule them out before their turn.
    pub(crate) fn add(&self, chunks: Vec<ChunkIndex>) {
        self.plan.counts.chunks_needed.add(chunks.len());
        lock(&self.later).add(chunks, self.plan.ranks.as_deref());
    }

    /// Starts to read the next chunks if all earlier ones were handed out. Returns whether a worker has something to
    /// request. After an error the caller may try again. Calls must not overlap.
    pub(crate) fn go_on(&self) -> Result<bool> {
        loop {
            let has_states = self.states.as_ref().is_some_and(TakenStates::has_any);
            let has_more = has_states || self.scan.get().is_some_and(|scan| !scan.is_handed_out());
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

    /// Starts to read the chunks that the current dynamic filters leave. Returns false if there are none.
    fn read(&self, chunks: Vec<ChunkIndex>) -> Result<bool> {
        let count = chunks.len();
        let chunks = match lock(&self.pruner).as_mut() {
            Some(pruner) => pruner.add(self.plan.table.table(), chunks),
            None => chunks,
        };
        self.plan.counts.chunks_pruned_dynamic_filter.add(count - chunks.len());
        let chunks = match &self.states {
            Some(states) => states.take_published(chunks),
            None => chunks,
        };
        if chunks.is_empty() {
            return Ok(self.states.as_ref().is_some_and(TakenStates::has_any));
        }
        let reads = match self.scan.get() {
            Some(scan) => scan.extend(&chunks),
            None => self.start(&chunks).map_err(|error| ExtendError { error, left: chunks }),
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
        let computation = self.subscription().and_then(Subscription::computation);
        let request =
            ScanRequest { workers: self.workers, computation, ..self.plan.request.clone() };
        let scan = self.plan.manager.start_scan_of(&self.plan.table, request, chunks)?;
        self.scan.get_or_init(|| scan);
        Ok(())
    }

    /// The batches of a worker, or `None` if nothing is read.
    pub(crate) fn worker(&self, worker: usize) -> Option<ScanStream> {
        self.scan.get().map(|scan| scan.worker(worker))
    }

    /// The state of a chunk that another query has published, for a worker that then does not read the chunk. If there is
    /// none, the worker is woken when there may be one.
    pub(crate) fn take_state(&self, worker: usize, waker: &Waker) -> Option<Arc<ChunkState>> {
        self.states.as_ref()?.take(self.scan.get(), worker, waker)
    }

    /// The query among those that share results with it.
    pub(crate) fn subscription(&self) -> Option<&Subscription> {
        self.states.as_ref().map(TakenStates::subscription)
    }

    /// Drops chunks that dynamic filters have ruled out.
    pub(crate) fn prune(&self) {
        if self.plan.dynamic_filters.is_empty() {
            return;
        }
        let (Some(scan), Ok(mut pruner)) = (self.scan.get(), self.pruner.try_lock()) else {
            return;
        };
        if let Some(pruner) = pruner.as_mut() {
            self.plan.counts.chunks_pruned_dynamic_filter.add(pruner.prune(scan));
        }
    }

    /// Drops the selected chunks, except those that were handed out.
    pub(crate) fn give_up(&self, is_selected: impl Fn(ChunkIndex) -> bool) {
        lock(&self.later).give_up(&is_selected);
        self.states.iter().for_each(|states| states.give_up(&is_selected));
        let Some(scan) = self.scan.get() else { return };
        let mut selected = scan.remaining();
        selected.retain(|&chunk| is_selected(chunk));
        if !selected.is_empty() {
            scan.prune(&selected);
        }
    }

    /// Stops reading, including chunks that workers give back. Returns the chunks that were handed out, each with its
    /// worker.
    pub(crate) fn close(&self) -> Vec<(ChunkIndex, usize)> {
        lock(&self.later).give_up(|_| true);
        let close = || self.scan.get().map_or_else(Vec::new, |scan| scan.close());
        match &self.states {
            Some(states) => states.close(close),
            None => close(),
        }
    }

    /// The chunks that were handed out, if nothing is left to be handed out.
    pub(crate) fn all_handed_out(&self) -> Option<Vec<(ChunkIndex, usize)>> {
        let of_scan =
            || self.scan.get().map_or_else(|| Some(Vec::new()), |scan| scan.all_handed_out());
        match &self.states {
            Some(states) => states.with_all_given(of_scan),
            None => of_scan(),
        }
    }

    /// The chunks that were handed out so far, each with its worker.
    pub(crate) fn handed(&self) -> Vec<(ChunkIndex, usize)> {
        let of_scan = || self.scan.get().map_or_else(Vec::new, |scan| scan.handed());
        match &self.states {
            Some(states) => states.with_given(of_scan),
            None => of_scan(),
        }
    }

    /// Adds the metrics of the scan to the counts of the plan.
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
