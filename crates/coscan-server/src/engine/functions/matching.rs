//! Patterns of LIKE with another escape character than the backslash, and of SIMILAR TO, in forms that DataFusion has.

use datafusion::error::{DataFusionError, Result};

use crate::engine::errors::invalid_value;

/// The escape character of a pattern; `None` for the empty text.
fn escape_of(text: &str) -> Result<Option<char>> {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (first, None) => Ok(first),
        _ => Err(invalid_value("invalid escape: ESCAPE takes one character, or none")),
    }
}

/// A pattern of LIKE with the backslash for its escape character.
pub(super) fn like_escape(pattern: &str, escape: &str) -> Result<String> {
    let escape = escape_of(escape)?;
    let (mut form, mut letters) = (String::with_capacity(pattern.len()), pattern.chars());
    while let Some(letter) = letters.next() {
        if Some(letter) == escape {
            let escaped = letters.next().ok_or_else(ends_with_escape)?;
            form.extend(['\\', escaped]);
        } else if letter == '\\' {
            form.push_str("\\\\");
        } else {
            form.push(letter);
        }
    }
    Ok(form)
}

fn ends_with_escape() -> DataFusionError {
    invalid_value("a pattern must not end with its escape character")
}

/// A regular expression for a pattern of SIMILAR TO. It matches whole texts: `%` and `_` are those of LIKE; `|`, `*`, `+`,
/// `?`, `{…}`, `(…)`, `[…]` are those of regular expressions.
pub(in crate::engine) fn similar_to_escape(pattern: &str, escape: &str) -> Result<String> {
    let escape = escape_of(escape)?;
    let (mut form, mut letters) = ("^(?s:".to_owned(), pattern.chars().peekable());
    while let Some(letter) = letters.next() {
        match letter {
            letter if Some(letter) == escape => match letters.next() {
                Some('"') => {
                    return Err(invalid_value(
                        "the pattern has a separator, which only substring() takes",
                    ));
                }
                Some(letter) => push_plain(&mut form, letter),
                None => return Err(ends_with_escape()),
            },
            '%' => form.push_str(".*"),
            '_' => form.push('.'),
            '(' => form.push_str("(?:"),
            '|' | '*' | '+' | '?' | '{' | '}' | ')' => form.push(letter),
            '[' => {
                form.push('[');
                push_class(&mut form, &mut letters, escape)?;
            }
            letter => push_plain(&mut form, letter),
        }
    }
    form.push_str(")$");
    Ok(form)
}

/// The rest of a class such as `[^a-z[:digit:]]`.
fn push_class(
    form: &mut String,
    letters: &mut std::iter::Peekable<std::str::Chars<'_>>,
    escape: Option<char>,
) -> Result<()> {
    if letters.next_if_eq(&'^').is_some() {
        form.push('^');
    }
    let mut is_first = true;
    while let Some(letter) = letters.next() {
        match letter {
            ']' if !is_first => {
                form.push(']');
                return Ok(());
            }
            '[' if letters.peek() == Some(&':') => {
                form.push('[');
                for letter in letters.by_ref() {
                    form.push(letter);
                    if letter == ']' {
                        break;
                    }
                }
            }
            '-' => form.push('-'),
            letter if Some(letter) == escape => {
                push_plain(form, letters.next().ok_or_else(ends_with_escape)?);
            }
            letter => push_plain(form, letter),
        }
        is_first = false;
    }
    Err(invalid_value("a pattern has a [ without its ]"))
}

/// A character that stands for itself.
fn push_plain(form: &mut String, letter: char) {
    if r"\.+*?()|[]{}^$#&-~".contains(letter) {
        form.push('\\');
    }
    form.push(letter);
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
