//! Dynamic filters on the columns of an operator.

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;

use super::key_bitmap::{KeyBitmap, KeyRange};
use crate::execution::exec::SharedScanExec;
use crate::filtering::projected_predicate::ProjectedPredicate;

/// There is a bitmap only for keys that have at least this many rows each on average, or as many as there are partitions.
const ROWS_PER_KEY_MIN: u64 = 8;

/// A dynamic filter on the columns of an operator's input.
#[derive(Debug)]
pub(crate) struct DynamicFilter {
    predicate: ProjectedPredicate,
    /// The keys that pass, if it has one column, which according to statistics holds integers, and few compared with the rows.
    bitmap: Option<Arc<KeyBitmap>>,
}

impl Clone for DynamicFilter {
    /// A copy that starts without bits.
    fn clone(&self) -> Self {
        let keys = self.bitmap.as_ref().map(|bitmap| bitmap.keys());
        Self::with_keys(self.predicate.clone(), keys)
    }
}

impl DynamicFilter {
    /// One filter in two forms: on the columns of the scan's table, and on the columns of an operator above the scan.
    ///
    /// # Errors
    /// If its columns cannot be numbered anew.
    pub(crate) fn new(
        on_table: &Arc<dyn PhysicalExpr>,
        on_output: &Arc<dyn PhysicalExpr>,
        scan: &SharedScanExec,
    ) -> Result<Self> {
        let mut columns = collect_columns(on_table).into_iter();
        let range = match (columns.next(), columns.next()) {
            (Some(column), None) => scan.value_range(column.index()),
            _ => None,
        };
        let keys = range.and_then(|(first, last)| KeyRange::new(first, last));
        // Evaluating the filter of a partitioned join takes longer the more partitions there are.
        let rows_per_key_min = ROWS_PER_KEY_MIN.max(scan.partitions_max() as u64);
        let keys = keys.filter(|keys| keys.count() <= scan.row_count() / rows_per_key_min);
        Ok(Self::with_keys(ProjectedPredicate::new(on_output)?, keys))
    }

    /// A filter with a bitmap of these keys.
    pub(super) fn with_keys(predicate: ProjectedPredicate, keys: Option<KeyRange>) -> Self {
        Self { predicate, bitmap: keys.map(|keys| Arc::new(KeyBitmap::new(keys))) }
    }

    pub(super) fn predicate(&self) -> &ProjectedPredicate {
        &self.predicate
    }

    pub(super) fn bitmap(&self) -> Option<&Arc<KeyBitmap>> {
        self.bitmap.as_ref()
    }

    /// The names of its columns, for EXPLAIN.
    pub(super) fn column_names(&self, input: &Schema) -> String {
        let names = self.predicate.projection().iter().map(|&column| input.field(column).name());
        names.map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}
