//! Conditions that are evaluated on just the columns that they read.

use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;

/// A condition, and the columns of a batch that it reads.
#[derive(Clone, Debug)]
pub(super) struct ProjectedPredicate {
    /// Its columns are numbered among those that it reads.
    expr: Arc<dyn PhysicalExpr>,
    /// The columns of the batch that it reads, in ascending order.
    projection: Vec<usize>,
}

impl ProjectedPredicate {
    /// # Errors
    /// If its columns cannot be numbered anew.
    pub(super) fn new(expr: &Arc<dyn PhysicalExpr>) -> Result<Self> {
        let mut projection: Vec<_> = collect_columns(expr).iter().map(Column::index).collect();
        projection.sort_unstable();
        projection.dedup();
        let place = |column: &Column| projection.binary_search(&column.index()).ok();
        match renumber_columns(expr, place)? {
            Some(expr) => Ok(Self { expr, projection }),
            None => internal_err!("{expr} has columns that it does not list"),
        }
    }

    pub(super) fn expr(&self) -> &Arc<dyn PhysicalExpr> {
        &self.expr
    }

    /// The columns that it reads, in ascending order.
    pub(super) fn projection(&self) -> &[usize] {
        &self.projection
    }

    /// The columns of a batch on which it is evaluated.
    ///
    /// # Errors
    /// If the batch lacks some of them.
    pub(super) fn project(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        Ok(batch.project(&self.projection)?)
    }

    /// Whether each row meets the condition; NULL where that is unknown. Takes the columns that [`Self::project`] returns.
    ///
    /// # Errors
    /// If it cannot be evaluated.
    pub(super) fn evaluate(&self, columns: &RecordBatch) -> Result<BooleanArray> {
        let met = self.evaluate_unless_true(columns)?;
        Ok(met.unwrap_or_else(|| BooleanBuffer::new_set(columns.num_rows()).into()))
    }

    /// The same, or `None` if the condition is `true`, whatever the columns are.
    ///
    /// # Errors
    /// If it cannot be evaluated.
    pub(super) fn evaluate_unless_true(
        &self,
        columns: &RecordBatch,
    ) -> Result<Option<BooleanArray>> {
        match self.expr.evaluate(columns)? {
            ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))) => Ok(None),
            met => Ok(Some(as_boolean_array(&met.into_array(columns.num_rows())?)?.clone())),
        }
    }
}

/// Gives the columns of an expression other numbers. Returns `None` if a column gets none.
///
/// # Errors
/// If an expression does not accept its new operands.
pub(crate) fn renumber_columns(
    expr: &Arc<dyn PhysicalExpr>,
    number: impl Fn(&Column) -> Option<usize>,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let mut has_all = true;
    let renumbered = Arc::clone(expr).transform(|part| {
        let Some(column) = part.downcast_ref::<Column>() else { return Ok(Transformed::no(part)) };
        let Some(index) = number(column) else {
            has_all = false;
            return Ok(Transformed::no(part));
        };
        Ok(Transformed::yes(Arc::new(Column::new(column.name(), index))))
    })?;
    Ok(has_all.then_some(renumbered.data))
}
