//! A query's registered need of a table.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::{Schema, SchemaRef};
use coscan_core::{
    ChunkIndex, GroupIndex, Index, Order, PageIndex, PriorityClass, ScanId, ScanReport, ScanSpec,
    WorkerIndex,
};
use coscan_storage::table::ParquetTable;

use crate::driver::{Driver, RunningScan};
use crate::error::{ExtendError, ScanError};
use crate::metrics::{ScanCounters, ScanMetrics};
use crate::polls::Polls;
use crate::stream::ScanStream;
use crate::table::SharedTable;

/// Rows are picked out of chunks if they lie in less than this part of their bytes. Whole chunks are shared with other
/// scans, picked pages hardly ever.
const SPARSE_PART: u64 = 4;

/// What a query wants to read of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanRequest {
    /// Columns, as indexes into the fields of the table's schema; none if only the number of rows matters.
    pub columns: Vec<usize>,
    /// Rows, as ranges from the start of the table. They ascend and do not overlap.
    pub rows: Vec<Range<u64>>,
    /// Whether rows have to come in the order of the table.
    pub order: Order,
    /// How many workers share the scan; at least one.
    pub workers: usize,
    /// How much the query counts beside others, at least 1: one of weight 2 is served as if it had half as much left.
    pub weight: u32,
}

impl ScanRequest {
    /// All rows of some columns, in any order, for one worker.
    #[must_use]
    pub fn of_columns(table: &SharedTable, columns: Vec<usize>) -> Self {
        let rows = std::iter::once(0..table.table().layout().row_count()).collect();
        Self { columns, rows, order: Order::Any, workers: 1, weight: 1 }
    }

    /// The schema of the batches, if the table has what is asked for.
    pub(crate) fn schema(&self, table: &ParquetTable) -> Result<SchemaRef, ScanError> {
        let fields = table.schema().fields();
        let field = |&column: &usize| {
            let unknown = ScanError::UnknownColumn { column, columns: fields.len() };
            fields.get(column).cloned().ok_or(unknown)
        };
        let schema = self.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        check_rows(&self.rows)?;
        Ok(Arc::new(Schema::new(schema)))
    }
}

/// A registered scan. All workers of a query take from it; each chunk goes to the worker that asks first.
///
/// It ends when it is dropped, which gives back all that it held.
#[derive(Debug)]
pub struct Scan {
    driver: Arc<Driver>,
    /// Keeps the table registered.
    table: SharedTable,
    id: ScanId,
    columns: Vec<usize>,
    schema: SchemaRef,
    /// Rows wanted of chunks that are not wanted whole, counted from the start of the chunk.
    partial: Arc<PartialChunks>,
    counters: Arc<ScanCounters>,
    polls: Arc<Polls>,
    workers: usize,
    /// What the scan got, once it has ended.
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
        let placement = table.placement();
        let spec = ScanSpec {
            table: table.id(),
            groups,
            chunks: match first {
                None => placement.to_core_runs(&request.rows),
                Some(chunks) => placement.core_runs_of(chunks),
            },
            order: request.order,
            workers: request.workers,
            weight: request.weight,
            pages: pages
                .map(|pages| pages.into_iter().map(|page| placement.page_id(page)).collect()),
        };
        let counters = Arc::new(ScanCounters::new(Arc::clone(driver.slices_of_all())));
        let mut columns = request.columns.clone();
        columns.sort_unstable();
        columns.dedup();
        let polls = Arc::new(Polls::new(request.workers));
        let running = RunningScan {
            placement: Arc::clone(placement),
            columns,
            partial: Arc::clone(&partial),
            counters: Arc::clone(&counters),
            polls: Arc::clone(&polls),
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
            polls,
            workers: request.workers,
            ended: Mutex::new(None),
        }))
    }

    /// The record batches that one of the workers takes. Call it once a worker.
    ///
    /// # Panics
    /// If there is no such worker.
    #[must_use]
    pub fn worker(self: &Arc<Self>, worker: usize) -> ScanStream {
        assert!(worker < self.workers, "worker {worker} of {}", self.workers);
        ScanStream::new(Arc::clone(self), WorkerIndex::from_usize(worker))
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

    /// Needs more chunks of its request from now on. Those that it was handed it would be handed again. A worker that has
    /// ended takes none of them; a new stream of it would.
    ///
    /// # Errors
    /// If the pool is too small for one of them, or queries hold the memory that the pool would need for it. Some may
    /// have been added by then: only [`ExtendError::left`] may be tried again, as those that it was handed come twice.
    pub fn extend(&self, chunks: &[ChunkIndex]) -> Result<(), ExtendError> {
        let placement = self.table.placement();
        let extended = self.driver.extend_scan(self.id, &placement.core_runs_of(chunks));
        extended.map_err(|(error, left)| {
            let mut left: Vec<_> =
                left.into_iter().map(|chunk| placement.to_table(chunk)).collect();
            left.sort_unstable();
            ExtendError { error, left }
        })
    }

    /// Gives up chunks that have not been handed out yet; returns how many.
    pub fn prune(&self, unwanted: &[ChunkIndex]) -> usize {
        let placement = self.table.placement();
        let unwanted: Vec<_> = unwanted.iter().map(|&chunk| placement.to_core(chunk)).collect();
        self.driver.prune_scan(self.id, &unwanted)
    }

    /// Whether nothing is left to be handed out for now.
    #[must_use]
    pub fn is_handed_out(&self) -> bool {
        self.driver.is_handed_out(self.id)
    }

    /// The chunks that were handed out so far, each with its worker; none once it has ended.
    #[must_use]
    pub fn handed(&self) -> Vec<(ChunkIndex, usize)> {
        self.of_table(self.driver.handed_chunks(self.id))
    }

    /// As [`Self::handed`], if nothing is left to be handed out.
    #[must_use]
    pub fn all_handed_out(&self) -> Option<Vec<(ChunkIndex, usize)>> {
        self.driver.all_handed_out(self.id).map(|handed| self.of_table(handed))
    }

    /// Gives up all chunks that have not been handed out yet, and those that workers give back from now on because they could
    /// not open them. Returns what was handed out, as [`Self::handed`].
    pub fn close(&self) -> Vec<(ChunkIndex, usize)> {
        self.of_table(self.driver.close_scan(self.id))
    }

    fn of_table(&self, handed: Vec<(ChunkIndex, usize)>) -> Vec<(ChunkIndex, usize)> {
        let placement = self.table.placement();
        let of_table = |(chunk, worker)| (placement.to_table(chunk), worker);
        handed.into_iter().map(of_table).collect()
    }

    /// Chunks that have not been handed out yet, in ascending order; none once it has ended.
    #[must_use]
    pub fn remaining(&self) -> Vec<ChunkIndex> {
        let remaining = self.driver.remaining_chunks(self.id).into_iter();
        let mut remaining: Vec<_> =
            remaining.map(|chunk| self.table.placement().to_table(chunk)).collect();
        remaining.sort_unstable();
        remaining
    }

    /// Ends it now: everything that it held is free. Its workers get [`ScanError::Cancelled`] if they ask again.
    pub fn cancel(&self) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.is_none() {
            *ended = Some(self.driver.cancel_scan(self.id));
        }
    }

    /// What it did so far.
    #[must_use]
    pub fn metrics(&self) -> ScanMetrics {
        let ended = *self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        self.counters.with_chunks(ended.unwrap_or_else(|| self.driver.report_scan(self.id)))
    }

    /// Ends it for all its workers, because of what happened to one.
    pub(crate) fn fail(&self, error: &ScanError) {
        self.driver.fail_scan(self.id, error);
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

    /// Whether its workers are polled.
    pub(crate) fn polls(&self) -> &Arc<Polls> {
        &self.polls
    }

    /// How long it is beside others: longer ones give way to it.
    pub(crate) fn priority(&self) -> PriorityClass {
        self.polls.priority()
    }

    pub(crate) fn counters(&self) -> &ScanCounters {
        &self.counters
    }

    /// The rows wanted of a chunk, `None` if all.
    pub(crate) fn selection(&self, chunk: ChunkIndex) -> Option<&[Range<u64>]> {
        self.partial.get(&chunk).map(Vec::as_slice)
    }

    /// How many rows of a chunk are wanted.
    pub(crate) fn rows_wanted(&self, chunk: ChunkIndex) -> u64 {
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

/// Whether ranges of rows ascend without overlap.
fn check_rows(rows: &[Range<u64>]) -> Result<(), ScanError> {
    let mut before = 0;
    for &Range { start, end } in rows {
        if start < before || end < start {
            return Err(ScanError::RowsOutOfOrder { start, end, before });
        }
        before = end;
    }
    Ok(())
}

/// For each chunk of which only some rows are wanted: which, counted from its start.
pub(crate) type PartialChunks = BTreeMap<ChunkIndex, Vec<Range<u64>>>;

/// The chunks of which only some of these rows are wanted.
fn partial_chunks(table: &ParquetTable, rows: &[Range<u64>]) -> PartialChunks {
    let mut partial = table.rows_by_chunk(rows);
    partial.retain(|&chunk, wanted| {
        let rows = table.layout().rows(chunk);
        wanted.iter().map(|range| range.end - range.start).sum::<u64>() < rows.end - rows.start
    });
    partial
}

/// The pages that hold the rows, if they are few of those of their chunks: an index selection [CS04 §4.2].
fn sparse_pages(
    table: &ParquetTable,
    groups: &[GroupIndex],
    rows: &[Range<u64>],
) -> Option<Vec<PageIndex>> {
    let layout = table.layout();
    let bytes = |pages: &[PageIndex]| pages.iter().map(|&page| layout.bytes_of(page)).sum::<u64>();
    let chunks = rows.iter().flat_map(|rows| layout.chunks_in(rows.clone()));
    let whole: Vec<_> = chunks.map(|chunk| layout.rows(chunk)).collect();
    let (all, selected) = (table.pages_for(groups, &whole), table.pages_for(groups, rows));
    (bytes(&selected).saturating_mul(SPARSE_PART) <= bytes(&all)).then_some(selected)
}
