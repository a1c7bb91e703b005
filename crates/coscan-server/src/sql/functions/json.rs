//! `json_build_object`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use serde_json::{Number, Value};

pub(super) fn json_build_object() -> ScalarUDF {
    let arguments = vec![TypeSignature::Nullary, TypeSignature::VariadicAny];
    let signature = Signature::one_of(arguments, Volatility::Immutable);
    ScalarUDF::new_from_impl(JsonBuildObject(signature))
}

/// `json_build_object(key, value, …)` returns a JSON object as text, in the form of PostgreSQL. Values other than
/// numbers and booleans become texts.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonBuildObject(Signature);

impl ScalarUDFImpl for JsonBuildObject {
    fn name(&self) -> &str {
        "json_build_object"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if !arguments.args.len().is_multiple_of(2) {
            return exec_err!("json_build_object takes keys and values in turn");
        }
        let column = |argument: &ColumnarValue| -> Result<(DataType, ArrayRef)> {
            let values = argument.to_array(arguments.number_rows)?;
            Ok((values.data_type().clone(), cast(&values, &DataType::Utf8)?))
        };
        let columns = arguments.args.iter().map(column).collect::<Result<Vec<_>>>()?;
        let objects = (0..arguments.number_rows).map(|row| object(&columns, row));
        let objects = objects.collect::<Result<StringArray>>()?;
        Ok(ColumnarValue::Array(Arc::new(objects)))
    }
}

/// The object of a row, from columns of these types as texts.
fn object(columns: &[(DataType, ArrayRef)], row: usize) -> Result<Option<String>> {
    let text = |(_, texts): &(DataType, ArrayRef)| {
        let texts = texts.as_string::<i32>();
        texts.is_valid(row).then(|| texts.value(row).to_owned())
    };
    let mut members = Vec::with_capacity(columns.len() / 2);
    for pair in columns.chunks_exact(2) {
        let Some(key) = text(&pair[0]) else { return exec_err!("a key of a JSON object is NULL") };
        let (of, _) = &pair[1];
        let value = match text(&pair[1]) {
            None => "null".to_owned(),
            Some(value) if is_literal(of, &value) => value,
            Some(value) => Value::from(value).to_string(),
        };
        members.push(format!("{} : {value}", Value::from(key)));
    }
    Ok(Some(format!("{{{}}}", members.join(", "))))
}

/// Whether a value is written without quotes, which applies to booleans and finite numbers.
fn is_literal(of: &DataType, value: &str) -> bool {
    matches!(of, DataType::Boolean) || of.is_numeric() && value.parse::<Number>().is_ok()
}
