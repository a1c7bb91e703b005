//! Refuses aggregates that hold much before they reserve memory. `string_agg` holds a separator for each row.
//! Aggregates that keep all their values hold them for each row as window functions.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// The maximum length of a separator, in bytes.
const SEPARATOR_BYTES_MAX: usize = 1024;

/// Aggregates that keep all their values.
const KEEPING: [&str; 2] = ["array_agg", "string_agg"];

/// Checks the aggregates of a plan.
///
/// # Errors
/// If an aggregate would hold too much.
pub(in crate::sql) fn check_aggregates(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expression| {
            expression.apply(|part| match part {
                Expr::AggregateFunction(call)
                    if call.func.name() == "string_agg"
                        && !call.params.args.get(1).is_none_or(is_short) =>
                {
                    Err(DataFusionError::ResourcesExhausted(format!(
                        "the separator of string_agg is a text of at most {SEPARATOR_BYTES_MAX} bytes, not an expression"
                    )))
                }
                Expr::WindowFunction(call) if KEEPING.contains(&call.fun.name()) => {
                    let name = call.fun.name();
                    Err(DataFusionError::NotImplemented(format!(
                        "{name} as a window function, which would keep all values for each row; use it with GROUP BY"
                    )))
                }
                _ => Ok(TreeNodeRecursion::Continue),
            })
        })
    })
    .map(|_| ())
}

fn is_short(separator: &Expr) -> bool {
    match separator {
        Expr::Literal(value, _) => value.size() <= size_of_val(value) + SEPARATOR_BYTES_MAX,
        Expr::Placeholder(_) => true, // It is looked at again with its value.
        Expr::Cast(cast) => is_short(&cast.expr),
        Expr::Alias(alias) => is_short(&alias.expr),
        _ => false,
    }
}
