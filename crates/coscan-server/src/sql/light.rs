//! Light statements, which need no slot because they take little. With them, users can inspect the server while queries
//! keep it busy.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};

use crate::system_tables::is_system_table;

/// Functions that take little for any arguments.
const FUNCTIONS: [&str; 12] = [
    "coscan_cancel",
    "current_database",
    "current_schema",
    "current_setting",
    "current_user",
    "now",
    "pg_advisory_unlock_all",
    "pg_backend_pid",
    "pg_is_in_recovery",
    "round",
    "session_user",
    "version",
];

/// The maximum number of parts of its expressions.
const EXPRESSIONS_MAX: usize = 500;

/// Aggregates that hold one value.
const AGGREGATES: [&str; 5] = ["avg", "count", "max", "min", "sum"];

/// Whether a plan reads no tables except system tables, joins none of them, and computes little.
pub(super) fn is_light(plan: &LogicalPlan) -> bool {
    let (mut is_light, mut expressions) = (true, 0);
    let mut looked = |is: bool| {
        is_light &= is;
        if is_light { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop }
    };
    let walked = plan.apply_with_subqueries(|plan| {
        let operator = looked(is_light_operator(plan));
        if operator == TreeNodeRecursion::Stop {
            return Ok(operator);
        }
        plan.apply_expressions(|expression| {
            expression.apply(|part| {
                expressions += 1;
                Ok(looked(expressions <= EXPRESSIONS_MAX && is_light_expression(part)))
            })
        })
    });
    walked.is_ok() && is_light
}

fn is_light_operator(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::EmptyRelation(_)
        | LogicalPlan::SubqueryAlias(_) => true,
        LogicalPlan::TableScan(scan) => {
            source_as_provider(&scan.source).is_ok_and(|table| is_system_table(table.as_ref()))
        }
        _ => false,
    }
}

/// Whether an expression takes little, apart from its parts.
fn is_light_expression(expression: &Expr) -> bool {
    match expression {
        Expr::ScalarFunction(call) => FUNCTIONS.contains(&call.func.name()),
        Expr::AggregateFunction(call) => AGGREGATES.contains(&call.func.name()),
        Expr::BinaryExpr(operation) => is_light_operation(operation.op),
        Expr::Alias(_)
        | Expr::Column(_)
        | Expr::Literal(..)
        | Expr::Placeholder(_)
        | Expr::Cast(_)
        | Expr::TryCast(_)
        | Expr::Case(_)
        | Expr::InList(_)
        | Expr::Not(_)
        | Expr::Negative(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_) => true,
        _ => false,
    }
}

fn is_light_operation(operation: Operator) -> bool {
    use Operator::{
        And, Divide, Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, Minus, Modulo,
        Multiply, NotEq, Or, Plus,
    };
    matches!(
        operation,
        And | Divide
            | Eq
            | Gt
            | GtEq
            | IsDistinctFrom
            | IsNotDistinctFrom
            | Lt
            | LtEq
            | Minus
            | Modulo
            | Multiply
            | NotEq
            | Or
            | Plus
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use datafusion::prelude::SessionContext;

    use super::*;

    #[tokio::test]
    async fn computing_is_not_light() {
        let context = SessionContext::new();
        for (sql, expected) in [
            ("SELECT 1", true),
            ("SELECT 1 + 2 * 3 AS x WHERE 2 < 3 AND 'a' <> 'b' OR NOT true", true),
            ("SELECT count(*), max(x) FROM (SELECT 1 AS x)", true),
            ("SELECT version(), now()", true),
            ("SELECT coalesce(NULL, 1)", false),
            ("SELECT 1 WHERE 1 BETWEEN 0 AND 2", false),
            ("SELECT levenshtein('a', 'b')", false),
            ("SELECT 1 WHERE length('a') = 1", false),
            ("SELECT 'a' || 'b'", false),
            ("SELECT array_agg(1)", false),
            ("SELECT (SELECT repeat('a', 2))", false),
            ("SELECT * FROM range(10)", false),
            ("SELECT 1 FROM (SELECT 1 AS x) a CROSS JOIN (SELECT 2 AS y) b", false),
            ("SELECT unnest([1, 2])", false),
        ] {
            let plan = context.state().create_logical_plan(sql).await.unwrap();
            assert_eq!(is_light(&plan), expected, "{sql}");
        }
    }
}
