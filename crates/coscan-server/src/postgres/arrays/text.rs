//! Arrays in text form.

use bytes::{BufMut, BytesMut};

use super::{malformed, nested};
use crate::postgres::sqlstate::PgError;

/// The characters that PostgreSQL treats as space.
const SPACES: [char; 6] = [' ', '\t', '\n', '\r', '\x0b', '\x0c'];

/// The elements of an array in text form, such as `{1,NULL,"a, b"}`, with `None` for NULL. Ends with an error if the
/// text is not an array (`22P02`) or has more than one dimension (`0A000`).
#[derive(Debug)]
pub(in crate::postgres) struct TextArray<'a> {
    /// The text after the elements that were read, or `None` after the end.
    rest: Option<&'a str>,
    /// The number of elements that its bounds announce.
    announced: Option<i64>,
    read: i64,
}

impl<'a> TextArray<'a> {
    /// Reads the text before the elements.
    ///
    /// # Errors
    /// As the iterator.
    pub(in crate::postgres) fn new(text: &'a str) -> Result<Self, PgError> {
        let text = text.trim_matches(SPACES);
        let (announced, text) = match text.starts_with('[') {
            false => (None, text),
            true => bounds(text).map(|(length, text)| (Some(length), text))?,
        };
        let rest = text.strip_prefix('{').ok_or_else(|| malformed("it begins with { or ["))?;
        Ok(Self { rest: Some(rest), announced, read: 0 })
    }

    /// The next element and the rest of the text, or `None` at the end.
    fn advance(&self, rest: &'a str) -> Result<Option<(Option<String>, &'a str)>, PgError> {
        let mut rest = rest.trim_start_matches(SPACES);
        if let Some(after) = rest.strip_prefix('}') {
            return self.check_end(after).map(|()| None);
        }
        if self.read > 0 {
            let next = rest.strip_prefix(',');
            let next = next.ok_or_else(|| malformed("after an element comes a comma or }"))?;
            rest = next.trim_start_matches(SPACES);
        }
        element(rest).map(Some)
    }

    fn check_end(&self, after: &str) -> Result<(), PgError> {
        if !after.is_empty() {
            return Err(malformed("something comes after the last }"));
        }
        if self.announced.is_some_and(|announced| announced != self.read) {
            return Err(malformed("its bounds do not fit the number of its elements"));
        }
        Ok(())
    }
}

impl Iterator for TextArray<'_> {
    type Item = Result<Option<String>, PgError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        let (element, after) = match self.advance(rest).transpose()? {
            Ok(next) => next,
            Err(error) => return Some(Err(error)),
        };
        (self.rest, self.read) = (Some(after), self.read + 1);
        Some(Ok(element))
    }
}

/// The length that bounds such as `[1:3]=` announce, and the rest of the text.
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
    if length < 1 {
        return Err(malformed("its last bound is before its first"));
    }
    Ok((length, rest.trim_start_matches(SPACES)))
}

/// The element at the start of a text, and the rest of the text.
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

/// Adds the text of an element, quoted if necessary.
pub(in crate::postgres) fn add_text(to: &mut BytesMut, element: &[u8]) {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Vec<Option<String>>, PgError> {
        TextArray::new(text)?.collect()
    }

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

    #[test]
    fn arrays_have_the_form_of_postgresql() {
        // Each answer was compared with PostgreSQL's documentation of array_in.
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
            assert_eq!(read(text).unwrap(), expected, "{text}");
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
            "[1:0]={}",
            "[1:2={1,2}",
            "[x]={1}",
            "[]={1}",
            "[1:99999999999]={1}",
            "[1:1]",
            "{a,,b}",
        ] {
            assert_eq!(read(text).unwrap_err().code, "22P02", "{text}");
        }
        for text in ["{{1,2},{3,4}}", "{ {1} }", "{{}}", "[1:1][1:2]={{1,2}}"] {
            assert_eq!(read(text).unwrap_err().code, "0A000", "{text}");
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
            prop_assert_eq!(read(&to_text(&elements)).unwrap(), elements);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[\\[\\]0-9:=]{0,8}[{}\",\\\\ aN]{0,12}") {
            let _ = read(&text);
        }
    }
}
