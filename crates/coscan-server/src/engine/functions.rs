//! Functions that PostgreSQL clients call, in addition to those of datafusion-pg-catalog.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int32Array, StringArray};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility, create_udf,
};
use datafusion_pg_catalog::pg_catalog::PgCatalogStaticTables;

use crate::engine::Session;
use crate::engine::constant_settings::SERVER_VERSION;
use crate::queries::Queries;
use crate::system_tables::cancel_function;

/// Texts about objects, of which there are none: comments, definitions, places.
const NO_TEXT: [&str; 19] = [
    "col_description",
    "inet_client_addr",
    "inet_server_addr",
    "obj_description",
    "pg_get_function_arg_default",
    "pg_get_function_arguments",
    "pg_get_function_identity_arguments",
    "pg_get_function_result",
    "pg_get_function_sqlbody",
    "pg_get_functiondef",
    "pg_get_indexdef",
    "pg_get_ruledef",
    "pg_get_serial_sequence",
    "pg_get_triggerdef",
    "pg_get_viewdef",
    "pg_tablespace_location",
    "shobj_description",
    "to_regclass",
    "pg_describe_object",
];

/// Sizes and times that are not known.
const NO_NUMBER: [&str; 5] =
    ["age", "inet_server_port", "pg_database_size", "pg_table_size", "pg_tablespace_size"];

/// What is listed can be named without its schema, and used.
const TRUE: [&str; 17] = [
    "has_column_privilege",
    "has_function_privilege",
    "has_sequence_privilege",
    "has_type_privilege",
    "pg_collation_is_visible",
    "pg_conversion_is_visible",
    "pg_function_is_visible",
    "pg_has_role",
    "pg_opclass_is_visible",
    "pg_operator_is_visible",
    "pg_opfamily_is_visible",
    "pg_statistics_obj_is_visible",
    "pg_ts_config_is_visible",
    "pg_ts_dict_is_visible",
    "pg_ts_parser_is_visible",
    "pg_ts_template_is_visible",
    "pg_type_is_visible",
];

const FALSE: [&str; 2] = ["pg_is_in_recovery", "pg_is_other_temp_schema"];

/// Types by their names in SQL, where `pg_type` has others.
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

/// Those that are the same for all users.
///
/// # Errors
/// If the table of types cannot be read.
pub(super) fn of_all(tables: &PgCatalogStaticTables) -> Result<Vec<ScalarUDF>> {
    let text = |text: &str| ScalarValue::from(text);
    let no_text = NO_TEXT.map(|name| constant(name, ScalarValue::Utf8(None)));
    let no_number = NO_NUMBER.map(|name| constant(name, ScalarValue::Int64(None)));
    let yes = TRUE.map(|name| constant(name, ScalarValue::from(true)));
    let no = FALSE.map(|name| constant(name, ScalarValue::from(false)));
    let others = [
        constant("version", text(&format!("PostgreSQL {SERVER_VERSION}"))),
        constant("pg_client_encoding", text("UTF8")),
        constant("pg_char_to_encoding", ScalarValue::from(6)),
        constant("pg_my_temp_schema", ScalarValue::from(0)),
        type_numbers(tables)?,
        create_udf(
            "pg_size_pretty",
            vec![DataType::Int64],
            DataType::Utf8,
            Volatility::Immutable,
            Arc::new(pretty_sizes),
        ),
    ];
    Ok(no_text.into_iter().chain(no_number).chain(yes).chain(no).chain(others).collect())
}

/// Those that depend on the session.
pub(super) fn of_session(session: &Session, queries: &Arc<Queries>) -> [ScalarUDF; 3] {
    // `current_user` is taken for a call of it, too.
    let name = constant("session_user", ScalarValue::from(session.user.name.as_str()));
    let (settings, user) = (session.settings(), Arc::clone(&session.user));
    let setting = move |arguments: &[ColumnarValue]| {
        let arrays = ColumnarValue::values_to_arrays(arguments)?;
        let names = arrays[0].as_string::<i32>().iter();
        let values = names.map(|name| settings.get(name?, &user).ok());
        Ok(ColumnarValue::Array(Arc::new(values.collect::<StringArray>()) as ArrayRef))
    };
    let (text, stable) = (DataType::Utf8, Volatility::Stable);
    let setting =
        create_udf("current_setting", vec![text.clone()], text, stable, Arc::new(setting));
    [name, setting, cancel_function(queries, &session.user)]
}

/// A function that returns the same value for any arguments.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Constant {
    name: &'static str,
    value: ScalarValue,
    signature: Signature,
}

fn constant(name: &'static str, value: ScalarValue) -> ScalarUDF {
    let arguments = vec![TypeSignature::Nullary, TypeSignature::VariadicAny];
    let signature = Signature::one_of(arguments, Volatility::Stable);
    ScalarUDF::new_from_impl(Constant { name, value, signature })
}

impl ScalarUDFImpl for Constant {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.value.data_type())
    }

    fn invoke_with_args(&self, _arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(self.value.clone()))
    }
}

/// `to_regtype(name)`: the number of a type, NULL if there is none of this name.
fn type_numbers(tables: &PgCatalogStaticTables) -> Result<ScalarUDF> {
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

fn pretty_sizes(arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    let arrays = ColumnarValue::values_to_arrays(arguments)?;
    let sizes = arrays[0].as_primitive::<Int64Type>();
    let texts: StringArray = sizes.iter().map(|size| size.map(pretty_size)).collect();
    Ok(ColumnarValue::Array(Arc::new(texts) as ArrayRef))
}

/// As PostgreSQL shows bytes: up to 10,239 of them exactly, then the nearest number of the first unit that gives less
/// than 10,240.
fn pretty_size(bytes: i64) -> String {
    if bytes.unsigned_abs() < 10_240 {
        return format!("{bytes} bytes");
    }
    let mut halves = bytes / 512;
    let rounded = |halves: i64| (halves + halves.signum()) / 2;
    for unit in ["kB", "MB", "GB", "TB"] {
        if halves.unsigned_abs() < 20_479 {
            return format!("{} {unit}", rounded(halves));
        }
        halves /= 1024;
    }
    format!("{} PB", rounded(halves))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_as_in_postgresql() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (10_239, "10239 bytes"),
            (10_240, "10 kB"),
            (-10_752, "-11 kB"),
            (10_751, "10 kB"),
            (10_752, "11 kB"),
            (10_485_247, "10239 kB"),
            (10_485_248, "10 MB"),
            (1 << 30, "1024 MB"),
            (i64::MAX, "8192 PB"),
        ] {
            assert_eq!(pretty_size(bytes), text);
        }
    }
}
