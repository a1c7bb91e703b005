//! Session options, the protocol's form of SET and SHOW ALL, and the answer to a logout. arrow-flight has no messages
//! for them.

use std::collections::HashMap;

use bytes::Bytes;
use prost::Message;
use tonic::Status;

use crate::flight::status::malformed;
use crate::queries::ErrorKind;
use crate::sql::{CATALOG, SCHEMA, Session};

/// `SessionOptionValue` of `Flight.proto`.
#[derive(Clone, PartialEq, Message)]
struct OptionValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(sfixed64, tag = "3")]
    Integer(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(message, tag = "5")]
    List(TextList),
}

#[derive(Clone, PartialEq, Message)]
struct TextList {
    #[prost(string, repeated, tag = "1")]
    values: Vec<String>,
}

/// `SetSessionOptionsRequest`, and `GetSessionOptionsResult`, which has the same form.
#[derive(Clone, PartialEq, Message)]
struct Options {
    #[prost(map = "string, message", tag = "1")]
    options: HashMap<String, OptionValue>,
}

/// `SetSessionOptionsResult`.
#[derive(Clone, PartialEq, Message)]
struct Refused {
    #[prost(map = "string, message", tag = "1")]
    errors: HashMap<String, Refusal>,
}

#[derive(Clone, PartialEq, Message)]
struct Refusal {
    #[prost(int32, tag = "1")]
    reason: i32,
}

/// `CloseSessionResult`.
#[derive(Clone, PartialEq, Message)]
struct Closed {
    #[prost(int32, tag = "1")]
    status: i32,
}

const INVALID_NAME: i32 = 1;
const INVALID_VALUE: i32 = 2;
const CLOSED: i32 = 1;

/// Sets options. The answer lists the refused ones.
pub(super) fn set(session: &Session, request: &[u8]) -> Result<Bytes, Status> {
    let request = Options::decode(request).map_err(malformed)?;
    let mut errors = HashMap::new();
    for (name, value) in request.options {
        if let Err(reason) = set_one(session, &name, value) {
            errors.insert(name, Refusal { reason });
        }
    }
    Ok(Refused { errors }.encode_to_vec().into())
}

fn set_one(session: &Session, name: &str, value: OptionValue) -> Result<(), i32> {
    let value = match value.value {
        None => None,
        Some(Value::Text(text)) => Some(text),
        Some(Value::Bool(is_on)) => Some(if is_on { "on" } else { "off" }.to_owned()),
        Some(Value::Integer(number)) => Some(number.to_string()),
        Some(Value::Double(number)) => Some(number.to_string()),
        Some(Value::List(list)) => Some(list.values.join(", ")),
    };
    // There is one catalog with one schema of tables.
    let fixed = [("catalog", CATALOG), ("schema", SCHEMA)];
    if let Some((_, fixed)) = fixed.iter().find(|(known, _)| *known == name) {
        return if value.is_none_or(|value| value == *fixed) { Ok(()) } else { Err(INVALID_VALUE) };
    }
    session.set(name, value.as_deref()).map_err(|error| match error.kind {
        ErrorKind::UnknownSetting => INVALID_NAME,
        _ => INVALID_VALUE,
    })
}

/// All options and their values, as strings.
pub(super) fn get(session: &Session) -> Bytes {
    let all = session.settings().all(&session.user).into_iter();
    let own = [("catalog", CATALOG), ("schema", SCHEMA)];
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let options = all.chain(own).map(|(name, text)| {
        let value = OptionValue { value: Some(Value::Text(text)) };
        (name, value)
    });
    Options { options: options.collect() }.encode_to_vec().into()
}

/// The answer to a logout.
pub(super) fn closed() -> Bytes {
    Closed { status: CLOSED }.encode_to_vec().into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn messages_have_the_form_of_the_specification() {
        // Field 1, with 14 bytes, has the key "a" (field 1) and a value (field 2), which has field
        // 3 with 64 bits.
        let bytes = [10, 14, 10, 1, b'a', 18, 9, 25, 7, 0, 0, 0, 0, 0, 0, 0];
        let options = Options::decode(&bytes[..]).unwrap();
        assert_eq!(options.options["a"].value, Some(Value::Integer(7)));
        assert_eq!(options.encode_to_vec(), bytes);
        assert_eq!(closed(), [8, 1][..]);
    }
}
