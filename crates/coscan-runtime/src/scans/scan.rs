//! A query's registered need of a table.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use coscan_core::{ChunkIndex, Order, ScanId, ScanSpec};
use coscan_storage::table::ParquetTable;

use crate::driver::Driver;
use crate::error::{ExtendError, ScanError};
use crate::observe::metrics::ScanMetrics;
use crate::scans::handle::ScanHandle;
use crate::scans::parts::{ScanColumns, ScanParts};
use crate::scans::request::ScanRequest;
use crate::scans::selection::{check_rows, partial_chunks, sparse_pages};
use crate::tables::snapshot::Snapshot;
use crate::tables::table::SharedTable;

/// A registered scan. All workers of a query take from it. Each chunk goes to the worker that asks first.
///
/// It ends when it and the streams of its workers are dropped. All that it held is then released.
#[derive(Debug)]
pub struct Scan {
    handle: Arc<ScanHandle>,
    table: SharedTable,
}

impl Scan {
    pub(crate) fn start(
        driver: &Arc<Driver>,
        table: &SharedTable,
        request: ScanRequest,
        first: Option<&[ChunkIndex]>,
    ) -> Result<Arc<Self>, ScanError> {
        let parquet = table.table();
        check_rows(&request.rows)?;
        let table = match request.order {
            Order::Any => table.clone(),
            Order::InOrder => table.in_order(),
        };
        let snapshot = table.snapshot();
        let columns = ScanColumns::new(snapshot, &request.columns)?;
        let groups = columns.groups();
        let partial = partial_chunks(parquet, &request.rows);
        let pages = match partial.is_empty() {
            true => None,
            false => sparse_pages(parquet, &groups, &request.rows),
        };
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
            computation: request.computation,
        };
        let parts = ScanParts::of_table(columns, partial);
        let handle = ScanHandle::start(driver, table.clone(), &spec, parts, request.label)?;
        Ok(Arc::new(Self { handle, table }))
    }

    /// The schema of its record batches.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.handle.parts().columns_of(0).schema
    }

    /// The table that it reads.
    #[must_use]
    pub fn table(&self) -> &Arc<ParquetTable> {
        self.table.table()
    }

    /// The snapshot of the table that it reads.
    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        self.table.snapshot()
    }

    /// Adds chunks of its request to its needs. Chunks that it was handed before are handed out again. A worker whose
    /// stream has ended takes none of them; a new stream of it does.
    ///
    /// # Errors
    /// If the pool is too small for one of them, or queries hold the memory that the pool would need for it. Some may
    /// have been added by then: retry only [`ExtendError::left`], since chunks that were handed out come twice.
    pub fn extend(&self, chunks: &[ChunkIndex]) -> Result<(), ExtendError> {
        let snapshot = self.table.snapshot();
        let extended = self.driver().extend_scan(self.id(), &snapshot.core_runs_of(chunks));
        extended.map_err(|(error, left)| {
            let mut left: Vec<_> = left.into_iter().map(|chunk| snapshot.to_table(chunk)).collect();
            left.sort_unstable();
            ExtendError { error, left }
        })
    }

    /// Removes chunks that have not been handed out yet from its needs. Returns those, in any order.
    pub fn prune(&self, chunks: &[ChunkIndex]) -> Vec<ChunkIndex> {
        let snapshot = self.table.snapshot();
        let chunks: Vec<_> = chunks.iter().map(|&chunk| snapshot.to_core(chunk)).collect();
        let pruned = self.driver().prune_scan(self.id(), &chunks).into_iter();
        pruned.map(|chunk| snapshot.to_table(chunk)).collect()
    }

    /// Whether all its chunks have been handed out.
    #[must_use]
    pub fn is_handed_out(&self) -> bool {
        self.driver().is_handed_out(self.id())
    }

    /// The chunks that were handed out so far, each with its worker; none once it has ended.
    #[must_use]
    pub fn handed(&self) -> Vec<(ChunkIndex, usize)> {
        self.of_table(self.driver().handed_chunks(self.id()))
    }

    /// As [`Self::handed`], if all its chunks have been handed out.
    #[must_use]
    pub fn all_handed_out(&self) -> Option<Vec<(ChunkIndex, usize)>> {
        self.driver().all_handed_out(self.id()).map(|handed| self.of_table(handed))
    }

    /// Removes from its needs all chunks that have not been handed out yet, and those that workers return from now on
    /// because they cannot open them. Returns what was handed out, as [`Self::handed`] does.
    pub fn close(&self) -> Vec<(ChunkIndex, usize)> {
        self.of_table(self.driver().close_scan(self.id()))
    }

    fn of_table(&self, handed: Vec<(ChunkIndex, usize)>) -> Vec<(ChunkIndex, usize)> {
        let snapshot = self.table.snapshot();
        let of_table = |(chunk, worker)| (snapshot.to_table(chunk), worker);
        handed.into_iter().map(of_table).collect()
    }

    /// Chunks that have not been handed out yet, in ascending order; none once it has ended.
    #[must_use]
    pub fn remaining(&self) -> Vec<ChunkIndex> {
        let remaining = self.driver().remaining_chunks(self.id()).into_iter();
        let mut remaining: Vec<_> =
            remaining.map(|chunk| self.table.snapshot().to_table(chunk)).collect();
        remaining.sort_unstable();
        remaining
    }

    /// Ends the scan now and releases all that it held. Its workers get [`ScanError::Cancelled`] if they ask again.
    pub fn cancel(&self) {
        self.handle.cancel();
    }

    /// Its counters so far.
    #[must_use]
    pub fn metrics(&self) -> ScanMetrics {
        self.handle.metrics()
    }

    fn driver(&self) -> &Arc<Driver> {
        self.handle.driver()
    }

    fn id(&self) -> ScanId {
        self.handle.id()
    }

    pub(crate) fn handle(&self) -> &Arc<ScanHandle> {
        &self.handle
    }
}
