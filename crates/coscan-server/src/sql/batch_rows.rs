//! The number of rows of a batch, which is smaller for wide rows. The memory that expressions and grouping sets hold
//! for a batch belongs to no operator, so that no limit on memory counts it.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, GroupingSet, LogicalPlan};

/// The approximate maximum bytes of a batch. Several queries may have one in each partition, and no limit counts them.
const BATCH_BYTES_MAX: usize = 32 << 20;

/// The approximate bytes of a value.
const VALUE_BYTES: usize = 16;

/// Values of the statement with more bytes are long.
const LONG_BYTES: usize = 1024;

/// The number of copies of a long text of the statement, where it is repeated for each row.
const COPIES: usize = 8;

/// The session with batches of as few rows as an optimized plan needs to keep to the limit on their bytes.
pub(super) fn with_small_batches(state: &SessionState, plan: &LogicalPlan) -> Result<SessionState> {
    let mut state = state.clone();
    let rows = rows_of_batch(plan, state.config().batch_size())?;
    if rows != state.config().batch_size() {
        *state.config_mut() = state.config().clone().with_batch_size(rows);
    }
    Ok(state)
}

/// The number of rows of a plan's batches, at most `rows`.
fn rows_of_batch(plan: &LogicalPlan, rows: usize) -> Result<usize> {
    let mut widest = 1_usize;
    plan.apply_with_subqueries(|plan| {
        let mut width = plan.schema().fields().len() * VALUE_BYTES;
        plan.apply_expressions(|expression| {
            expression.apply(|part| {
                width = width.saturating_add(match part {
                    Expr::Literal(value, _) if value.size() > LONG_BYTES => {
                        value.size().saturating_mul(COPIES)
                    }
                    Expr::GroupingSet(sets) => values_of(sets).saturating_mul(VALUE_BYTES),
                    _ => 0,
                });
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        widest = widest.max(width);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(rows.min(BATCH_BYTES_MAX / widest).max(1))
}

/// The number of values that grouping sets make of a row.
fn values_of(sets: &GroupingSet) -> usize {
    let (sets, columns) = match sets {
        GroupingSet::Rollup(columns) => (columns.len() + 1, columns.len()),
        GroupingSet::Cube(columns) => {
            let sets = u32::try_from(columns.len()).ok().and_then(|n| 1_usize.checked_shl(n));
            (sets.unwrap_or(usize::MAX), columns.len())
        }
        GroupingSet::GroupingSets(sets) => {
            (sets.len(), sets.iter().map(Vec::len).max().unwrap_or_default())
        }
    };
    sets.saturating_mul(columns)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use datafusion::prelude::SessionContext;

    use super::*;

    #[tokio::test]
    async fn wide_rows_come_a_few_at_a_time() {
        let context = SessionContext::new();
        let columns: String = (0..4000).map(|n| format!(", x AS c{n}")).collect();
        let long = "x".repeat(1 << 20);
        for (sql, expected) in [
            ("SELECT x".to_owned(), 8192),
            (format!("SELECT x{columns}"), 524),
            (format!("SELECT x, '{long}'"), 3),
            (
                "SELECT 1 GROUP BY CUBE (x, x+1, x+2, x+3, x+4, x+5, x+6, x+7, x+8, x+9)"
                    .to_owned(),
                204,
            ),
        ] {
            let (select, rest) = sql.split_once(" GROUP").unwrap_or((&sql, ""));
            let rest = if rest.is_empty() { String::new() } else { format!("GROUP{rest}") };
            let sql = format!("{select} FROM (SELECT 1 AS x) q {rest}");
            let plan = context.state().create_logical_plan(&sql).await.unwrap();
            assert_eq!(rows_of_batch(&plan, 8192).unwrap(), expected, "{sql:.99}");
        }
    }
}
