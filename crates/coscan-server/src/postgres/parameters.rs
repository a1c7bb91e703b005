//! Parameters of statements: their types, and their values from bytes.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::datatypes::Field;
use arrow_pg::datatypes::df::deserialize_parameters_with_server_types;
use arrow_pg::datatypes::field_into_pg_type;
use bytes::Bytes;
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CastKind, DataType, ExactNumberInfo, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Statement, TimezoneInfo, Value, visit_expressions_mut,
};
use pgwire::api::Type;
use pgwire::api::portal::Portal;
use pgwire::api::stmt::StoredStatement;
use pgwire::messages::extendedquery::Bind as PgBind;

use crate::engine::Planned;
use crate::postgres::decode::Bind;
use crate::postgres::numeric;
use crate::postgres::sqlstate::{PROTOCOL_VIOLATION, PgError};

const INVALID_VALUE: &str = "22P02";

/// Casts parameters to the types that the client declares. Without that, a parameter would have the type of what it is
/// compared with, and 1.5 could not be compared with a column of integers. Texts stay without a cast: they are written
/// for values of any type.
pub(super) fn cast_parameters(statement: &mut Statement, declared: &[u32]) {
    let _: ControlFlow<()> = visit_expressions_mut(statement, |expression| {
        if let Expr::Function(function) = expression {
            cast_array(function, declared);
        }
        if let Some(number) = parameter_number(expression)
            && let Some(oid) = declared.get(number - 1)
            && let Some(data_type) = Type::from_oid(*oid).as_ref().and_then(sql_type)
        {
            *expression = cast_to(expression, data_type);
        }
        ControlFlow::Continue(())
    });
}

/// The parameter of `= ANY($1)`, which the parser writes as a call, is an array also if the client does not say so.
fn cast_array(function: &mut Function, declared: &[u32]) {
    let is_any = function.name.to_string().eq_ignore_ascii_case("array_contains");
    if let FunctionArguments::List(list) = &mut function.args
        && let (true, Some(argument)) = (is_any, list.args.first_mut())
        && let FunctionArg::Unnamed(FunctionArgExpr::Expr(array)) = argument
        && let Some(number) = parameter_number(array)
        && declared.get(number - 1).is_none_or(|oid| *oid == 0 || *oid == Type::TEXT.oid())
    {
        *array = cast_to(array, array_of(DataType::Text));
    }
}

/// The number of a parameter, from 1 on.
fn parameter_number(expression: &Expr) -> Option<usize> {
    let Expr::Value(value) = expression else { return None };
    let Value::Placeholder(name) = &value.value else { return None };
    name.strip_prefix('$')?.parse().ok().filter(|number| *number > 0)
}

fn cast_to(expression: &Expr, data_type: DataType) -> Expr {
    let expr = Box::new(expression.clone());
    Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None }
}

fn array_of(data_type: DataType) -> DataType {
    DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(data_type), None))
}

/// The type in SQL; `None` for texts, and where SQL has none.
fn sql_type(declared: &Type) -> Option<DataType> {
    let array = array_of;
    Some(match *declared {
        Type::BOOL => DataType::Boolean,
        Type::INT2 => DataType::SmallInt(None),
        Type::INT4 => DataType::Integer(None),
        Type::INT8 => DataType::BigInt(None),
        Type::FLOAT4 => DataType::Real,
        Type::FLOAT8 => DataType::DoublePrecision,
        Type::NUMERIC => DataType::Decimal(ExactNumberInfo::PrecisionAndScale(38, 10)),
        Type::DATE => DataType::Date,
        Type::TIME => DataType::Time(None, TimezoneInfo::None),
        Type::TIMESTAMP => DataType::Timestamp(None, TimezoneInfo::None),
        Type::TIMESTAMPTZ => DataType::Timestamp(None, TimezoneInfo::Tz),
        Type::BYTEA => DataType::Bytea,
        Type::BOOL_ARRAY => array(DataType::Boolean),
        Type::INT2_ARRAY => array(DataType::SmallInt(None)),
        Type::INT4_ARRAY => array(DataType::Integer(None)),
        Type::INT8_ARRAY => array(DataType::BigInt(None)),
        Type::FLOAT4_ARRAY => array(DataType::Real),
        Type::FLOAT8_ARRAY => array(DataType::DoublePrecision),
        Type::TEXT_ARRAY | Type::VARCHAR_ARRAY => array(DataType::Text),
        _ => return None,
    })
}

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
    let is_number = |index: usize| types[index] == Type::NUMERIC;
    // Those are read here, exactly.
    let parameters = bind.parameters.iter().enumerate();
    let parameters =
        parameters.map(|(index, value)| value.clone().filter(|_| !is_number(index))).collect();
    let statement =
        StoredStatement::new(bind.statement.clone(), (), types.iter().cloned().map(Some).collect());
    let message = PgBind::new(
        Some(bind.portal.clone()),
        Some(bind.statement.clone()),
        bind.parameter_formats.clone(),
        parameters,
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
    let read = read.map_err(|error| invalid(format!("a parameter has no valid value: {error}")))?;
    let ParamValues::List(mut values) = read else { return Ok(read) };
    for (index, value) in values.iter_mut().enumerate().filter(|(index, _)| is_number(*index)) {
        let format = bind.parameter_formats.get(if formats == 1 { 0 } else { index });
        let text = number(bind.parameters[index].clone(), format == Some(&1));
        *value = ScalarValue::Utf8(text.map_err(invalid)?).into();
    }
    Ok(ParamValues::List(values))
}

/// The text of a NUMERIC.
fn number(bytes: Option<Bytes>, is_binary: bool) -> Result<Option<String>, String> {
    let Some(bytes) = bytes else { return Ok(None) };
    if is_binary {
        return numeric::from_binary(bytes).map(Some).map_err(|error| error.to_string());
    }
    let text = String::from_utf8(bytes.to_vec());
    text.map(Some).map_err(|_| "a number is not text".to_owned())
}
