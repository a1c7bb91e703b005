//! The part of a scan that a task reads.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use coscan_storage::table::FileVersion;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;

use crate::tables::snapshot_source::TableSnapshot;

/// The part of a scan that one task of a distributed query reads: whole chunks of a table at one moment, each by one task.
#[derive(Clone, Debug)]
pub struct ScanTask {
    /// The table, the same for all tasks.
    pub table: Arc<TaskTable>,
    /// The rows to read, counted from the start of the table: the rows of its chunks, in ascending order.
    pub rows: Vec<Range<u64>>,
    /// The columns of the output, as indexes into the schema of the table.
    pub projection: Vec<usize>,
    /// The filters on the schema of the table that rule chunks out. Some may change while the query runs.
    pub filters: Vec<Arc<dyn PhysicalExpr>>,
    /// The filters on the schema of the table that the scan evaluates.
    pub pushed_filters: Vec<Arc<dyn PhysicalExpr>>,
    /// The most rows that are needed of a partition.
    pub fetch: Option<usize>,
    /// The columns of the order of a top-k above, as indexes into the schema of the table. Empty if there is none.
    pub top_k: Vec<(usize, SortOptions)>,
    /// The number of partitions, the same for all tasks.
    pub partitions: usize,
}

/// A table at one moment, as all tasks of a query read it.
#[derive(Clone, Debug)]
pub struct TaskTable {
    /// Its name in EXPLAIN and reports.
    pub name: String,
    /// Its columns: those that files store, followed by those of directories.
    pub schema: SchemaRef,
    /// Its files, without changes of rows.
    pub snapshot: TableSnapshot,
}

impl ScanTask {
    /// The schema of the output.
    ///
    /// # Errors
    /// If a column does not exist.
    pub fn schema(&self) -> Result<SchemaRef> {
        Ok(Arc::new(Schema::project(&self.table.schema, &self.projection)?))
    }

    /// The number of rows to read before filters.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.rows.iter().map(|rows| rows.end - rows.start).sum()
    }
}

/// The chunk of a scan that is to be divided among tasks.
#[derive(Clone, Copy, Debug)]
pub struct ChunkToDivide<'a> {
    /// The file that holds it.
    pub file: &'a FileVersion,
    /// The row group that holds its first row. The chunks of one row group may have data pages in common, so one task
    /// should read them all.
    pub row_group: usize,
    /// The number of its rows.
    pub rows: u64,
    /// The stored bytes of the columns that the scan reads.
    pub bytes: u64,
}

/// The reason why a scan is not divided among tasks, to be read after "not distributed: ".
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotDivisible {
    /// Rows of the table were changed, and changes do not travel.
    ChangedRows(String),
    /// The table is read with options of its own, such as credentials, which do not travel.
    StoreOptions(String),
    /// Only the first few rows are needed.
    FirstRows(String),
    /// Rows are needed in the order of the table, or with their numbers.
    Order(String),
}

impl fmt::Display for NotDivisible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChangedRows(table) => write!(f, "rows of table {table} were changed"),
            Self::StoreOptions(table) => {
                write!(f, "table {table} is read with options of its own, such as credentials")
            }
            Self::FirstRows(table) => {
                write!(f, "only the first few rows of table {table} are needed")
            }
            Self::Order(table) => write!(f, "rows of table {table} are needed in its order"),
        }
    }
}
