//! A query's registered need of a table.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::SchemaRef;
use coscan_core::{ChunkIndex, Order, PriorityClass, ScanId, ScanReport, ScanSpec, WorkerIndex};
use coscan_storage::table::ParquetTable;

use crate::driver::{Driver, RunningScan};
use crate::error::{ExtendError, ScanError};
use crate::memory::{Reservation, Stage};
use crate::metrics::{ScanCounters, ScanMetrics};
use crate::row_selection::{PartialChunks, partial_chunks, sparse_pages};
use crate::scan_request::ScanRequest;
use crate::table::SharedTable;
use crate::worker_activity::WorkerActivity;

/// A registered scan. All workers of a query take from it; each chunk goes to the worker that asks first.
///
/// It ends when it is dropped: all that it held is released.
#[derive(Debug)]
pub struct Scan {
    driver: Arc<Driver>,
    /// Keeps the table registered.
    table: SharedTable,
    id: ScanId,
    columns: Vec<usize>,
    schema: SchemaRef,
    partial: Arc<PartialChunks>,
    counters: Arc<ScanCounters>,
    activity: Arc<WorkerActivity>,
    workers: usize,
    /// The report, once the scan has ended.
    ended: Mutex<Option<ScanReport>>,
}

impl Scan {
    pub(crate) fn start(
        driver: &Arc<Driver>,
        table: &SharedTable,
        request: ScanRequest,
        first: Option<&[ChunkIndex]>,
    ) -> Result<Arc<Self>, ScanError> {
        let parquet = table.table();
        let schema = request.schema(parquet)?;
        let mut groups: Vec<_> =
            request.columns.iter().map(|&column| parquet.group_of_column(column)).collect();
        groups.sort_unstable();
        groups.dedup();
        let partial = Arc::new(partial_chunks(parquet, &request.rows));
        let pages = match partial.is_empty() {
            true => None,
            false => sparse_pages(parquet, &groups, &request.rows),
        };
        let table = match request.order {
            Order::Any => table.clone(),
            Order::InOrder => table.in_order(),
        };
        let snapshot = table.snapshot();
        let spec = ScanSpec {
            table: table.id(),
            groups,
            chunks: match first {
                None => snapshot.to_core_runs(&request.rows),
                Some(chunks) => snapshot.core_runs_of(chunks),
            },
            order: request.order,
            workers: request.workers,
            weight: request.weight,
            pages: pages
                .map(|pages| pages.into_iter().map(|page| snapshot.page_id(page)).collect()),
        };
        let counters = Arc::new(ScanCounters::new(Arc::clone(driver.slices_of_all())));
        let mut columns = request.columns.clone();
        columns.sort_unstable();
        columns.dedup();
        let activity = Arc::new(WorkerActivity::new(request.workers));
        let fields = schema.fields().iter();
        let running = RunningScan {
            snapshot: Arc::clone(snapshot),
            label: request.label,
            started: driver.now(),
            column_names: fields.map(|field| field.name().clone()).collect(),
            columns,
            partial: Arc::clone(&partial),
            counters: Arc::clone(&counters),
            activity: Arc::clone(&activity),
            handed: Vec::new(),
            failed: None,
            is_closed: false,
        };
        let id = driver.start_scan(&spec, &running)?;
        Ok(Arc::new(Self {
            driver: Arc::clone(driver),
            table,
            id,
            columns: request.columns,
            schema,
            partial,
            counters,
            activity,
            workers: request.workers,
            ended: Mutex::new(None),
        }))
    }

    /// The schema of its record batches.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The table that it reads.
    #[must_use]
    pub fn table(&self) -> &Arc<ParquetTable> {
        self.table.table()
    }

    /// Needs more chunks of its request from now on. Chunks that it was handed before are handed out again. A worker whose
    /// stream has ended takes none of them; a new stream of it does.
    ///
    /// # Errors
    /// If the pool is too small for one of them, or queries hold the memory that the pool would need for it. Some may have
    /// been added by then: retry only [`ExtendError::left`], as chunks that were handed out come twice.
    pub fn extend(&self, chunks: &[ChunkIndex]) -> Result<(), ExtendError> {
        let snapshot = self.table.snapshot();
        let extended = self.driver.extend_scan(self.id, &snapshot.core_runs_of(chunks));
        extended.map_err(|(error, left)| {
            let mut left: Vec<_> = left.into_iter().map(|chunk| snapshot.to_table(chunk)).collect();
            left.sort_unstable();
            ExtendError { error, left }
        })
    }

    /// Gives up chunks that have not been handed out yet; returns how many.
    pub fn prune(&self, chunks: &[ChunkIndex]) -> usize {
        let snapshot = self.table.snapshot();
        let chunks: Vec<_> = chunks.iter().map(|&chunk| snapshot.to_core(chunk)).collect();
        self.driver.prune_scan(self.id, &chunks)
    }

    /// Whether all its chunks have been handed out.
    #[must_use]
    pub fn is_handed_out(&self) -> bool {
        self.driver.is_handed_out(self.id)
    }

    /// The chunks that were handed out so far, each with its worker; none once it has ended.
    #[must_use]
    pub fn handed(&self) -> Vec<(ChunkIndex, usize)> {
        self.of_table(self.driver.handed_chunks(self.id))
    }

    /// As [`Self::handed`], if all its chunks have been handed out.
    #[must_use]
    pub fn all_handed_out(&self) -> Option<Vec<(ChunkIndex, usize)>> {
        self.driver.all_handed_out(self.id).map(|handed| self.of_table(handed))
    }

    /// Gives up all chunks that have not been handed out yet, and those that workers return from now on because they cannot
    /// open them. Returns what was handed out, as [`Self::handed`].
    pub fn close(&self) -> Vec<(ChunkIndex, usize)> {
        self.of_table(self.driver.close_scan(self.id))
    }

    fn of_table(&self, handed: Vec<(ChunkIndex, usize)>) -> Vec<(ChunkIndex, usize)> {
        let snapshot = self.table.snapshot();
        let of_table = |(chunk, worker)| (snapshot.to_table(chunk), worker);
        handed.into_iter().map(of_table).collect()
    }

    /// Chunks that have not been handed out yet, in ascending order; none once it has ended.
    #[must_use]
    pub fn remaining(&self) -> Vec<ChunkIndex> {
        let remaining = self.driver.remaining_chunks(self.id).into_iter();
        let mut remaining: Vec<_> =
            remaining.map(|chunk| self.table.snapshot().to_table(chunk)).collect();
        remaining.sort_unstable();
        remaining
    }

    /// Ends it now: all that it held is released. Its workers get [`ScanError::Cancelled`] if they ask again.
    pub fn cancel(&self) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.is_none() {
            *ended = Some(self.driver.cancel_scan(self.id));
        }
    }

    /// Its counters so far.
    #[must_use]
    pub fn metrics(&self) -> ScanMetrics {
        let ended = *self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        self.counters.with_chunks(ended.unwrap_or_else(|| self.driver.report_scan(self.id)))
    }

    /// Ends it for all its workers because one of them has failed.
    pub(crate) fn fail(&self, error: &ScanError) {
        self.driver.fail_scan(self.id, error);
    }

    /// Memory for one of its workers, as soon as there is enough.
    ///
    /// # Errors
    /// As [`Driver::reserve`].
    pub(crate) async fn reserve(
        &self,
        worker: WorkerIndex,
        bytes: u64,
        stage: Stage,
    ) -> Result<Reservation, ScanError> {
        let _waiting = self.activity.in_memory_queue(worker, self.driver.now());
        self.driver.reserve(bytes, stage).await
    }

    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    pub(crate) fn id(&self) -> ScanId {
        self.id
    }

    /// Columns in the order of the record batches.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.columns
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    pub(crate) fn activity(&self) -> &Arc<WorkerActivity> {
        &self.activity
    }

    /// By its length: longer scans give way to it.
    pub(crate) fn priority(&self) -> PriorityClass {
        self.activity.priority()
    }

    pub(crate) fn counters(&self) -> &ScanCounters {
        &self.counters
    }

    /// The rows needed of a chunk, counted from its start; `None` if all.
    pub(crate) fn selection(&self, chunk: ChunkIndex) -> Option<&[Range<u64>]> {
        self.partial.get(&chunk).map(Vec::as_slice)
    }

    /// The number of rows of a chunk that are needed.
    pub(crate) fn rows_needed(&self, chunk: ChunkIndex) -> u64 {
        let rows = self.table().layout().rows(chunk);
        let selection = self.selection(chunk);
        selection.map_or(rows.end - rows.start, |selection| {
            selection.iter().map(|rows| rows.end - rows.start).sum()
        })
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        self.cancel();
    }
}
