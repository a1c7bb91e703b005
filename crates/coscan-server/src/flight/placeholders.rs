//! Parameters without a number. JDBC drivers send `?` where the SQL of this server has `$1`.

use std::borrow::Cow;

use datafusion::sql::sqlparser::dialect::{Dialect, PostgreSqlDialect};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer};

/// A dialect with quotes, comments and names as in PostgreSQL, in which `?` is not an operator.
#[derive(Debug)]
struct QuestionMarks;

impl Dialect for QuestionMarks {
    fn is_identifier_start(&self, ch: char) -> bool {
        PostgreSqlDialect {}.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        PostgreSqlDialect {}.is_identifier_part(ch)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        PostgreSqlDialect {}.is_delimited_identifier_start(ch)
    }

    fn supports_string_escape_constant(&self) -> bool {
        true
    }

    fn supports_unicode_string_literal(&self) -> bool {
        true
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }
}

/// Replaces each `?` of a statement by `$1`, `$2`, …. A statement with numbered parameters, or one that cannot be
/// tokenized, stays unchanged.
pub(super) fn numbered(sql: &str) -> Cow<'_, str> {
    let tokens = Tokenizer::new(&QuestionMarks, sql).tokenize_with_location();
    let Ok(tokens) = tokens else { return sql.into() };
    let mut places = Vec::new();
    for token in &tokens {
        match &token.token {
            Token::Placeholder(name) if name == "?" => places.push(token.span.start),
            Token::Placeholder(_) => return sql.into(),
            _ => {}
        }
    }
    if places.is_empty() {
        return sql.into();
    }
    let mut numbered = String::with_capacity(sql.len() + 4 * places.len());
    let (mut at, mut count) = (Location::new(1, 1), 0);
    for character in sql.chars() {
        if places.get(count) == Some(&at) {
            count += 1;
            numbered += &format!("${count}");
        } else {
            numbered.push(character);
        }
        at = match character {
            '\n' => Location::new(at.line + 1, 1),
            _ => Location::new(at.line, at.column + 1),
        };
    }
    numbered.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_marks_get_numbers() {
        for (sql, expected) in [
            ("SELECT 1", "SELECT 1"),
            ("SELECT ?", "SELECT $1"),
            (
                "SELECT a FROM t WHERE b=? AND\n é>=?-? OR c IN (?,?)",
                "SELECT a FROM t WHERE b=$1 AND\n é>=$2-$3 OR c IN ($4,$5)",
            ),
            ("SELECT ?::int||?", "SELECT $1::int||$2"),
            ("SELECT $1, a ? 'b'", "SELECT $1, a ? 'b'"),
        ] {
            assert_eq!(numbered(sql), expected);
        }
    }

    #[test]
    fn quoted_question_marks_stay() {
        for quoted in [
            "'?'",
            "'it''s ?'",
            "E'it\\'s ?'",
            "\"?\"",
            "\"a\"\"?\"",
            "$$?$$",
            "$a$ $$ ? $a$",
            "-- ?\n",
            "/* ? /* ? */ ? */",
            "U&'?'",
            "'\\'",
        ] {
            let sql = format!("SELECT {quoted} , ?");
            assert_eq!(numbered(&sql), format!("SELECT {quoted} , $1"));
        }
        assert_eq!(numbered("SELECT 'open, ?"), "SELECT 'open, ?");
    }
}
