//! Separators of `string_agg`. The aggregate holds one for each row before it asks for memory.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// The longest, in bytes.
const BYTES_MAX: usize = 1024;

/// Refuses separators that are long, or computed.
///
/// # Errors
/// If there is such a separator.
pub(in crate::engine) fn check_separators(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expression| {
            expression.apply(|part| match part {
                Expr::AggregateFunction(call)
                    if call.func.name() == "string_agg"
                        && !call.params.args.get(1).is_none_or(is_short) =>
                {
                    Err(DataFusionError::ResourcesExhausted(format!(
                        "the separator of string_agg is a text of at most {BYTES_MAX} bytes, not an expression"
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
        Expr::Literal(value, _) => value.size() <= size_of_val(value) + BYTES_MAX,
        Expr::Placeholder(_) => true, // It is looked at again with its value.
        Expr::Cast(cast) => is_short(&cast.expr),
        Expr::Alias(alias) => is_short(&alias.expr),
        _ => false,
    }
}
