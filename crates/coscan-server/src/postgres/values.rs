//! Reads the values of parameters from untrusted bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, TimeUnit};
use arrow_pg::datatypes::df::deserialize_parameters_with_server_types;
use bytes::Bytes;
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{ParamValues, ScalarValue};
use pgwire::api::Type;
use pgwire::api::portal::Portal;
use pgwire::api::stmt::StoredStatement;
use pgwire::messages::extendedquery::Bind as PgBind;
use postgres_types::Kind;

use crate::postgres::decode::Bind;
use crate::postgres::sqlstate::{LIMIT_EXCEEDED, PROTOCOL_VIOLATION, PgError};
use crate::postgres::text_values::{invalid, json, number, text, uuid};
use crate::postgres::{arrays, numeric};
use crate::sql::Planned;

/// The number of elements of an array that are read at a time. Single values take much more memory than those of an
/// array.
const ELEMENTS: usize = 1024;

/// The maximum bytes of an array, which may take many times the bytes of its message.
const ARRAY_BYTES_MAX: usize = 16 << 20;

/// Reads the values of a statement's parameters.
///
/// # Errors
/// If their number or form does not match the statement's parameters.
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
    let formats = &bind.parameter_formats;
    if formats.len() > 1 && formats.len() != given {
        let text = format!("{} formats were given for {given} parameters", formats.len());
        return Err(PgError::new(PROTOCOL_VIOLATION, text));
    }
    let value = |(index, bytes): (usize, &Option<Bytes>)| {
        let inferred = planned.parameters.get(index).and_then(Option::as_deref);
        let format = formats.get(if formats.len() == 1 { 0 } else { index });
        let reader = ValueReader {
            of: &types[index],
            inferred: inferred.map(Field::data_type),
            is_binary: format == Some(&1),
        };
        let read = reader.read(bytes.clone());
        read.map_err(|error| PgError { text: format!("${}: {}", index + 1, error.text), ..error })
    };
    let values = bind.parameters.iter().enumerate().map(value);
    Ok(ParamValues::from(values.collect::<Result<Vec<_>, _>>()?))
}

/// Reads values of a type.
#[derive(Clone, Copy)]
struct ValueReader<'a> {
    of: &'a Type,
    /// The type that the plan expects.
    inferred: Option<&'a DataType>,
    is_binary: bool,
}

impl ValueReader<'_> {
    fn read(self, bytes: Option<Bytes>) -> Result<ScalarValue, PgError> {
        if let Kind::Array(of) = self.of.kind() {
            let inferred = match self.inferred {
                Some(DataType::List(field)) => Some(field.data_type()),
                _ => None,
            };
            return ValueReader { of, inferred, ..self }.read_array(bytes);
        }
        let mut values = self.read_all(vec![bytes])?;
        let value = values.pop().ok_or_else(|| invalid("a parameter has no value"))?;
        Ok(match (&value, self.inferred) {
            // As a text it would be rounded to the digits of the value that it is compared with.
            (ScalarValue::Utf8(Some(number)), Some(inferred)) if inferred.is_decimal() => {
                numeric::to_decimal(number, inferred).unwrap_or(value)
            }
            _ => value,
        })
    }

    /// Reads an array of such values.
    fn read_array(self, bytes: Option<Bytes>) -> Result<ScalarValue, PgError> {
        // A NULL determines the type.
        let null = self.read_all(vec![None])?;
        let Some(bytes) = bytes else {
            return Ok(ScalarValue::new_null_list(null[0].data_type(), true, 1));
        };
        let mut elements: Box<dyn Iterator<Item = Result<Option<Bytes>, PgError>>> =
            if self.is_binary {
                Box::new(arrays::BinaryArray::new(bytes, self.of)?)
            } else {
                let elements = arrays::TextArray::new(text(&bytes)?)?;
                Box::new(elements.map(|element| Ok(element?.map(Bytes::from))))
            };
        let array = |values: Vec<ScalarValue>| {
            ScalarValue::iter_to_array(values).map_err(|error| invalid(error.to_string()))
        };
        let mut parts = vec![array(null)?.slice(0, 0)];
        let mut part_bytes = 0;
        loop {
            let some = elements.by_ref().take(ELEMENTS).collect::<Result<Vec<_>, _>>()?;
            if some.is_empty() {
                break;
            }
            let part = array(self.read_all(some)?)?;
            part_bytes += part.get_array_memory_size();
            if part_bytes > ARRAY_BYTES_MAX {
                let text = format!("an array takes at most {ARRAY_BYTES_MAX} bytes");
                return Err(PgError::new(LIMIT_EXCEEDED, text));
            }
            parts.push(part);
        }
        let parts: Vec<_> = parts.iter().map(ArrayRef::as_ref).collect();
        let elements = concat(&parts).map_err(|error| invalid(error.to_string()))?;
        Ok(SingleRowListArrayBuilder::new(elements).build_list_scalar())
    }

    fn read_all(self, values: Vec<Option<Bytes>>) -> Result<Vec<ScalarValue>, PgError> {
        let of = |read: fn(Bytes, bool) -> Result<String, PgError>| {
            let value = |bytes: Option<Bytes>| -> Result<_, PgError> {
                let read = bytes.map(|bytes| read(bytes, self.is_binary)).transpose()?;
                Ok(ScalarValue::Utf8(read))
            };
            values.iter().cloned().map(value).collect()
        };
        match *self.of {
            Type::NUMERIC => of(number),
            Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN => {
                of(|bytes, _| text(&bytes).map(str::to_owned))
            }
            // In SQL here, these types are texts.
            Type::UUID => of(uuid),
            Type::JSON | Type::JSONB => of(json),
            _ => self.read_others(values),
        }
    }

    /// Reads values of the types for which arrow-pg is used.
    fn read_others(self, mut values: Vec<Option<Bytes>>) -> Result<Vec<ScalarValue>, PgError> {
        let not_valid = |why: &str| invalid(format!("invalid value for type {}{why}", self.of));
        if !self.is_binary {
            for value in values.iter_mut().flatten() {
                *value = value.slice_ref(value.trim_ascii());
                if value.is_empty() {
                    return Err(not_valid(": \"\""));
                }
            }
        }
        let inferred = match self.inferred {
            // The unit is that of the protocol. Nanoseconds end in the year 2262, and seconds would
            // truncate.
            Some(DataType::Timestamp(_, zone)) => {
                Some(DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))
            }
            other => other.cloned(),
        };
        let (count, inferred) = (values.len(), vec![inferred.as_ref(); values.len()]);
        let types = vec![Some(self.of.clone()); count];
        let statement = StoredStatement::new(String::new(), (), types);
        let formats = vec![i16::from(self.is_binary)];
        let message = PgBind::new(None, None, formats, values, Vec::new());
        // The values are read by another crate, and the bytes are untrusted.
        let read = catch_unwind(AssertUnwindSafe(|| {
            let portal = Portal::try_new(&message, Arc::new(statement))?;
            deserialize_parameters_with_server_types(&portal, &inferred, &[])
        }));
        let read = read.map_err(|_| not_valid(""))?;
        let read = read.map_err(|error| not_valid(&format!(": {error}")))?;
        let ParamValues::List(read) = read else { return Err(not_valid("")) };
        if read.len() != count {
            return Err(not_valid(""));
        }
        Ok(read.into_iter().map(|value| value.value).collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use arrow::array::AsArray;
    use proptest::prelude::*;

    use super::*;
    use crate::postgres::sqlstate::{INVALID_VALUE, NOT_SUPPORTED};

    fn read(of: &Type, bytes: &[u8], is_binary: bool) -> Result<ScalarValue, PgError> {
        let reader = ValueReader { of, inferred: None, is_binary };
        reader.read(Some(Bytes::copy_from_slice(bytes)))
    }

    #[test]
    fn long_arrays_have_all_their_elements() {
        let numbers: Vec<_> = (0..3 * ELEMENTS + 1).map(|number| number.to_string()).collect();
        let text = format!("{{{}}}", numbers.join(","));
        let ScalarValue::List(list) = read(&Type::INT8_ARRAY, text.as_bytes(), false).unwrap()
        else {
            panic!("no list")
        };
        let elements = list.value(0);
        let elements = elements.as_primitive::<arrow::datatypes::Int64Type>();
        assert!(elements.values().iter().copied().eq(0..=3 * ELEMENTS as i64));
    }

    #[test]
    fn short_messages_make_no_large_arrays() {
        // Each element has twelve bytes and encodes a zero with a thousand digits.
        let mut message = Vec::new();
        for number in [1, 0, 1700, 87_000, 1_i32] {
            message.extend(number.to_be_bytes());
        }
        for _ in 0..87_000 {
            message.extend(8_i32.to_be_bytes());
            message.extend([0_i16, 0, 0, 996].into_iter().flat_map(i16::to_be_bytes));
        }
        let error = read(&Type::NUMERIC_ARRAY, &message, true).unwrap_err();
        assert_eq!(error.code, LIMIT_EXCEEDED, "{}", error.text);
    }

    #[test]
    fn an_empty_text_is_a_text_and_no_other_value() {
        assert_eq!(read(&Type::TEXT, b"", false).unwrap(), ScalarValue::from(""));
        for of in [Type::BOOL, Type::INT4, Type::NUMERIC, Type::DATE, Type::INT4_ARRAY] {
            for text in ["", " ", "x"] {
                let error = read(&of, text.as_bytes(), false).unwrap_err();
                assert_eq!(error.code, INVALID_VALUE, "{of} {text:?}");
            }
        }
        for (of, bytes) in [(Type::TEXT, &b"a\0"[..]), (Type::TEXT_ARRAY, b"{a\0}")] {
            assert_eq!(read(&of, bytes, false).unwrap_err().code, INVALID_VALUE, "{of}");
        }
        assert_eq!(read(&Type::INT4, b" 7 ", false).unwrap(), ScalarValue::from(7_i32));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..40),
                "[-{}\\[\\]\",\\\\ 0-9:.+tfxNUL]{0,30}".prop_map(String::into_bytes),
            ],
            is_binary in any::<bool>(),
        ) {
            for oid in 16..4096 {
                let Some(of) = Type::from_oid(oid) else { continue };
                if let Err(error) = read(&of, &bytes, is_binary) {
                    prop_assert!([INVALID_VALUE, NOT_SUPPORTED].contains(&error.code));
                }
            }
        }
    }
}
