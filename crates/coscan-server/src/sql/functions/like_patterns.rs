//! Converts patterns of LIKE with an escape character other than the backslash, and of SIMILAR TO, to forms that
//! DataFusion has.

use datafusion::error::{DataFusionError, Result};

use crate::sql::errors::invalid_value;

/// The escape character of a pattern, or `None` for the empty text.
fn escape_of(text: &str) -> Result<Option<char>> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (first, None) => Ok(first),
        _ => Err(invalid_value("invalid escape: ESCAPE takes one character, or none")),
    }
}

/// A pattern of LIKE with the backslash for its escape character.
pub(super) fn like_escape(pattern: &str, escape: &str) -> Result<String> {
    let escape = escape_of(escape)?;
    let (mut escaped, mut characters) = (String::with_capacity(pattern.len()), pattern.chars());
    while let Some(character) = characters.next() {
        if Some(character) == escape {
            let next = characters.next().ok_or_else(ends_with_escape)?;
            escaped.extend(['\\', next]);
        } else if character == '\\' {
            escaped.push_str("\\\\");
        } else {
            escaped.push(character);
        }
    }
    Ok(escaped)
}

fn ends_with_escape() -> DataFusionError {
    invalid_value("a pattern must not end with its escape character")
}

/// A regular expression for a pattern of SIMILAR TO. It matches whole texts. `%` and `_` have the meaning that they
/// have in LIKE. `|`, `*`, `+`, `?`, `{…}`, `(…)`, `[…]` have the meaning that they have in regular expressions.
pub(in crate::sql) fn similar_to_escape(pattern: &str, escape: &str) -> Result<String> {
    let escape = escape_of(escape)?;
    let (mut regex, mut characters) = ("^(?s:".to_owned(), pattern.chars().peekable());
    while let Some(character) = characters.next() {
        match character {
            character if Some(character) == escape => match characters.next() {
                Some('"') => {
                    return Err(invalid_value(
                        "the pattern has a separator, which only substring() takes",
                    ));
                }
                Some(character) => push_plain(&mut regex, character),
                None => return Err(ends_with_escape()),
            },
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            '(' => regex.push_str("(?:"),
            '|' | '*' | '+' | '?' | '{' | '}' | ')' => regex.push(character),
            '[' => {
                regex.push('[');
                push_class(&mut regex, &mut characters, escape)?;
            }
            character => push_plain(&mut regex, character),
        }
    }
    regex.push_str(")$");
    Ok(regex)
}

/// Adds the rest of a class such as `[^a-z[:digit:]]`.
fn push_class(
    regex: &mut String,
    characters: &mut std::iter::Peekable<std::str::Chars<'_>>,
    escape: Option<char>,
) -> Result<()> {
    if characters.next_if_eq(&'^').is_some() {
        regex.push('^');
    }
    let mut is_first = true;
    while let Some(character) = characters.next() {
        match character {
            ']' if !is_first => {
                regex.push(']');
                return Ok(());
            }
            '[' if characters.peek() == Some(&':') => {
                regex.push('[');
                for character in characters.by_ref() {
                    regex.push(character);
                    if character == ']' {
                        break;
                    }
                }
            }
            '-' => regex.push('-'),
            character if Some(character) == escape => {
                push_plain(regex, characters.next().ok_or_else(ends_with_escape)?);
            }
            character => push_plain(regex, character),
        }
        is_first = false;
    }
    Err(invalid_value("a pattern has a [ without its ]"))
}

/// Adds a character that stands for itself.
fn push_plain(regex: &mut String, character: char) {
    if r"\.+*?()|[]{}^$#&-~".contains(character) {
        regex.push('\\');
    }
    regex.push(character);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn patterns_of_like_take_another_escape_character() {
        assert_eq!(like_escape("pg/_%", "/").unwrap(), r"pg\_%");
        assert_eq!(like_escape(r"a\b//", "/").unwrap(), r"a\\b\/");
        assert_eq!(like_escape(r"a\%", "").unwrap(), r"a\\%");
        assert!(like_escape("a/", "/").is_err() && like_escape("a", "ab").is_err());
    }

    #[test]
    fn patterns_of_similar_to_are_regular_expressions_of_whole_texts() {
        for (pattern, expected) in [
            ("a%", "^(?s:a.*)$"),
            ("(a|b)_", "^(?s:(?:a|b).)$"),
            ("a.b", r"^(?s:a\.b)$"),
            (r"50\%", "^(?s:50%)$"),
            ("[^]a-z[:digit:]&]+", r"^(?s:[^\]a-z[:digit:]\&]+)$"),
        ] {
            assert_eq!(similar_to_escape(pattern, "\\").unwrap(), expected);
        }
        assert!(similar_to_escape("[a", "\\").is_err());
    }
}
