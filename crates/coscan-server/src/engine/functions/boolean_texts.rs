//! Texts that stand for booleans beside booleans, as in `flag = 't'`: in PostgreSQL, a literal has the type that it is
//! compared with.

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Gives such literals their type.
#[derive(Debug)]
pub(in crate::engine) struct BooleanTexts;

impl ExprPlanner for BooleanTexts {
    fn plan_binary_op(
        &self,
        mut expression: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator::{And, Eq, NotEq, Or};

        let is_boolean = |side: &Expr| {
            side.get_type(schema).is_ok_and(|data_type| data_type == DataType::Boolean)
        };
        if matches!(expression.op, Eq | NotEq | And | Or) {
            let RawBinaryExpr { left, right, .. } = &mut expression;
            match (boolean(left), boolean(right)) {
                (Some(value), None) if is_boolean(right) => *left = value,
                (None, Some(value)) if is_boolean(left) => *right = value,
                _ => {}
            }
        }
        Ok(PlannerResult::Original(expression))
    }
}

/// The literal for a text that stands for a boolean.
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
