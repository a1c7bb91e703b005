//! Texts that stand for booleans beside booleans, as in `flag = 't'`: in PostgreSQL, a literal has the type that it is
//! compared with.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

/// Gives such literals their type.
#[derive(Debug)]
pub(in crate::engine) struct BooleanTexts;

impl FunctionRewrite for BooleanTexts {
    fn name(&self) -> &str {
        "BooleanTexts"
    }

    fn rewrite(
        &self,
        expression: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &expression else {
            return Ok(Transformed::no(expression));
        };
        let is_boolean = |side: &Expr| {
            side.get_type(schema).is_ok_and(|data_type| data_type == DataType::Boolean)
        };
        let compares = matches!(
            op,
            Operator::Eq
                | Operator::NotEq
                | Operator::IsDistinctFrom
                | Operator::IsNotDistinctFrom
                | Operator::And
                | Operator::Or
        );
        let pair = match (boolean(left), boolean(right)) {
            (Some(value), None) if compares && is_boolean(right) => (value, right.as_ref().clone()),
            (None, Some(value)) if compares && is_boolean(left) => (left.as_ref().clone(), value),
            _ => return Ok(Transformed::no(expression)),
        };
        let (left, right) = (Box::new(pair.0), Box::new(pair.1));
        Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op: *op, right })))
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
