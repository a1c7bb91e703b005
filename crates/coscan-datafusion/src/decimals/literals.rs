//! Decimal literals with the scale of what they are added to or subtracted from.
//!
//! `1 - l_discount` is DECIMAL(20, 0) - DECIMAL(15, 2). Where scales differ, arrow multiplies both operands by a power of
//! ten in each row, and checks the products. With `1.00` as the literal it only subtracts. The result keeps its type, since
//! that depends on the larger scale and on the digits before the point.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

/// A sum or difference of decimals whose literal has the scale of its partner. `None` if the expression stays.
pub(super) fn with_equal_scales(expr: &BinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let BinaryExpr { left, op, right } = expr;
    if !matches!(op, Operator::Plus | Operator::Minus) {
        return None;
    }
    let (left, right) = match (rescaled(left, right, schema), rescaled(right, left, schema)) {
        (Some(literal), _) => (Box::new(literal), right.clone()),
        (None, Some(literal)) => (left.clone(), Box::new(literal)),
        (None, None) => return None,
    };
    Some(Expr::BinaryExpr(BinaryExpr { left, op: *op, right }))
}

/// A literal with the scale of its partner, if that is larger and the digits fit.
fn rescaled(literal: &Expr, partner: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::Literal(ScalarValue::Decimal128(Some(value), precision, scale), metadata) = literal
    else {
        return None;
    };
    let DataType::Decimal128(_, wanted) = partner.get_type(schema).ok()? else { return None };
    let added = wanted.checked_sub(*scale).and_then(|added| u8::try_from(added).ok())?;
    let precision = precision.checked_add(added).filter(|precision| (1..=38).contains(precision));
    let value = value.checked_mul(10_i128.checked_pow(added.into())?)?;
    let is_changed = added > 0;
    let rescaled = ScalarValue::Decimal128(Some(value), precision?, wanted);
    is_changed.then(|| Expr::Literal(rescaled, metadata.clone()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::logical_expr::{col, lit};

    use super::*;

    fn schema() -> DFSchema {
        let field =
            |name, precision, scale| Field::new(name, DataType::Decimal128(precision, scale), true);
        let fields = vec![field("cents", 15, 2), field("whole", 38, 0), field("fine", 38, 30)];
        DFSchema::try_from(Schema::new(fields)).unwrap()
    }

    fn decimal(value: i128, precision: u8, scale: i8) -> Expr {
        lit(ScalarValue::Decimal128(Some(value), precision, scale))
    }

    #[test]
    fn literals_take_the_larger_scale_of_their_partner_and_the_type_stays() {
        let schema = schema();
        for (expr, expected) in [
            (decimal(1, 20, 0) - col("cents"), decimal(100, 22, 2) - col("cents")),
            (col("cents") + decimal(-7, 3, 1), col("cents") + decimal(-70, 4, 2)),
        ] {
            let before = expr.get_type(&schema).unwrap();
            let Expr::BinaryExpr(expr) = expr else { panic!("{expr} has an operator") };
            let rewritten = with_equal_scales(&expr, &schema).unwrap();
            assert_eq!(rewritten, expected);
            assert_eq!(rewritten.get_type(&schema).unwrap(), before);
        }
    }

    #[test]
    fn other_expressions_stay() {
        let schema = schema();
        for expr in [
            decimal(1, 20, 0) * col("cents"),
            decimal(100, 22, 2) - col("cents"),
            decimal(1000, 22, 3) - col("cents"),
            decimal(1, 20, 0) - col("whole"),
            // More digits than a decimal has.
            decimal(1, 20, 0) - col("fine"),
            lit(ScalarValue::Decimal128(None, 20, 0)) - col("cents"),
        ] {
            let Expr::BinaryExpr(expr) = expr else { panic!("{expr} has an operator") };
            assert_eq!(with_equal_scales(&expr, &schema), None, "{expr}");
        }
    }
}
