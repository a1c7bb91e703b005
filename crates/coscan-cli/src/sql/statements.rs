//! Splits SQL scripts into statements.

use coscan_datafusion::count_versions;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

/// Whether a statement names an earlier version of a table.
pub(super) fn names_version(statement: &str) -> bool {
    let tokens = Tokenizer::new(&GenericDialect {}, statement).tokenize();
    tokens.is_ok_and(|tokens| count_versions(&tokens) > 0)
}

/// Splits a script at the semicolons between statements, except those in strings, names and comments.
///
/// # Errors
/// If a string or comment never ends.
pub(super) fn split(script: &str) -> Result<Vec<String>, String> {
    let (mut statements, rest) = cut(script)?;
    if !is_blank(&rest) {
        statements.push(rest.trim().to_owned());
    }
    Ok(statements)
}

/// Whether the text typed so far ends with a complete statement, so that it can run.
pub(super) fn is_complete(typed: &str) -> bool {
    cut(typed).is_ok_and(|(_, rest)| is_blank(&rest))
}

/// The statements that end with a semicolon, and the text after the last one.
fn cut(script: &str) -> Result<(Vec<String>, String), String> {
    let tokens = Tokenizer::new(&GenericDialect {}, script)
        .with_unescape(false)
        .tokenize()
        .map_err(|error| error.to_string())?;
    let mut statements = Vec::new();
    let mut current = String::new();
    for token in tokens {
        if token == Token::SemiColon {
            let statement = std::mem::take(&mut current);
            if !is_blank(&statement) {
                statements.push(statement.trim().to_owned());
            }
        } else {
            current.push_str(&token.to_string());
        }
    }
    Ok((statements, current))
}

/// Whether a text consists of white space and comments.
fn is_blank(text: &str) -> bool {
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize();
    tokens.is_ok_and(|tokens| tokens.iter().all(|token| matches!(token, Token::Whitespace(_))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_cut_between_statements_only() {
        let script = "SELECT ';' AS a; -- one; two\nSELECT \"b;c\" FROM t WHERE s = 'it''s;';;\n/* ; */ SELECT 3";
        let statements = split(script).unwrap_or_default();
        assert_eq!(statements.len(), 3, "{statements:?}");
        assert_eq!(statements[0], "SELECT ';' AS a");
        assert!(
            statements[1].ends_with("SELECT \"b;c\" FROM t WHERE s = 'it''s;'"),
            "{}",
            statements[1]
        );
        assert!(statements[2].ends_with("SELECT 3"));
    }

    #[test]
    fn a_statement_is_complete_with_its_semicolon() {
        for (typed, complete) in [
            ("SELECT 1;", true),
            ("SELECT 1; -- done", true),
            ("SELECT 1", false),
            ("SELECT ';", false),
            ("", true),
        ] {
            assert_eq!(is_complete(typed), complete, "{typed}");
        }
    }
}
