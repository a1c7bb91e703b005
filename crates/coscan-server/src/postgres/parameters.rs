//! Parameters of statements: their types, and their values from bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::datatypes::Field;
use arrow_pg::datatypes::df::deserialize_parameters_with_server_types;
use arrow_pg::datatypes::field_into_pg_type;
use datafusion::common::ParamValues;
use pgwire::api::Type;
use pgwire::api::portal::Portal;
use pgwire::api::stmt::StoredStatement;
use pgwire::messages::extendedquery::Bind as PgBind;

use crate::engine::Planned;
use crate::postgres::decode::Bind;
use crate::postgres::sqlstate::{PROTOCOL_VIOLATION, PgError};

const INVALID_VALUE: &str = "22P02";

/// The types of a statement's parameters: as the client says, else as the plan says, else text.
pub(super) fn types(planned: &Planned, declared: &[u32]) -> Result<Vec<Type>, PgError> {
    let count = planned.parameters.len().max(declared.len());
    let inferred = |index: usize| planned.parameters.get(index).and_then(Option::as_ref);
    let of = |index: usize| {
        let declared = declared.get(index).copied().filter(|oid| *oid != 0);
        match (declared.and_then(Type::from_oid), inferred(index)) {
            (Some(Type::UNKNOWN) | None, Some(field)) => {
                let described = field_into_pg_type(field);
                described.map_err(|error| PgError::new(INVALID_VALUE, error.to_string()))
            }
            (Some(Type::UNKNOWN) | None, None) => Ok(Type::TEXT),
            (Some(declared), _) => Ok(declared),
        }
    };
    (0..count).map(of).collect()
}

/// The values of a statement's parameters.
pub(super) fn values(
    planned: &Planned,
    types: &[Type],
    bind: &Bind,
) -> Result<ParamValues, PgError> {
    let (given, expected) = (bind.parameters.len(), types.len());
    if given != expected {
        let text = format!("{given} parameters were given, and the statement has {expected}");
        return Err(PgError::new(PROTOCOL_VIOLATION, text));
    }
    let formats = bind.parameter_formats.len();
    if formats > 1 && formats != given {
        let text = format!("{formats} formats were given for {given} parameters");
        return Err(PgError::new(PROTOCOL_VIOLATION, text));
    }
    let statement =
        StoredStatement::new(bind.statement.clone(), (), types.iter().cloned().map(Some).collect());
    let message = PgBind::new(
        Some(bind.portal.clone()),
        Some(bind.statement.clone()),
        bind.parameter_formats.clone(),
        bind.parameters.clone(),
        Vec::new(),
    );
    let inferred: Vec<_> =
        planned.parameters.iter().map(|field| field.as_deref().map(Field::data_type)).collect();
    // What reads the values is not ours, and the bytes are anyone's.
    let read = catch_unwind(AssertUnwindSafe(|| {
        let portal = Portal::try_new(&message, Arc::new(statement))?;
        deserialize_parameters_with_server_types(&portal, &inferred, &[])
    }));
    let invalid = |text: String| PgError::new(INVALID_VALUE, text);
    let read = read.map_err(|_| invalid("a parameter has no valid value".to_owned()))?;
    read.map_err(|error| invalid(format!("a parameter has no valid value: {error}")))
}
