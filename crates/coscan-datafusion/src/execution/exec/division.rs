//! The division of a scan into the scans of tasks.

use std::ops::Range;
use std::sync::Arc;

use coscan_runtime::core::{ChunkIndex, Order};
use coscan_storage::table::{ParquetFile, ParquetTable};
use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion::prelude::SessionConfig;

use super::SharedScanExec;
use crate::distributed::task::{ChunkToDivide, NotDivisible, ScanTask, TaskTable};
use crate::execution::ranking::SortKey;
use crate::execution::row_filter;
use crate::planning::unshared_bytes::stored_bytes;
use crate::tables::snapshot_source::TableSnapshot;
use crate::tables::source::{PlanSettings, ScanSource, properties};

impl SharedScanExec {
    /// The chunks that the scan needs, in the order of the table, or the reason why it cannot be divided.
    ///
    /// # Errors
    /// See [`NotDivisible`].
    pub fn chunks_to_divide(&self) -> Result<Vec<ChunkToDivide<'_>>, NotDivisible> {
        self.check_divisible()?;
        let table = self.source.table.table();
        let columns = row_filter::columns_read(&self.projection, &self.pushed_filters);
        let mut chunks = Vec::with_capacity(self.needed.chunks.len());
        for &chunk in &self.needed.chunks {
            let rows = table.layout().rows(chunk);
            let (index, chunk) = table.place_of(chunk);
            let file = &table.parquet_files()[index];
            let row_group = file.first_row_group(chunk);
            let bytes = stored_bytes(table, &columns, std::slice::from_ref(&rows));
            let rows = rows.end - rows.start;
            chunks.push(ChunkToDivide { file: file.version(), row_group, rows, bytes });
        }
        Ok(chunks)
    }

    /// The tasks that read the chunks of [`Self::chunks_to_divide`]. `owners` has the task of each chunk.
    ///
    /// # Errors
    /// If the snapshot of the table cannot be described.
    ///
    /// # Panics
    /// If `owners` has another length, or names a task that does not exist.
    pub fn divide(
        &self,
        owners: &[usize],
        tasks: usize,
        partitions: usize,
    ) -> Result<Vec<ScanTask>> {
        assert_eq!(owners.len(), self.needed.chunks.len(), "every chunk has one owner");
        let parquet = self.source.table.table();
        let table = Arc::new(TaskTable {
            name: self.table_name().to_owned(),
            schema: self.source.schema(),
            snapshot: TableSnapshot::of_table(parquet)?,
        });
        let mut rows: Vec<Vec<Range<u64>>> = vec![Vec::new(); tasks];
        for (&chunk, &owner) in self.needed.chunks.iter().zip(owners) {
            let of_chunk = parquet.layout().rows(chunk);
            match rows[owner].last_mut() {
                Some(last) if last.end == of_chunk.start => last.end = of_chunk.end,
                _ => rows[owner].push(of_chunk),
            }
        }
        let task = |rows| ScanTask {
            table: Arc::clone(&table),
            rows,
            projection: self.projection.clone(),
            filters: self.filters.clone(),
            pushed_filters: self.pushed_filters.clone(),
            fetch: self.fetch,
            top_k: self.top_k_order.as_ref().map_or_else(Vec::new, SortKey::to_columns),
            partitions,
        };
        Ok(rows.into_iter().map(task).collect())
    }

    /// The scan of a task, of a source that has the table of the task.
    pub(crate) fn of_task(
        source: Arc<ScanSource>,
        task: &ScanTask,
        config: &SessionConfig,
    ) -> Result<Self> {
        let owned = chunks_of(source.table.table(), task)?;
        let settings = PlanSettings::of_session(config);
        let (projection, filters) = (task.projection.clone(), task.filters.clone());
        let mut scan = Self::new(source, projection, filters, settings, None)?;
        // Here, other chunks may be ruled out than where the query was planned.
        let mut needed = scan.needed.as_ref().clone();
        needed.chunks.retain(|chunk| owned.binary_search(chunk).is_ok());
        needed.total = owned.len();
        scan.properties =
            Arc::new(properties(&scan.source, &scan.projection, task.partitions, Vec::new())?);
        Ok(Self {
            needed: Arc::new(needed),
            pushed_filters: task.pushed_filters.clone(),
            fetch: task.fetch,
            top_k_order: SortKey::of_columns(task.top_k.clone()),
            ..scan
        })
    }

    /// Checks that the scan can be divided, in a time that does not grow with its chunks.
    ///
    /// # Errors
    /// See [`NotDivisible`].
    pub fn check_divisible(&self) -> Result<(), NotDivisible> {
        let table = self.source.table.table();
        let name = || self.table_name().to_owned();
        if table.is_changed() || table.inserted_file().is_some() {
            return Err(NotDivisible::ChangedRows(name()));
        }
        let has_options = |file: &Arc<ParquetFile>| file.version().store_url().fragment().is_some();
        if table.parquet_files().iter().any(has_options) {
            return Err(NotDivisible::StoreOptions(name()));
        }
        let is_few = |rows: usize| rows <= self.settings.batch_rows;
        if self.first_rows().is_some() || self.fetch.is_some_and(is_few) {
            return Err(NotDivisible::FirstRows(name()));
        }
        if self.order() == Order::InOrder || table.row_number_column().is_some() {
            return Err(NotDivisible::Order(name()));
        }
        Ok(())
    }
}

/// The chunks of a table whose rows a task reads, in ascending order.
///
/// # Errors
/// If its rows are not those of whole chunks: the table has other chunks where the task was made.
fn chunks_of(table: &ParquetTable, task: &ScanTask) -> Result<Vec<ChunkIndex>> {
    let other_chunks = || {
        exec_datafusion_err!(
            "table {} is divided into other chunks on this worker than where the query was planned: start all servers with \
             the same version of coscan and the same options",
            task.table.name
        )
    };
    let layout = table.layout();
    let mut chunks = Vec::new();
    for rows in &task.rows {
        if rows.start >= rows.end || rows.end > layout.row_count() {
            return Err(other_chunks());
        }
        let first = chunks.len();
        chunks.extend(layout.chunks_in(rows.clone()));
        let covered = chunks[first..].iter().map(|&chunk| layout.rows(chunk));
        let covered = covered.reduce(|first, last| first.start..last.end);
        if covered.as_ref() != Some(rows) {
            return Err(other_chunks());
        }
    }
    match chunks.is_sorted_by(|a, b| a < b) {
        true => Ok(chunks),
        false => Err(other_chunks()),
    }
}
