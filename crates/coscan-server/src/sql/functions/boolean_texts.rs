//! Texts that stand for booleans beside booleans, as in `flag = 't'`. In PostgreSQL, a literal has the type that it is
//! compared with.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Converts such literals to booleans.
#[derive(Debug)]
pub(in crate::sql) struct BooleanTexts;

impl ExprPlanner for BooleanTexts {
    fn plan_binary_op(
        &self,
        mut expression: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator::{And, Eq, NotEq, Or};

        if matches!(expression.op, Eq | NotEq | And | Or) {
            give_type(&mut expression.left, &mut expression.right, schema);
        }
        Ok(PlannerResult::Original(expression))
    }
}

/// Rewrites the expressions for which the planner does not call expression planners.
impl FunctionRewrite for BooleanTexts {
    fn name(&self) -> &str {
        "BooleanTexts"
    }

    fn rewrite(
        &self,
        mut expression: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        use Operator::{IsDistinctFrom, IsNotDistinctFrom};

        let is_changed = match &mut expression {
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: IsDistinctFrom | IsNotDistinctFrom,
                right,
            }) => give_type(left, right, schema),
            _ => false,
        };
        Ok(Transformed::new_transformed(expression, is_changed))
    }
}

/// Converts a literal beside a boolean. Returns whether there is one.
fn give_type(left: &mut Expr, right: &mut Expr, schema: &DFSchema) -> bool {
    let is_boolean =
        |side: &Expr| side.get_type(schema).is_ok_and(|data_type| data_type == DataType::Boolean);
    match (boolean(left), boolean(right)) {
        (Some(value), None) if is_boolean(right) => *left = value,
        (None, Some(value)) if is_boolean(left) => *right = value,
        _ => return false,
    }
    true
}

/// The boolean literal for a text, if it stands for one.
fn boolean(expression: &Expr) -> Option<Expr> {
    let Expr::Literal(value, _) = expression else { return None };
    let text = value.try_as_str()??.trim().to_ascii_lowercase();
    let value = match text.as_str() {
        "t" | "true" | "y" | "yes" | "on" | "1" => true,
        "f" | "false" | "n" | "no" | "off" | "0" => false,
        _ => return None,
    };
    Some(Expr::Literal(ScalarValue::from(value), None))
}
