//! Filters that reject NaN: only for those do bounds of floating-point columns, which leave NaN out, rule rows out.
//!
//! Arrow orders NaN above all other values, or below them all if it is negative.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, Literal};

/// Whether a filter rejects every row in which this column is NaN, whatever the other columns hold.
pub(crate) fn rejects_nan(filter: &Arc<dyn PhysicalExpr>, column: &str) -> bool {
    let rejects = rejects(filter, column);
    rejects.positive && rejects.negative
}

/// Which NaN a filter rejects, by sign.
#[derive(Clone, Copy, Default)]
struct Rejects {
    positive: bool,
    negative: bool,
}

fn rejects(filter: &Arc<dyn PhysicalExpr>, column: &str) -> Rejects {
    if let Some(list) = filter.downcast_ref::<InListExpr>() {
        let is_numbers = !list.negated() && list.list().iter().all(is_number);
        let all = is_numbers && is_column(list.expr(), column);
        return Rejects { positive: all, negative: all };
    }
    let Some(binary) = filter.downcast_ref::<BinaryExpr>() else { return Rejects::default() };
    let (left, right) = (binary.left(), binary.right());
    let both = |join: fn(bool, bool) -> bool| {
        let (left, right) = (rejects(left, column), rejects(right, column));
        Rejects {
            positive: join(left.positive, right.positive),
            negative: join(left.negative, right.negative),
        }
    };
    let operator = match binary.op() {
        Operator::And => return both(|left, right| left || right),
        Operator::Or => return both(|left, right| left && right),
        operator if is_column(left, column) && is_number(right) => *operator,
        operator if is_number(left) && is_column(right, column) => match operator.swap() {
            Some(swapped) => swapped,
            None => return Rejects::default(),
        },
        _ => return Rejects::default(),
    };
    Rejects {
        positive: matches!(operator, Operator::Eq | Operator::Lt | Operator::LtEq),
        negative: matches!(operator, Operator::Eq | Operator::Gt | Operator::GtEq),
    }
}

fn is_column(expression: &Arc<dyn PhysicalExpr>, name: &str) -> bool {
    expression.downcast_ref::<Column>().is_some_and(|column| column.name() == name)
}

/// Whether an expression is a floating-point literal that is not NaN.
fn is_number(expression: &Arc<dyn PhysicalExpr>) -> bool {
    let literal = expression.downcast_ref::<Literal>().map(Literal::value);
    match literal {
        Some(ScalarValue::Float16(Some(value))) => !value.is_nan(),
        Some(ScalarValue::Float32(Some(value))) => !value.is_nan(),
        Some(ScalarValue::Float64(Some(value))) => !value.is_nan(),
        _ => false,
    }
}
