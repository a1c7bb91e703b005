//! How deep an expression may be. Parsers, planners and operators walk expressions by recursion, and a chain such as
//! `1 + 1 + …` is as deep as it is long: one of a hundred thousand terms would exhaust the stack and end the process.

use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::engine::errors::from_tokenizer;
use crate::queries::{ErrorKind, QueryError};

/// The most words and signs between two commas, or the ends of parentheses. Each level of a chain has two or more.
const TOKENS_MAX: usize = 2_000;

/// The most set operations of a text: their branches may have commas.
const SET_OPERATIONS_MAX: usize = 200;

/// Refuses texts with chains that are too long. Nesting in parentheses is limited by the parser.
pub(super) fn check_depth(text: &str) -> Result<(), QueryError> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize();
    let tokens = tokens.map_err(|error| from_tokenizer(&error))?;
    let (mut counts, mut set_operations) = (vec![0_usize], 0);
    for token in &tokens {
        match token {
            Token::Whitespace(_) => continue,
            Token::LParen | Token::LBracket | Token::LBrace => {
                count(&mut counts)?;
                counts.push(0);
                continue;
            }
            Token::RParen | Token::RBracket | Token::RBrace if counts.len() > 1 => {
                counts.pop();
            }
            Token::Comma | Token::SemiColon => {
                if let Some(count) = counts.last_mut() {
                    *count = 0;
                }
            }
            Token::Word(word) => {
                let is_set_operation = matches!(
                    word.keyword,
                    Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::JOIN
                );
                set_operations += usize::from(is_set_operation);
            }
            _ => {}
        }
        count(&mut counts)?;
    }
    if set_operations > SET_OPERATIONS_MAX {
        let text = format!("the text has more than {SET_OPERATIONS_MAX} joins and set operations");
        return Err(QueryError::new(ErrorKind::TooComplex, text));
    }
    Ok(())
}

fn count(counts: &mut [usize]) -> Result<(), QueryError> {
    let Some(count) = counts.last_mut() else { return Ok(()) };
    *count += 1;
    if *count <= TOKENS_MAX {
        return Ok(());
    }
    let text = format!(
        "an expression has more than {TOKENS_MAX} words and signs; write IN (…) instead of many ORs, or join with VALUES"
    );
    Err(QueryError::new(ErrorKind::TooComplex, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_chains_are_refused_and_long_lists_are_not() {
        let list = format!("SELECT a FROM t WHERE a IN ({}1)", "-1, ".repeat(100_000));
        let rows = format!("VALUES {}(1)", "(1, 'a'), ".repeat(50_000));
        for text in [list, rows, "SELECT 1".to_owned(), String::new()] {
            assert_eq!(check_depth(&text), Ok(()));
        }
        let union = format!("SELECT 1, 2{}", " UNION SELECT 1, 2".repeat(5_000));
        for text in [
            format!("SELECT 1{}", "+1".repeat(100_000)),
            format!("SELECT f(a, 1{})", " OR a".repeat(100_000)),
            format!("SELECT (1){}", "+(1)".repeat(100_000)),
            format!("SELECT 1{}", "::int".repeat(100_000)),
            union,
        ] {
            let error = check_depth(&text).err().map(|error| error.kind);
            assert_eq!(error, Some(ErrorKind::TooComplex));
        }
    }
}
