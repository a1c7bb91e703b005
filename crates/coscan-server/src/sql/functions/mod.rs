//! Functions that PostgreSQL clients call, in addition to those of datafusion-pg-catalog, and limits for functions
//! whose results may be much larger than their arguments (`bounded`).

mod age;
mod boolean_texts;
mod bounded;
mod date_formats;
mod format;
mod json;
pub(super) mod like_patterns;
mod sizes;
mod system_information;
mod texts;
mod types;

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use datafusion_pg_catalog::pg_catalog::PgCatalogStaticTables;

use crate::queries::Queries;
use crate::sql::Session;
use crate::sql::settings::constants::SERVER_VERSION;
use crate::system_tables::cancel_function;
pub(super) use boolean_texts::BooleanTexts;
pub(super) use bounded::{BoundFunctions, check_aggregates};
pub(super) use date_formats::Patterns;

/// Functions that return texts about objects, of which there are none: comments, definitions, places.
const NO_TEXT: [&str; 20] = [
    "acldefault",
    "col_description",
    "inet_client_addr",
    "inet_server_addr",
    "obj_description",
    "pg_get_constraintdef",
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
    "pg_describe_object",
];

/// Functions that return sizes and times that are not known.
const NO_NUMBER: [&str; 7] = [
    "inet_server_port",
    "pg_database_size",
    "pg_indexes_size",
    "pg_relation_size",
    "pg_table_size",
    "pg_tablespace_size",
    "pg_total_relation_size",
];

/// Functions that return true, since listed objects can be named without their schema, and used.
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

const FALSE: [&str; 3] = ["pg_column_is_updatable", "pg_is_in_recovery", "pg_is_other_temp_schema"];

/// The functions that are the same for all users.
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
        constant("getdatabaseencoding", text("UTF8")),
        constant("pg_client_encoding", text("UTF8")),
        constant("pg_encoding_to_char", text("UTF8")),
        constant("pg_get_userbyid", text("postgres")),
        constant("pg_postmaster_start_time", start_time()),
        // Clients cannot take locks.
        constant("pg_advisory_unlock_all", text("")),
        constant("pg_char_to_encoding", ScalarValue::from(6)),
        constant("pg_my_temp_schema", ScalarValue::from(0)),
        age::age(),
        types::type_numbers(tables)?,
        types::pg_typeof(),
        format::format(),
        json::json_build_object(),
        sizes::pg_size_pretty(),
    ];
    let constants = no_text.into_iter().chain(no_number).chain(yes).chain(no);
    Ok(constants.chain(texts::of_texts()).chain(others).collect())
}

/// The current time, when the server starts.
fn start_time() -> ScalarValue {
    let now = chrono::Utc::now().timestamp_micros();
    ScalarValue::TimestampMicrosecond(Some(now), Some("UTC".into()))
}

/// The functions that depend on the session.
pub(super) fn of_session(session: &Session, queries: &Arc<Queries>) -> Vec<ScalarUDF> {
    // `current_user` also becomes a call of it.
    let name = constant("session_user", ScalarValue::from(session.user.name.as_str()));
    let others = [name, cancel_function(queries, &session.user)];
    system_information::of_session(session).into_iter().chain(others).collect()
}

/// A function that returns the same value for all arguments.
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
