//! The request of a query for a scan.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coscan_core::{ComputationId, Order};
use coscan_storage::table::ParquetTable;

use crate::chunks::batch::schema_of;
use crate::error::ScanError;
use crate::scans::selection::check_rows;
use crate::tables::table::SharedTable;

/// The query and the table of a scan, as reports and events name them. No decision depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanLabel {
    /// The id of the query, as the program that runs it counts them.
    pub query: Option<Arc<str>>,
    /// The name by which the query knows the table.
    pub table: Option<Arc<str>>,
}

/// The columns and rows of a table that a query needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanRequest {
    /// Columns, as indexes into the fields of the table's schema; none if only the number of rows matters.
    pub columns: Vec<usize>,
    /// Rows, as ranges from the start of the table. They ascend and do not overlap.
    pub rows: Vec<Range<u64>>,
    /// Whether rows have to come in the order of the table.
    pub order: Order,
    /// The number of workers that share the scan, at least one.
    pub workers: usize,
    /// The share of the query beside others, at least 1. One of weight 2 is served as if it had half as much left.
    pub weight: u32,
    /// What the query computes of each chunk, if it takes results from other queries that compute the same. Chunks on which
    /// one of them works are handed to it last.
    pub computation: Option<ComputationId>,
    /// The query and table that it is for.
    pub label: ScanLabel,
}

impl ScanRequest {
    /// A request for all rows of some columns, in any order, for one worker.
    #[must_use]
    pub fn of_columns(table: &SharedTable, columns: Vec<usize>) -> Self {
        let rows = std::iter::once(0..table.table().layout().row_count()).collect();
        Self {
            columns,
            rows,
            order: Order::Any,
            workers: 1,
            weight: 1,
            computation: None,
            label: ScanLabel::default(),
        }
    }

    /// The schema of the batches, if the table has the columns and the rows are in order.
    pub(crate) fn schema(&self, table: &ParquetTable) -> Result<SchemaRef, ScanError> {
        let schema = schema_of(table, &self.columns)?;
        check_rows(&self.rows)?;
        Ok(schema)
    }
}
