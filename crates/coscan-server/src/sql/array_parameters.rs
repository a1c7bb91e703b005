//! Array parameters in which a value is searched: `x = ANY($1)`.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan};

use crate::sql::decimal_digits;

/// The digits after the point of decimals that are made of clients' numbers, unless they are compared with numbers that
/// have more.
const SCALE: i8 = 10;

/// The maximum number of digits of an integer of 64 bits.
const INTEGER_DIGITS: i16 = 20;

/// Gives parameters without a type, in which a value is searched, the type of an array of such values. Decimals are
/// compared with at least ten digits after the point, since DataFusion finds no decimal among decimals of another
/// scale.
pub(super) fn infer_arrays(plan: LogicalPlan) -> Result<LogicalPlan> {
    let inferred = plan.transform_up_with_subqueries(|plan| {
        let schema = merge_schema(&plan.inputs());
        plan.map_expressions(|expression| expression.transform(|part| Ok(infer(part, &schema))))
    });
    inferred.map(|inferred| inferred.data)
}

fn infer(mut expression: Expr, schema: &DFSchema) -> Transformed<Expr> {
    // The parser turns `x = ANY(array)` into a call.
    if let Expr::ScalarFunction(ScalarFunction { func, args }) = &mut expression
        && func.name() == "array_has"
        && let [array, value] = &mut args[..]
        && let Ok(value_type) = value.get_type(schema)
    {
        if let Expr::Placeholder(Placeholder { field: None, .. }) = array
            && let Some(element_type) = element_type(&value_type)
        {
            cast(array, DataType::new_list(element_type, true));
        }
        if is_decimals(array)
            && let Some(decimal) = decimal(&value_type)
        {
            cast(array, DataType::new_list(decimal.clone(), true));
            cast(value, decimal);
        }
        return Transformed::yes(expression);
    }
    Transformed::no(expression)
}

/// Whether an array is a parameter with decimals.
fn is_decimals(array: &Expr) -> bool {
    let Expr::Cast(cast) = array else { return false };
    let DataType::List(element) = cast.field.data_type() else { return false };
    matches!(*cast.expr, Expr::Placeholder(_)) && element.data_type().is_decimal()
}

/// The type in which clients send values of this type, or `None` if they cannot send them in an array.
fn element_type(value_type: &DataType) -> Option<DataType> {
    match value_type {
        DataType::Null | DataType::Utf8View | DataType::LargeUtf8 => Some(DataType::Utf8),
        DataType::Dictionary(_, of) => element_type(of),
        of if of.is_decimal() => decimal(of),
        of if of.is_nested() => None,
        of => Some(of.clone()),
    }
}

/// A decimal type for all integers and decimals of a type, or `None` if the type has other values.
fn decimal(value_type: &DataType) -> Option<DataType> {
    let of_integers = value_type.is_integer().then_some((INTEGER_DIGITS, 0));
    let (whole_digits, scale) = decimal_digits(value_type).or(of_integers)?;
    let scale = scale.max(SCALE);
    let is_wide = whole_digits + i16::from(scale) > i16::from(DECIMAL128_MAX_PRECISION);
    Some(match is_wide {
        true => DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale),
        false => DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale),
    })
}

fn cast(expression: &mut Expr, to: DataType) {
    if let Expr::Cast(cast) = expression
        && *cast.field.data_type() == to
    {
        return;
    }
    *expression = Expr::Cast(Cast::new(Box::new(std::mem::take(expression)), to));
}
