//! `text || text`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

/// The operator as a function. The result is NULL if either side is.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Joined {
    result: DataType,
    signature: Signature,
}

impl Joined {
    /// Creates the function with a text type of the result.
    pub(super) fn new(result: DataType) -> Self {
        Self { result, signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Joined {
    fn name(&self) -> &str {
        "||"
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        let sides = arguments.iter().map(|side| side.schema_name().to_string());
        Ok(sides.collect::<Vec<_>>().join(" || "))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.result.clone())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let sides = arguments.args.iter().map(Side::new).collect::<Result<Vec<_>>>()?;
        let rows = if sides.iter().all(|side| side.is_same) { 1 } else { arguments.number_rows };
        let mut joined = StringBuilder::with_capacity(rows, 0);
        let mut text = String::new();
        for row in 0..rows {
            text.clear();
            let is_valid = sides.iter().all(|side| {
                let value = side.at(row);
                text.push_str(value.unwrap_or_default());
                value.is_some()
            });
            joined.append_option(is_valid.then_some(&text));
        }
        let joined: ArrayRef = cast(&joined.finish(), &self.result)?;
        Ok(ColumnarValue::Array(joined))
    }
}

/// One side, as text.
struct Side {
    texts: ArrayRef,
    is_same: bool,
}

impl Side {
    fn new(value: &ColumnarValue) -> Result<Self> {
        let (array, is_same) = match value {
            ColumnarValue::Array(array) => (Arc::clone(array), false),
            ColumnarValue::Scalar(scalar) => (scalar.to_array()?, true),
        };
        Ok(Self { texts: cast(&array, &DataType::Utf8)?, is_same })
    }

    fn at(&self, row: usize) -> Option<&str> {
        let texts = self.texts.as_string::<i32>();
        let row = if self.is_same { 0 } else { row };
        texts.is_valid(row).then(|| texts.value(row))
    }
}
