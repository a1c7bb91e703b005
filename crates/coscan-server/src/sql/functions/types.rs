//! Functions on names of types.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int32Array};
use arrow::datatypes::{DataType, Int32Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, create_udf,
};
use datafusion_pg_catalog::pg_catalog::PgCatalogStaticTables;

use crate::sql::information_schema::sql_name;

/// Names of types in SQL for which `pg_type` has other names.
const TYPE_NAMES: [(&str, &str); 12] = [
    ("bigint", "int8"),
    ("bit varying", "varbit"),
    ("boolean", "bool"),
    ("character", "bpchar"),
    ("character varying", "varchar"),
    ("double precision", "float8"),
    ("integer", "int4"),
    ("real", "float4"),
    ("smallint", "int2"),
    ("time without time zone", "time"),
    ("timestamp with time zone", "timestamptz"),
    ("timestamp without time zone", "timestamp"),
];

/// `to_regtype(name)`: the number of a type, or NULL if there is no type of this name.
pub(super) fn type_numbers(tables: &PgCatalogStaticTables) -> Result<ScalarUDF> {
    let mut numbers = HashMap::new();
    for batch in tables.pg_type.data() {
        let (index, names) = (batch.schema().index_of("oid")?, batch.schema().index_of("typname")?);
        let oids = batch.column(index).as_primitive::<Int32Type>();
        let names = batch.column(names).as_string::<i32>();
        let pairs = names.iter().zip(oids.iter());
        numbers.extend(pairs.filter_map(|(name, oid)| Some((name?.to_owned(), oid?))));
    }
    for (name, own) in TYPE_NAMES {
        if let Some(number) = numbers.get(own).copied() {
            numbers.insert(name.to_owned(), number);
        }
    }
    let call = move |arguments: &[ColumnarValue]| {
        let arrays = ColumnarValue::values_to_arrays(arguments)?;
        let names = arrays[0].as_string::<i32>().iter();
        let found = names.map(|name| numbers.get(&*name?.to_ascii_lowercase()).copied());
        Ok(ColumnarValue::Array(Arc::new(found.collect::<Int32Array>()) as ArrayRef))
    };
    let (text, number) = (DataType::Utf8, DataType::Int32);
    Ok(create_udf("to_regtype", vec![text], number, Volatility::Stable, Arc::new(call)))
}

/// `pg_typeof(value)`: the name of its type.
pub(super) fn pg_typeof() -> ScalarUDF {
    ScalarUDF::new_from_impl(TypeOf(Signature::any(1, Volatility::Stable)))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TypeOf(Signature);

impl ScalarUDFImpl for TypeOf {
    fn name(&self) -> &str {
        "pg_typeof"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let of = arguments.arg_fields.first().map(|field| sql_name(field.data_type()));
        Ok(ColumnarValue::Scalar(ScalarValue::Utf8(of)))
    }
}
