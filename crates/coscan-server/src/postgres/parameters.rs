//! The types of parameters.

use std::ops::ControlFlow;

use arrow::datatypes::{DataType as ArrowType, FieldRef};
use arrow_pg::datatypes::field_into_pg_type;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CastKind, DataType, ExactNumberInfo, Expr, Statement, TimezoneInfo, Value,
    visit_expressions_mut,
};
use pgwire::api::Type;

use crate::postgres::sqlstate::{INVALID_VALUE, PgError};
use crate::sql::{Planned, is_list_of_oids};

/// Casts parameters to the types that the client declares. Otherwise a parameter would have the type that it is
/// compared with, and 1.5 could not be compared with a column of integers. Texts are not cast, since clients send texts
/// for values of any type.
pub(super) fn cast_parameters(statement: &mut Statement, declared: &[u32]) {
    let _: ControlFlow<()> = visit_expressions_mut(statement, |expression| {
        if let Some(number) = parameter_number(expression)
            && let Some(oid) = declared.get(number - 1)
            && let Some(data_type) = Type::from_oid(*oid).as_ref().and_then(sql_type)
        {
            let expr = Box::new(expression.clone());
            let kind = CastKind::Cast;
            *expression = Expr::Cast { kind, expr, data_type, array: false, format: None };
        }
        ControlFlow::Continue(())
    });
}

/// Whether a declared type gives no information about the value. Clients send texts for values of any type.
fn is_text(declared: u32) -> bool {
    let texts = [Type::UNKNOWN, Type::TEXT, Type::VARCHAR];
    declared == 0 || texts.iter().any(|text| text.oid() == declared)
}

/// The number of a parameter, starting with 1.
fn parameter_number(expression: &Expr) -> Option<usize> {
    let Expr::Value(value) = expression else { return None };
    let Value::Placeholder(name) = &value.value else { return None };
    name.strip_prefix('$')?.parse().ok().filter(|number| *number > 0)
}

fn array_of(data_type: DataType) -> DataType {
    DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(data_type), None))
}

/// The type in SQL, or `None` for texts and for types that SQL does not have.
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
        Type::TIMESTAMP => DataType::Timestamp(Some(6), TimezoneInfo::None),
        Type::TIMESTAMPTZ => DataType::Timestamp(Some(6), TimezoneInfo::Tz),
        Type::BYTEA => DataType::Bytea,
        Type::BOOL_ARRAY => array(DataType::Boolean),
        Type::INT2_ARRAY => array(DataType::SmallInt(None)),
        Type::INT4_ARRAY => array(DataType::Integer(None)),
        Type::INT8_ARRAY => array(DataType::BigInt(None)),
        Type::FLOAT4_ARRAY => array(DataType::Real),
        Type::FLOAT8_ARRAY => array(DataType::DoublePrecision),
        Type::NUMERIC_ARRAY => array(sql_type(&Type::NUMERIC)?),
        Type::DATE_ARRAY => array(DataType::Date),
        Type::TIME_ARRAY => array(sql_type(&Type::TIME)?),
        Type::TIMESTAMP_ARRAY => array(sql_type(&Type::TIMESTAMP)?),
        Type::TIMESTAMPTZ_ARRAY => array(sql_type(&Type::TIMESTAMPTZ)?),
        Type::BYTEA_ARRAY => array(DataType::Bytea),
        Type::TEXT_ARRAY | Type::VARCHAR_ARRAY => array(DataType::Text),
        _ => return None,
    })
}

/// Whether a field is a list of decimals. arrow-pg supports decimals of 128 bits only.
fn is_list_of_decimals(field: &FieldRef) -> bool {
    matches!(field.data_type(), ArrowType::List(of) if of.data_type().is_decimal())
}

/// The types of a statement's parameters: the declared type, or else the type in the plan, or else text.
pub(super) fn types(planned: &Planned, declared: &[u32]) -> Result<Vec<Type>, PgError> {
    let count = planned.parameters.len().max(declared.len());
    let inferred = |index: usize| planned.parameters.get(index).and_then(Option::as_ref);
    let of = |index: usize| {
        let is_list = |field: &FieldRef| matches!(field.data_type(), ArrowType::List(_));
        let is_said =
            |oid: &u32| *oid != 0 && !(is_text(*oid) && inferred(index).is_some_and(is_list));
        let declared = declared.get(index).copied().filter(is_said);
        match (declared.and_then(Type::from_oid), inferred(index)) {
            (Some(Type::UNKNOWN) | None, Some(field)) if is_list_of_oids(field) => {
                Ok(Type::OID_ARRAY)
            }
            (Some(Type::UNKNOWN) | None, Some(field)) if is_list_of_decimals(field) => {
                Ok(Type::NUMERIC_ARRAY)
            }
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
