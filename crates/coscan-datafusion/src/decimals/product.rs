//! The product of two decimals. The engine multiplies them with 128 bits and checks each product. Most values have 64 bits,
//! whatever their type could hold, and the product of two of those always fits.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::kernels::numeric::mul;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef};
use datafusion::common::{DFSchema, ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply;

/// The values after which it is asked whether one has more than 64 bits: a column of large values costs one block in vain.
const BLOCK: usize = 256;

/// The function of products.
pub(crate) static PRODUCT: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(DecimalProduct::new())));

/// A product of decimals as a call of [`DecimalProduct`]. `None` if the expression is none.
pub(super) fn of_decimals(expr: &BinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let BinaryExpr { left, op: Operator::Multiply, right } = expr else { return None };
    let is_decimal = |expr: &Expr| matches!(expr.get_type(schema), Ok(DataType::Decimal128(_, _)));
    let arguments = || vec![left.as_ref().clone(), right.as_ref().clone()];
    let product = || ScalarFunction::new_udf(Arc::clone(&PRODUCT), arguments());
    (is_decimal(left) && is_decimal(right)).then(|| Expr::ScalarFunction(product()))
}

/// `decimal_product(a, b)` is `a * b`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct DecimalProduct {
    signature: Signature,
}

impl DecimalProduct {
    fn new() -> Self {
        Self { signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for DecimalProduct {
    fn name(&self) -> &str {
        "decimal_product"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let [left, right] = arguments else { return internal_err!("a product has two factors") };
        BinaryTypeCoercer::new(left, &Operator::Multiply, right).get_result_type()
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<_> =
            arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let is_nullable = arguments.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, is_nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = &arguments.args[..] else {
            return internal_err!("a product has two factors");
        };
        let product = match (left, right) {
            (ColumnarValue::Array(left), ColumnarValue::Array(right)) => of_arrays(left, right),
            (ColumnarValue::Array(array), ColumnarValue::Scalar(scalar))
            | (ColumnarValue::Scalar(scalar), ColumnarValue::Array(array)) => {
                of_scalar(array, scalar)
            }
            (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)) => None,
        };
        let Some((values, nulls)) = product else { return apply(left, right, mul) };
        let product = Decimal128Array::try_new(values.into(), nulls)?;
        let product = product.with_data_type(arguments.return_field.data_type().clone());
        Ok(ColumnarValue::Array(Arc::new(product)))
    }
}

type Values = (Vec<i128>, Option<NullBuffer>);

/// The products, if all values have 64 bits.
fn of_arrays(left: &ArrayRef, right: &ArrayRef) -> Option<Values> {
    let left = left.as_primitive_opt::<Decimal128Type>()?;
    let right = right.as_primitive_opt::<Decimal128Type>()?;
    let pairs = left.values().iter().copied().zip(right.values().iter().copied());
    Some((products(pairs)?, NullBuffer::union(left.nulls(), right.nulls())))
}

fn of_scalar(array: &ArrayRef, scalar: &ScalarValue) -> Option<Values> {
    let ScalarValue::Decimal128(Some(factor), _, _) = scalar else { return None };
    let array = array.as_primitive_opt::<Decimal128Type>()?;
    let pairs = array.values().iter().map(|&value| (value, *factor));
    Some((products(pairs)?, array.nulls().cloned()))
}

fn products(mut pairs: impl ExactSizeIterator<Item = (i128, i128)>) -> Option<Vec<i128>> {
    let mut products = Vec::with_capacity(pairs.len());
    while pairs.len() > 0 {
        let mut have_64_bits = true;
        let product = |(left, right): (i128, i128)| {
            let (short_left, short_right) = (left as i64, right as i64);
            have_64_bits &= i128::from(short_left) == left && i128::from(short_right) == right;
            i128::from(short_left) * i128::from(short_right)
        };
        products.extend(pairs.by_ref().take(BLOCK).map(product));
        if !have_64_bits {
            return None;
        }
    }
    Some(products)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use datafusion::config::ConfigOptions;

    use super::*;

    const LARGE: i128 = i64::MAX as i128;

    fn factors(values: &[Option<i128>], scale: i8) -> ArrayRef {
        let array: Decimal128Array = values.iter().copied().collect();
        Arc::new(array.with_precision_and_scale(20, scale).unwrap())
    }

    /// The product by this function, and by the engine.
    fn both(left: ColumnarValue, right: ColumnarValue) -> [Result<ArrayRef>; 2] {
        let function = DecimalProduct::new();
        let types = [left.data_type(), right.data_type()];
        let field = Field::new("product", function.return_type(&types).unwrap(), true);
        let fields = types.map(|data_type| Arc::new(Field::new("factor", data_type, true)));
        let arguments = ScalarFunctionArgs {
            args: vec![left.clone(), right.clone()],
            arg_fields: fields.to_vec(),
            number_rows: 4,
            return_field: Arc::new(field),
            config_options: Arc::new(ConfigOptions::default()),
        };
        let ours = function.invoke_with_args(arguments);
        let theirs = apply(&left, &right, mul);
        [ours, theirs].map(|product| product.and_then(|product| product.into_array(4)))
    }

    #[test]
    fn products_are_those_of_the_engine() {
        let small = [Some(-3), None, Some(0), Some(LARGE)];
        let edge = [Some(LARGE), Some(7), Some(-LARGE - 1), Some(-LARGE - 1)];
        let wide = [Some(LARGE + 1), Some(1), None, Some(-1)];
        let scalar = |value| ColumnarValue::Scalar(ScalarValue::Decimal128(value, 20, 1));
        for left in [small, edge, wide] {
            let array = || ColumnarValue::Array(factors(&left, 3));
            for right in [small, edge, wide] {
                let [ours, theirs] = both(array(), ColumnarValue::Array(factors(&right, 2)));
                assert_eq!(ours.unwrap().as_ref(), theirs.unwrap().as_ref());
            }
            for factor in [Some(5), Some(LARGE), Some(LARGE + 1), None] {
                for [left, right] in [[array(), scalar(factor)], [scalar(factor), array()]] {
                    let [ours, theirs] = both(left, right);
                    assert_eq!(ours.unwrap().as_ref(), theirs.unwrap().as_ref());
                }
            }
        }
    }

    #[test]
    fn products_beyond_128_bits_are_the_error_of_the_engine() {
        let huge = || ColumnarValue::Array(factors(&[Some(i128::MAX / 2); 4], 0));
        let [ours, theirs] = both(huge(), huge());
        assert_eq!(ours.unwrap_err().to_string(), theirs.unwrap_err().to_string());
    }
}
