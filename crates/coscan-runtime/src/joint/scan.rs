//! A query's registered need of a joint table, and the batches that its workers take.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use coscan_core::{GroupIndex, Index, Order, ScanSpec};
use futures::{Stream, StreamExt};

use crate::driver::Driver;
use crate::error::ScanError;
use crate::joint::table::JointTable;
use crate::observe::metrics::ScanMetrics;
use crate::scans::handle::ScanHandle;
use crate::scans::parts::{ScanColumns, ScanParts};
use crate::scans::request::ScanLabel;
use crate::scans::worker_stream::WorkerStream;
use crate::tables::joint_layout::JointLayout;
use crate::tables::snapshot::runs;

/// The columns and joint chunks that a query needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointScanRequest {
    /// The columns of each table, as indexes into the fields of its schema; none if only the number of its rows
    /// matters.
    pub columns: Vec<Vec<usize>>,
    /// The joint chunks.
    pub chunks: Vec<usize>,
    /// The number of workers that share the scan, at least one.
    pub workers: usize,
    /// The share of the query beside others, at least 1. One of weight 2 is served as if it had half as much left.
    pub weight: u32,
    /// The query and table that it is for.
    pub label: ScanLabel,
}

/// A registered scan of a joint table. All workers of a query take from it. Each joint chunk goes to the worker that
/// asks first.
///
/// It ends when it and the streams of its workers are dropped. All that it held is then released.
#[derive(Debug)]
pub struct JointScan {
    handle: Arc<ScanHandle>,
    table: JointTable,
}

/// Rows of one table in a joint chunk.
#[derive(Clone, Debug)]
pub struct JointBatch {
    /// The joint chunk.
    pub chunk: usize,
    /// The position of the table.
    pub table: usize,
    /// The rows.
    pub batch: RecordBatch,
}

/// The batches of one worker of a joint scan: joint chunk after joint chunk, in the order in which the scheduler hands
/// them out. Within one, they come table by table, in the order of rows.
///
/// Drop it to stop. The other workers of the scan get all joint chunks but the one that it has already given rows of,
/// whose remaining rows are lost. After an error it ends, and so do the other workers of the scan.
pub struct JointStream {
    batches: WorkerStream,
    layout: Arc<JointLayout>,
}

impl JointScan {
    pub(crate) fn start(
        driver: &Arc<Driver>,
        table: &JointTable,
        request: JointScanRequest,
    ) -> Result<Arc<Self>, ScanError> {
        let (tables, layout) = (table.tables(), table.layout());
        if request.columns.len() != tables.len() {
            let (columns, tables) = (request.columns.len(), tables.len());
            return Err(ScanError::JointColumns { columns, tables });
        }
        let mut chunks = request.chunks;
        chunks.sort_unstable();
        let chunk_count = table.chunk_count();
        if let Some(&chunk) = chunks.last().filter(|&&chunk| chunk >= chunk_count) {
            return Err(ScanError::UnknownJointChunk { chunk, chunks: chunk_count });
        }
        let columns = tables.iter().zip(&request.columns);
        let columns = columns
            .map(|(table, columns)| ScanColumns::new(table.snapshot(), columns))
            .collect::<Result<Vec<_>, _>>()?;
        let mut groups = Vec::new();
        let mut first_group = 0;
        for (table, columns) in tables.iter().zip(&columns) {
            groups.extend(columns.groups().iter().map(|group| GroupIndex(first_group + group.0)));
            first_group += GroupIndex::from_usize(table.table().group_count()).0;
        }
        let spec = ScanSpec {
            table: table.id(),
            groups,
            chunks: runs(chunks.iter().filter_map(|&chunk| layout.core_chunk(chunk))),
            order: Order::Any,
            workers: request.workers,
            weight: request.weight,
            pages: None,
            computation: None,
        };
        let parts = ScanParts::joint(columns, Arc::clone(layout));
        let handle = ScanHandle::start(driver, table.clone(), &spec, parts, request.label)?;
        Ok(Arc::new(Self { handle, table: table.clone() }))
    }

    /// The batches that one of its workers takes. Call this once for each worker.
    ///
    /// # Panics
    /// If there is no such worker.
    #[must_use]
    pub fn worker(self: &Arc<Self>, worker: usize) -> JointStream {
        let batches = WorkerStream::new(&self.handle, worker);
        JointStream { batches, layout: Arc::clone(self.table.layout()) }
    }

    /// The joint table that it reads.
    #[must_use]
    pub fn table(&self) -> &JointTable {
        &self.table
    }

    /// The schema of the batches of a table, by its position.
    ///
    /// # Panics
    /// If there is no such table.
    #[must_use]
    pub fn schema(&self, table: usize) -> &SchemaRef {
        &self.handle.parts().columns_of(table).schema
    }

    /// Removes joint chunks that have not been handed out yet from its needs. Returns how many, without those that have
    /// no rows.
    pub fn prune(&self, chunks: &[usize]) -> usize {
        let known = chunks.iter().filter_map(|&chunk| self.table.layout().core_chunk(chunk));
        self.handle.driver().prune_scan(self.handle.id(), &known.collect::<Vec<_>>()).len()
    }

    /// Ends the scan now and releases all that it held. Its workers get [`ScanError::Cancelled`] if they ask again.
    pub fn cancel(&self) {
        self.handle.cancel();
    }

    /// Its counters so far. Chunks are joint chunks; those without rows are not counted.
    #[must_use]
    pub fn metrics(&self) -> ScanMetrics {
        self.handle.metrics()
    }
}

impl Stream for JointStream {
    type Item = Result<JointBatch, ScanError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.batches.poll_next_unpin(context);
        next.map(|next| {
            next.map(|batch| {
                let batch = batch?;
                let chunk = self.layout.joint_chunk(batch.chunk);
                Ok(JointBatch { chunk, table: batch.table, batch: batch.batch })
            })
        })
    }
}

impl std::fmt::Debug for JointStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JointStream").finish_non_exhaustive()
    }
}
