//! A rule of the logical optimizer that restricts DELETE and UPDATE to the rows of their WHERE, or refuses them.
//!
//! DataFusion 55.2 passes a table the filters that it finds directly above the scan. By then a subquery has become a
//! join, and a condition that is never true an empty relation. Without filters, all rows are changed
//! ([how](https://github.com/apache/datafusion/issues/24654)).

use datafusion::common::not_impl_err;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{DmlStatement, Expr, LogicalPlan, WriteOp};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Refuses changes whose filters the engine would lose. It must run after all other rules.
#[derive(Debug)]
pub(crate) struct ChangedRows;

impl ChangedRows {
    pub(crate) const NAME: &'static str = "coscan_changed_rows";
}

impl OptimizerRule for ChangedRows {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if let LogicalPlan::Dml(DmlStatement { op, input, table_name, .. }) = &plan
            && matches!(op, WriteOp::Delete | WriteOp::Update)
            && !keeps_filters(input)
        {
            return not_impl_err!(
                "this {} would change every row of {table_name}, since DataFusion loses a WHERE with a subquery or that is \
                 never true, and a LIMIT: compare the table's columns with values",
                op.name().to_uppercase()
            );
        }
        Ok(Transformed::no(plan))
    }
}

/// Whether the engine finds all filters of a plan.
fn keeps_filters(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => keeps_filters(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => keeps_filters(&alias.input),
        LogicalPlan::Filter(filter) => {
            !has_subquery(&filter.predicate) && keeps_filters(&filter.input)
        }
        LogicalPlan::TableScan(scan) => scan.fetch.is_none(),
        _ => false,
    }
}

fn has_subquery(filter: &Expr) -> bool {
    let is_subquery = |part: &Expr| {
        matches!(part, Expr::Exists(_) | Expr::InSubquery(_) | Expr::ScalarSubquery(_))
    };
    filter.exists(|part| Ok(is_subquery(part))).unwrap_or(true)
}
