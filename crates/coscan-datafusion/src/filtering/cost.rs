//! The cost of conditions that cannot fail.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, NotExpr,
};

/// The costs of comparing two texts, and of matching a text with a pattern, if comparing two numbers costs 1. Measured on string
/// views.
const TEXTS: u32 = 16;
const PATTERN: u32 = 2 * TEXTS;

/// A list takes about as long as so many comparisons.
const LIST_FACTOR: u32 = 2;

/// Longer patterns may be refused.
const PATTERN_BYTES_MAX: usize = 4096;

/// The approximate cost of a condition for a row; `None` if it may fail on some rows.
pub(super) fn cost(condition: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<u32> {
    let of_operands = || {
        let operands = condition.children().into_iter().map(|operand| cost(operand, schema));
        operands.sum::<Option<u32>>()
    };
    if condition.is::<Column>() || condition.is::<Literal>() {
        return Some(0);
    }
    let own = if let Some(binary) = condition.downcast_ref::<BinaryExpr>() {
        match binary.op() {
            Operator::And | Operator::Or => 1,
            Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom => of_values(binary.left(), schema)?,
            _ => return None,
        }
    } else if let Some(list) = condition.downcast_ref::<InListExpr>() {
        LIST_FACTOR * of_values(list.expr(), schema)?
    } else if let Some(like) = condition.downcast_ref::<LikeExpr>() {
        let pattern = like.pattern().downcast_ref::<Literal>()?.value();
        (pattern.size() <= PATTERN_BYTES_MAX).then_some(PATTERN)?
    } else if condition.is::<NotExpr>()
        || condition.is::<IsNullExpr>()
        || condition.is::<IsNotNullExpr>()
    {
        1
    } else {
        return None;
    };
    Some(own + of_operands()?)
}

/// The cost of comparing two values of the type of an expression; `None` if that may fail.
fn of_values(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<u32> {
    let data_type = expr.data_type(schema).ok()?;
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(TEXTS),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Some(TEXTS),
        _ if data_type.is_primitive() || data_type == DataType::Boolean => Some(1),
        _ => None,
    }
}
