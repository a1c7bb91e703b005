//! Filters that a scan evaluates itself, if the session sets `datafusion.execution.parquet.pushdown_filters`.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::{BatchCoalescer, filter_record_batch};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::cast::as_boolean_array;
use datafusion::error::Result;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{PhysicalExpr, conjunction_opt};

/// The columns that a scan reads, as indexes into the table's schema: the columns of its output, followed by those that
/// only its filters use.
pub(crate) fn columns_read(projection: &[usize], filters: &[Arc<dyn PhysicalExpr>]) -> Vec<usize> {
    let mut columns = projection.to_vec();
    let mut others: Vec<_> =
        filters.iter().flat_map(collect_columns).map(|column| column.index()).collect();
    others.sort_unstable();
    others.dedup();
    others.retain(|column| !projection.contains(column));
    columns.append(&mut others);
    columns
}

/// Removes rows from batches, and coalesces the rest into batches of the usual size, as the engine's own filter does.
pub(crate) struct RowFilter {
    /// The predicate on the columns that are read.
    predicate: Arc<dyn PhysicalExpr>,
    /// The columns of the output among those that are read, which are the first ones.
    given: Vec<usize>,
    passed: BatchCoalescer,
}

impl RowFilter {
    /// Creates the filter of a scan from its columns and its filters on the table's schema. Returns `None` if there are
    /// no filters.
    pub(crate) fn new(
        projection: &[usize],
        filters: &[Arc<dyn PhysicalExpr>],
        table_schema: &Schema,
        batch_rows: usize,
    ) -> Result<Option<Self>> {
        let Some(predicate) = conjunction_opt(filters.iter().cloned()) else { return Ok(None) };
        let read = table_schema.project(&columns_read(projection, filters))?;
        let given: SchemaRef = Arc::new(table_schema.project(projection)?);
        let batch_rows = batch_rows.max(1);
        let passed = BatchCoalescer::new(given, batch_rows)
            .with_biggest_coalesce_batch_size(Some(batch_rows / 2));
        Ok(Some(Self {
            predicate: reassign_expr_columns(predicate, &read)?,
            given: (0..projection.len()).collect(),
            passed,
        }))
    }

    /// Filters a batch of all columns that are read.
    pub(crate) fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let passes = self.predicate.evaluate(batch)?.into_array(batch.num_rows())?;
        let given = batch.project(&self.given)?;
        self.passed.push_batch(filter_record_batch(&given, as_boolean_array(&passes)?)?)?;
        Ok(())
    }

    /// The number of rows that have passed and do not fill a batch yet.
    pub(crate) fn waiting_rows(&self) -> usize {
        self.passed.get_buffered_rows()
    }

    /// Creates a batch of the rows that have passed, even if they do not fill one.
    pub(crate) fn finish(&mut self) -> Result<()> {
        Ok(self.passed.finish_buffered_batch()?)
    }

    /// The next complete batch.
    pub(crate) fn next(&mut self) -> Option<RecordBatch> {
        self.passed.next_completed_batch()
    }
}
