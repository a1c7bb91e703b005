//! Arrays of one dimension, in text and in binary form ([PostgreSQL, "Array Input and Output Syntax"]).
//!
//! [PostgreSQL, "Array Input and Output Syntax"]: https://www.postgresql.org/docs/15/arrays.html#ARRAYS-IO

use bytes::{BufMut, Bytes, BytesMut};
use pgwire::api::Type;

use crate::postgres::reader::{ProtocolError, Reader};
use crate::postgres::sqlstate::{INVALID_VALUE, NOT_SUPPORTED, PgError};

/// What PostgreSQL takes for space.
const SPACES: [char; 6] = [' ', '\t', '\n', '\r', '\x0b', '\x0c'];

fn malformed(text: &str) -> PgError {
    PgError::new(INVALID_VALUE, format!("malformed array: {text}"))
}

fn nested() -> PgError {
    PgError::new(NOT_SUPPORTED, "arrays of more than one dimension are not supported")
}

/// The elements of an array in text form, such as `{1,NULL,"a, b"}`; `None` for NULL.
///
/// # Errors
/// With `22P02` if it is no array, with `0A000` if it has more than one dimension.
pub(super) fn from_text(text: &str) -> Result<Vec<Option<String>>, PgError> {
    let text = text.trim_matches(SPACES);
    let (length, text) = match text.starts_with('[') {
        false => (None, text),
        true => bounds(text).map(|(length, text)| (Some(length), text))?,
    };
    let mut rest = text.strip_prefix('{').ok_or_else(|| malformed("it begins with { or ["))?;
    let mut elements = Vec::new();
    rest = rest.trim_start_matches(SPACES);
    let after = match rest.strip_prefix('}') {
        Some(after) => after,
        None => loop {
            let (element, after) = element(rest)?;
            elements.push(element);
            let after = after.trim_start_matches(SPACES);
            if let Some(after) = after.strip_prefix('}') {
                break after;
            }
            let next = after.strip_prefix(',');
            let next = next.ok_or_else(|| malformed("after an element comes a comma or }"))?;
            rest = next.trim_start_matches(SPACES);
        },
    };
    if !after.is_empty() {
        return Err(malformed("something comes after the last }"));
    }
    if length.is_some_and(|length| usize::try_from(length) != Ok(elements.len())) {
        return Err(malformed("its bounds do not fit the number of its elements"));
    }
    Ok(elements)
}

/// The length that bounds such as `[1:3]=` announce, and what comes after them.
fn bounds(text: &str) -> Result<(i64, &str), PgError> {
    let unclear = || malformed("its bounds are written like [1:3]=");
    let (bounds, rest) = text.split_once('=').ok_or_else(unclear)?;
    let bounds = bounds.trim_end_matches(SPACES);
    let bounds = bounds.strip_prefix('[').and_then(|bounds| bounds.strip_suffix(']'));
    let bounds = bounds.ok_or_else(unclear)?;
    if bounds.contains(']') {
        return Err(nested());
    }
    let (first, last) = bounds.split_once(':').unwrap_or(("1", bounds));
    let number = |text: &str| text.trim_matches(SPACES).parse::<i32>().map_err(|_| unclear());
    let length = i64::from(number(last)?) - i64::from(number(first)?) + 1;
    Ok((length, rest.trim_start_matches(SPACES)))
}

/// The element that a text begins with, and what comes after it.
fn element(text: &str) -> Result<(Option<String>, &str), PgError> {
    let unfinished = || malformed("it ends too early");
    let mut value = String::new();
    if let Some(quoted) = text.strip_prefix('"') {
        let mut chars = quoted.chars();
        loop {
            match chars.next().ok_or_else(unfinished)? {
                '"' => return Ok((Some(value), chars.as_str())),
                '\\' => value.push(chars.next().ok_or_else(unfinished)?),
                other => value.push(other),
            }
        }
    }
    let mut chars = text.chars();
    let mut kept = 0; // Spaces at the end are not part of the value.
    let mut is_escaped = false;
    let after = loop {
        let after = chars.as_str();
        match chars.next().ok_or_else(unfinished)? {
            ',' | '}' => break after,
            '{' if value.is_empty() => return Err(nested()),
            '{' | '"' => return Err(malformed("an element with { or \" is quoted as a whole")),
            '\\' => {
                value.push(chars.next().ok_or_else(unfinished)?);
                (kept, is_escaped) = (value.len(), true);
            }
            other => {
                value.push(other);
                if !SPACES.contains(&other) {
                    kept = value.len();
                }
            }
        }
    };
    value.truncate(kept);
    if value.is_empty() {
        return Err(malformed("an element is missing; an empty text is written \"\""));
    }
    let is_null = !is_escaped && value.eq_ignore_ascii_case("NULL");
    Ok(((!is_null).then_some(value), after))
}

/// Adds the text of an element, quoted where it needs to be.
pub(super) fn add_text(to: &mut BytesMut, element: &[u8]) {
    let is_special = |byte: &u8| b"\"\\{},".contains(byte) || SPACES.contains(&char::from(*byte));
    let is_plain = !element.is_empty()
        && !element.eq_ignore_ascii_case(b"NULL")
        && !element.iter().any(is_special);
    if is_plain {
        return to.put_slice(element);
    }
    to.put_u8(b'"');
    for byte in element {
        if b"\"\\".contains(byte) {
            to.put_u8(b'\\');
        }
        to.put_u8(*byte);
    }
    to.put_u8(b'"');
}

/// The elements of an array in binary form, in binary form; `None` for NULL.
///
/// # Errors
/// With `22P02` if it is no array of this type, with `0A000` if it has more than one dimension.
pub(super) fn from_binary(bytes: Bytes, of: &Type) -> Result<Vec<Option<Bytes>>, PgError> {
    let malformed = |error: ProtocolError| malformed(&error.to_string());
    let mut reader = Reader(bytes);
    let mut header = || Ok((reader.i32()?, reader.i32()?, reader.i32()?));
    let (dimensions, _, oid) = header().map_err(malformed)?;
    if oid.cast_unsigned() != of.oid() {
        let text = format!("an array has elements of type {oid} where {} ({of}) is", of.oid());
        return Err(PgError::new(INVALID_VALUE, text));
    }
    match dimensions {
        0 => return reader.end(Vec::new()).map_err(malformed),
        1 => {}
        _ => return Err(nested()),
    }
    let (length, _first) = (reader.i32().map_err(malformed)?, reader.i32().map_err(malformed)?);
    if length < 0 {
        return Err(malformed(ProtocolError("its length is negative")));
    }
    let elements = (0..length).map(|_| reader.value()).collect::<Result<Vec<_>, _>>();
    reader.end(elements.map_err(malformed)?).map_err(malformed)
}

/// Adds what comes before the elements of an array in binary form.
pub(super) fn add_binary_header(to: &mut BytesMut, of: &Type, length: usize, has_null: bool) {
    to.put_i32(i32::from(length > 0)); // Dimensions.
    to.put_i32(i32::from(has_null));
    to.put_u32(of.oid());
    if length > 0 {
        to.put_i32(i32::try_from(length).unwrap_or(i32::MAX));
        to.put_i32(1); // The number of the first element.
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn to_text(elements: &[Option<String>]) -> String {
        let mut text = BytesMut::from("{");
        for (index, element) in elements.iter().enumerate() {
            text.put_slice(if index > 0 { b"," } else { b"" });
            match element {
                Some(element) => add_text(&mut text, element.as_bytes()),
                None => text.put_slice(b"NULL"),
            }
        }
        text.put_u8(b'}');
        String::from_utf8(text.to_vec()).unwrap()
    }

    fn to_binary(elements: &[Option<String>]) -> Bytes {
        let mut bytes = BytesMut::new();
        let has_null = elements.iter().any(Option::is_none);
        add_binary_header(&mut bytes, &Type::TEXT, elements.len(), has_null);
        for element in elements {
            let length = element.as_ref().map_or(-1, |text| i32::try_from(text.len()).unwrap());
            bytes.put_i32(length);
            bytes.put_slice(element.as_deref().unwrap_or_default().as_bytes());
        }
        bytes.freeze()
    }

    #[test]
    fn arrays_have_the_form_of_postgresql() {
        // Each was compared with what PostgreSQL's documentation says of array_in.
        for (text, expected) in [
            ("{}", &[][..]),
            (" { } ", &[]),
            (r#"{""}"#, &[Some("")]),
            ("{a,b}", &[Some("a"), Some("b")]),
            ("{ a b ,\tc\n}", &[Some("a b"), Some("c")]),
            (r#"{" a ","b,c"}"#, &[Some(" a "), Some("b,c")]),
            (r#"{NULL,"NULL",null,\null}"#, &[None, Some("NULL"), None, Some("null")]),
            (
                r#"{"\"\\{}'",a\,b,\{\}, \ }"#,
                &[Some("\"\\{}'"), Some("a,b"), Some("{}"), Some(" ")],
            ),
            ("{''}", &[Some("''")]),
            ("[1:2]={1,2}", &[Some("1"), Some("2")]),
            ("[-1:0] = {1,2}", &[Some("1"), Some("2")]),
            ("[1]={1}", &[Some("1")]),
        ] {
            let expected: Vec<_> = expected.iter().map(|text| text.map(str::to_owned)).collect();
            assert_eq!(from_text(text).unwrap(), expected, "{text}");
        }
        let elements = ["", "null", "a b", "a,b", "{", "\"", "\\", "é", "nul"];
        assert_eq!(
            to_text(&elements.map(|element| Some(element.to_owned()))),
            r#"{"","null","a b","a,b","{","\"","\\",é,nul}"#
        );
    }

    #[test]
    fn what_is_no_array_is_refused() {
        for text in [
            "",
            "a",
            "{",
            "}",
            "{a",
            "{a,",
            "{a,}",
            "{,a}",
            "{a}b",
            "{\"a}",
            "{\"a\"b}",
            "{a\"b\"}",
            "{a\\",
            "{\"a\\",
            "{a}}",
            "{a}{",
            "{a{}",
            "[1:2]={1}",
            "[2:1]={1}",
            "[1:2={1,2}",
            "[x]={1}",
            "[]={1}",
            "[1:99999999999]={1}",
            "[1:1]",
            "{a,,b}",
        ] {
            assert_eq!(from_text(text).unwrap_err().code, "22P02", "{text}");
        }
        for text in ["{{1,2},{3,4}}", "{ {1} }", "{{}}", "[1:1][1:2]={{1,2}}"] {
            assert_eq!(from_text(text).unwrap_err().code, "0A000", "{text}");
        }
        let bytes = to_binary(&[Some("a".to_owned())]);
        assert_eq!(from_binary(bytes.clone(), &Type::INT4).unwrap_err().code, "22P02");
        for end in 0..bytes.len() {
            assert_eq!(from_binary(bytes.slice(..end), &Type::TEXT).unwrap_err().code, "22P02");
        }
    }

    proptest! {
        #[test]
        fn arrays_are_read_as_they_are_written(
            elements in prop::collection::vec(
                prop::option::of(prop_oneof![
                    any::<String>(), "[ \t\\\\\"{},'a]{0,6}", "(?i)null",
                ]),
                0..6,
            ),
        ) {
            prop_assert_eq!(&from_text(&to_text(&elements)).unwrap(), &elements);
            let expected: Vec<_> =
                elements.iter().map(|text| text.clone().map(Bytes::from)).collect();
            prop_assert_eq!(from_binary(to_binary(&elements), &Type::TEXT).unwrap(), expected);
        }

        #[test]
        fn any_text_and_bytes_are_read_or_refused(
            text in "[\\[\\]0-9:=]{0,8}[{}\",\\\\ aN]{0,12}",
            bytes in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let _ = from_text(&text);
            let _ = from_binary(Bytes::from(bytes), &Type::TEXT);
        }
    }
}
