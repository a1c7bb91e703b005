//! One execution of a plan's scan.
//!
//! - A run begins when a partition is executed that the run before has executed already, or for another task.
//! - Its scan is registered when the first of its streams is polled: by then a join knows the keys of its build side.
//! - All streams of a run are workers of that scan. When the last of them ends, so does the scan, and its figures are
//!   final. A partition that is executed only after that reads what the others have left.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use coscan_runtime::core::ChunkIndex;
use coscan_runtime::{BufferManager, Scan, ScanMetrics, ScanRequest, ScanStream, SharedTable};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;

use crate::error::from_scan;
use crate::metrics::ScanCounts;
use crate::narrowing::Narrowing;
use crate::pruning::NeededChunks;

/// What a run reads.
#[derive(Debug)]
pub(crate) struct RunPlan {
    pub(crate) manager: BufferManager,
    pub(crate) table: SharedTable,
    pub(crate) request: ScanRequest,
    pub(crate) needed: Arc<NeededChunks>,
    pub(crate) dynamic_filters: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) in_list_max: usize,
    pub(crate) fetch: Option<usize>,
    pub(crate) counts: Arc<ScanCounts>,
}

/// The latest run of a plan.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    current: Mutex<Option<Arc<Run>>>,
}

impl Runs {
    /// The run that executes a partition.
    pub(crate) fn join(
        &self,
        partition: usize,
        context: &Arc<TaskContext>,
        plan: impl FnOnce() -> RunPlan,
    ) -> Arc<Run> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = current.as_ref().filter(|run| run.admit(partition, context)) {
            return Arc::clone(run);
        }
        let run = Arc::new(Run::new(plan(), context));
        run.admit(partition, context);
        *current = Some(Arc::clone(&run));
        run
    }
}

/// One execution.
#[derive(Debug)]
pub(crate) struct Run {
    plan: RunPlan,
    context: Weak<TaskContext>,
    /// Rows that may still be given out; `usize::MAX` if all.
    fetch_left: AtomicUsize,
    state: Mutex<RunState>,
    /// Dynamic filters, once the scan runs. Whoever finds it locked leaves narrowing to the other worker.
    narrowing: Mutex<Option<Narrowing>>,
}

#[derive(Debug)]
struct RunState {
    /// Partitions that have a stream, or had one.
    taken: Vec<bool>,
    /// Streams that have not ended.
    streams: usize,
    scan: Option<Arc<Scan>>,
    /// What is left to read when the scan is registered.
    chunks_left: Vec<ChunkIndex>,
    /// What the counts know of the scan.
    counted: ScanMetrics,
}

impl Run {
    fn new(plan: RunPlan, context: &Arc<TaskContext>) -> Self {
        plan.counts.chunks_pruned.add(plan.needed.pruned());
        let state = RunState {
            taken: vec![false; plan.request.workers],
            streams: 0,
            scan: None,
            chunks_left: plan.needed.chunks.clone(),
            counted: ScanMetrics::default(),
        };
        Self {
            context: Arc::downgrade(context),
            fetch_left: AtomicUsize::new(plan.fetch.unwrap_or(usize::MAX)),
            state: Mutex::new(state),
            narrowing: Mutex::new(None),
            plan,
        }
    }

    /// Takes a partition in, unless it has been executed or belongs to another task.
    fn admit(&self, partition: usize, context: &Arc<TaskContext>) -> bool {
        let mut state = self.lock();
        if state.taken[partition] || !std::ptr::eq(self.context.as_ptr(), Arc::as_ptr(context)) {
            return false;
        }
        state.taken[partition] = true;
        state.streams += 1;
        true
    }

    /// The batches of a partition; `None` if nothing is left to read.
    pub(crate) fn open(&self, partition: usize) -> Result<Option<ScanStream>> {
        if self.is_fetched() {
            return Ok(None);
        }
        let mut state = self.lock();
        if state.scan.is_none() && !state.chunks_left.is_empty() {
            self.register(&mut state)?;
        }
        Ok(state.scan.as_ref().map(|scan| scan.worker(partition)))
    }

    fn register(&self, state: &mut RunState) -> Result<()> {
        let table = self.plan.table.table();
        let mut chunks = std::mem::take(&mut state.chunks_left);
        if !self.plan.dynamic_filters.is_empty() {
            let filters = self.plan.dynamic_filters.clone();
            let count = chunks.len();
            let narrowing = Narrowing::start(table, filters, self.plan.in_list_max, chunks);
            chunks = narrowing.wanted().to_vec();
            self.plan.counts.narrowed_at_start(count - chunks.len());
            *self.narrowing.lock().unwrap_or_else(PoisonError::into_inner) = Some(narrowing);
        }
        if chunks.is_empty() {
            return Ok(());
        }
        let rows = self.plan.needed.rows_in(table, &chunks);
        let request = ScanRequest { rows, ..self.plan.request.clone() };
        let scan = self.plan.manager.start_scan(&self.plan.table, request).map_err(from_scan)?;
        state.counted = ScanMetrics::default();
        state.scan = Some(scan);
        Ok(())
    }

    /// Gives up chunks that dynamic filters have ruled out.
    pub(crate) fn narrow(&self) {
        if self.plan.dynamic_filters.is_empty() {
            return;
        }
        let Some(scan) = self.lock().scan.clone() else { return };
        let Ok(mut narrowing) = self.narrowing.try_lock() else { return };
        if let Some(narrowing) = narrowing.as_mut() {
            narrowing.narrow(&scan);
        }
    }

    /// How many of these rows are still wanted. They are not wanted again.
    pub(crate) fn take_rows(&self, rows: usize) -> usize {
        if self.plan.fetch.is_none() {
            return rows;
        }
        let take = |left: usize| Some(left - left.min(rows));
        let before = self.fetch_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        let taken = before.unwrap_or_else(|left| left).min(rows);
        if self.is_fetched() {
            // Workers that wait for a chunk need none any more.
            let scan = self.lock().scan.clone();
            scan.inspect(|scan| scan.cancel());
        }
        taken
    }

    /// Whether all rows that are wanted were given out.
    pub(crate) fn is_fetched(&self) -> bool {
        self.fetch_left.load(Ordering::Relaxed) == 0
    }

    /// A stream has ended or was dropped. Call it once a stream, after its worker is gone.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        state.streams -= 1;
        let Some(scan) = state.scan.clone() else { return };
        if state.streams == 0 {
            if state.taken.contains(&false) && !self.is_fetched() {
                state.chunks_left = scan.remaining();
            }
            scan.cancel();
            state.scan = None;
        }
        let now = scan.metrics();
        self.plan.counts.add(&state.counted, &now);
        state.counted = now;
    }

    fn lock(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
