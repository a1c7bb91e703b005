//! Text functions that DataFusion lacks, or that differ from those of PostgreSQL (`chr`), and functions that casts
//! become. They return NULL if any argument is NULL.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::format::quoted;
use super::like_patterns::like_escape;
use crate::sql::errors::invalid_value;

/// The functions.
pub(super) fn of_texts() -> [ScalarUDF; 6] {
    [
        text("like_escape", 2, |texts| Ok(like_escape(texts[0], texts[1])?.into_bytes())),
        text("quote_literal", 1, |texts| Ok(quoted_literal(texts[0]).into_bytes())),
        text("uuid_in", 1, |texts| Ok(uuid(texts[0])?.into_bytes())),
        text("json_in", 1, |texts| Ok(json(texts[0])?.as_bytes().to_vec())),
        text("chr", 1, |texts| Ok(chr(texts[0])?.to_string().into_bytes())),
        function("byteain", 1, DataType::Binary, |texts| bytes(texts[0])),
    ]
}

type Call = fn(&[&str]) -> Result<Vec<u8>>;

#[derive(Debug)]
struct TextFunction {
    name: &'static str,
    signature: Signature,
    returns: DataType,
    call: Call,
}

fn text(name: &'static str, arguments: usize, call: Call) -> ScalarUDF {
    function(name, arguments, DataType::Utf8, call)
}

fn function(name: &'static str, arguments: usize, returns: DataType, call: Call) -> ScalarUDF {
    let signature = Signature::any(arguments, Volatility::Immutable);
    ScalarUDF::new_from_impl(TextFunction { name, signature, returns, call })
}

impl ScalarUDFImpl for TextFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        if let ([array], DataType::Binary) = (&arrays[..], &self.returns) {
            match array.data_type() {
                of if of.is_binary() => {
                    return Ok(ColumnarValue::Array(cast(array, &self.returns)?));
                }
                of if of.is_string() || of.is_null() => {}
                of => return Err(invalid_value(format!("cannot cast {of} to bytea"))),
            }
        }
        let texts = arrays.iter().map(|array| cast(array, &DataType::Utf8));
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        let rows = 0..arrays.first().map_or(0, |array| array.len());
        let values = rows.map(|row| {
            let texts = texts.iter().map(|texts| texts.as_string::<i32>());
            let texts: Option<Vec<_>> =
                texts.map(|texts| texts.is_valid(row).then(|| texts.value(row))).collect();
            texts.map(|texts| (self.call)(&texts)).transpose()
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let values: ArrayRef = Arc::new(values.into_iter().collect::<BinaryArray>());
        Ok(ColumnarValue::Array(cast(&values, &self.returns)?))
    }
}

/// There is one function of each name.
impl PartialEq for TextFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for TextFunction {}

impl Hash for TextFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// A text as a literal of SQL.
fn quoted_literal(text: &str) -> String {
    match text.contains('\\') {
        true => format!("E{}", quoted(&text.replace('\\', "\\\\"), '\'')),
        false => quoted(text, '\''),
    }
}

/// A UUID in its usual form. Like PostgreSQL, this also accepts braces, capitals, and hyphens after any group of four
/// digits.
fn uuid(text: &str) -> Result<String> {
    let invalid = || invalid_value(format!("invalid input syntax for type uuid: \"{text}\""));
    let inner = text.strip_prefix('{').map_or(Some(text), |text| text.strip_suffix('}'));
    let groups = inner.ok_or_else(invalid)?.split('-');
    let mut digits = String::with_capacity(36);
    for group in groups {
        let is_valid = group.len() % 4 == 0 && group.bytes().all(|it| it.is_ascii_hexdigit());
        if !is_valid || group.is_empty() {
            return Err(invalid());
        }
        digits.push_str(&group.to_ascii_lowercase());
    }
    if digits.len() != 32 {
        return Err(invalid());
    }
    [20, 16, 12, 8].into_iter().for_each(|place| digits.insert(place, '-'));
    Ok(digits)
}

/// Checks that a text is JSON.
fn json(text: &str) -> Result<&str> {
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Ok(text),
        Err(error) => Err(invalid_value(format!("invalid input syntax for type json: {error}"))),
    }
}

/// The character with a number other than zero, since texts of PostgreSQL do not contain that character.
fn chr(number: &str) -> Result<char> {
    let letter = number.parse().ok().and_then(char::from_u32);
    letter.filter(|letter| *letter != '\0').ok_or_else(|| {
        invalid_value(format!("chr({number}): the number of a character is from 1 to 1114111"))
    })
}

/// The bytes of `\x` and hexadecimal digits, or of a text with escapes: `\000` for a byte in octal digits, `\\` for a
/// backslash.
fn bytes(text: &str) -> Result<Vec<u8>> {
    let invalid = || invalid_value(format!("invalid input syntax for type bytea: \"{text}\""));
    let octal = |digits: &[u8]| {
        let value = digits
            .iter()
            .try_fold(0_u32, |value, digit| Some(value * 8 + char::from(*digit).to_digit(8)?))?;
        u8::try_from(value).ok()
    };
    if let Some(digits) = text.strip_prefix("\\x") {
        let digits: Vec<_> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let digit = |digit: u8| char::from(digit).to_digit(16);
        let pairs = digits.chunks(2).map(|pair| {
            let &[high, low] = pair else { return None };
            u8::try_from(digit(high)? * 16 + digit(low)?).ok()
        });
        return pairs.collect::<Option<_>>().ok_or_else(invalid);
    }
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, after @ ..] = rest {
        let (byte, after) = match (first, after) {
            (b'\\', [b'\\', after @ ..]) => (b'\\', after),
            (b'\\', [a, b, c, after @ ..]) => (octal(&[*a, *b, *c]).ok_or_else(invalid)?, after),
            (b'\\', _) => return Err(invalid()),
            (first, after) => (*first, after),
        };
        bytes.push(byte);
        rest = after;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn uuids_have_one_form() {
        let form = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        for text in [
            form,
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
        ] {
            assert_eq!(uuid(text).unwrap(), form, "{text}");
        }
        for text in [
            "",
            "a0eebc99",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "g0eebc999c0b4ef8bb6d6bb9bd380a11",
        ] {
            assert!(uuid(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_are_written_in_two_forms() {
        assert_eq!(bytes("\\x00fF 10").unwrap(), [0, 255, 16]);
        assert_eq!(bytes("a\\001\\\\é").unwrap(), b"a\x01\\\xc3\xa9");
        for text in ["\\x0", "\\x0g", "\\", "\\400", "\\08a"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
