//! The maximum depth of expressions. Parsers, planners and operators visit expressions by recursion, and a chain such
//! as `1 + 1 + …` is as deep as it is long. A chain of a hundred thousand terms would exhaust the stack and end the
//! process.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::too_complex;
use crate::queries::QueryError;
use crate::sql::STACK_BYTES;

/// The maximum length of chains. A level of a chain takes about as much stack as any other, so a thread with a larger stack plans longer
/// ones.
struct Limits {
    /// Of words and signs between two commas, or the ends of parentheses, unless there are few operators. Each level of a chain has two
    /// or more, one of which is an operator.
    tokens: usize,
    /// Of operators and keywords that count as few.
    operators: usize,
    /// Of SELECTs, tables in FROM, joins and set operations of a text. Each may add a level to the plan.
    parts: usize,
}

impl Limits {
    fn of_stack(bytes: usize) -> Self {
        let scaled = |of_a_server: usize| of_a_server * (bytes >> 20) / (STACK_BYTES >> 20);
        Self { tokens: scaled(2_000), operators: scaled(1_000), parts: scaled(500) }
    }
}

/// The tokens since an open parenthesis.
#[derive(Default)]
struct Level {
    tokens: usize,
    operators: usize,
    /// Whether commas separate tables.
    in_from: bool,
}

/// Refuses texts with chains that are too long for a stack of `stack_bytes`. The parser limits the nesting of parentheses.
pub(super) fn check_depth(tokens: &[TokenWithSpan], stack_bytes: usize) -> Result<(), QueryError> {
    let limits = Limits::of_stack(stack_bytes);
    let (mut levels, mut level, mut parts) = (Vec::new(), Level::default(), 0);
    let tokens = tokens.iter().map(|token| &token.token);
    let tokens = tokens.filter(|token| !matches!(token, Token::Whitespace(_)));
    let mut before = [&Token::EOF; 2];
    for token in tokens {
        level.tokens += 1;
        level.operators += usize::from(may_add_level(token, before));
        before = [before[1], token];
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                levels.push(std::mem::take(&mut level));
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                level = levels.pop().unwrap_or(level);
            }
            Token::Comma => {
                parts += usize::from(level.in_from);
                (level.tokens, level.operators) = (0, 0);
            }
            Token::SemiColon => level = Level::default(),
            Token::Word(word) => match word.keyword {
                Keyword::FROM => level.in_from = true,
                Keyword::JOIN => parts += 1,
                Keyword::SELECT | Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT => {
                    parts += 1;
                    level.in_from = false;
                }
                Keyword::WHERE | Keyword::GROUP | Keyword::HAVING | Keyword::ORDER => {
                    level.in_from = false;
                }
                _ => {}
            },
            _ => {}
        }
        if level.tokens > limits.tokens && level.operators > limits.operators {
            return Err(too_complex(&format!(
                "an expression has more than {} operators; write IN (…) instead of many ORs, or join with VALUES",
                limits.operators
            )));
        }
    }
    if parts > limits.parts {
        return Err(too_complex(&format!(
            "there are more than {} SELECTs, tables, joins and set operations",
            limits.parts
        )));
    }
    Ok(())
}

/// Whether a token may join two levels. All tokens may, except names, literals, and separators of the branches of CASE
/// (the parser limits the nesting of CASE). `before` are the two preceding tokens.
fn may_add_level(token: &Token, before: [&Token; 2]) -> bool {
    match token {
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::Placeholder(_) => false,
        Token::Period => matches!(before[0], Token::Period), // The third part of a name, and more.
        Token::Word(word) => !matches!(
            word.keyword,
            Keyword::NoKeyword
                | Keyword::AS
                | Keyword::CASE
                | Keyword::WHEN
                | Keyword::THEN
                | Keyword::ELSE
                | Keyword::END
                | Keyword::NULL
                | Keyword::TRUE
                | Keyword::FALSE
        ),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::queries::ErrorKind;

    fn check(text: &str) -> Result<(), QueryError> {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location();
        check_depth(&tokens.unwrap(), STACK_BYTES)
    }

    #[test]
    fn threads_with_larger_stacks_plan_longer_chains() {
        let chain = format!("SELECT 1{}", "+1".repeat(3_900));
        let union = format!("SELECT 1{}", " UNION SELECT 1".repeat(900));
        for text in [chain, union] {
            let tokens = Tokenizer::new(&PostgreSqlDialect {}, &text).tokenize_with_location();
            let tokens = tokens.unwrap();
            assert!(check_depth(&tokens, STACK_BYTES).is_err());
            assert_eq!(check_depth(&tokens, 4 * STACK_BYTES), Ok(()));
        }
    }

    #[test]
    fn long_chains_are_refused_and_long_lists_are_not() {
        let list = format!("SELECT a FROM t WHERE a IN ({}1)", "-1, ".repeat(100_000));
        let rows = format!("VALUES {}(1)", "(1, 'a'), ".repeat(50_000));
        let branches = format!("SELECT CASE{} END", " WHEN t.a = 1 THEN 2".repeat(900));
        let chain = format!("SELECT id WHERE id = 0{}", " OR id = 1".repeat(480));
        for text in [list, rows, branches, chain, "SELECT 1".to_owned(), String::new()] {
            assert_eq!(check(&text), Ok(()));
        }
        let union = format!("SELECT 1, 2{}", " UNION SELECT 1, 2".repeat(5_000));
        let tables = format!("SELECT 1 FROM t{}", ", t".repeat(5_000));
        let queries = ", a AS (SELECT 1 FROM a)".repeat(5_000);
        for text in [
            tables,
            format!("WITH a AS (SELECT 1){queries} SELECT * FROM a"),
            format!("SELECT 1{}", "+1".repeat(100_000)),
            format!("SELECT f(a, 1{})", " OR a".repeat(100_000)),
            format!("SELECT (1){}", "+(1)".repeat(100_000)),
            format!("SELECT 1{}", "::int".repeat(100_000)),
            format!("SELECT a{}", ".a".repeat(100_000)),
            format!("SELECT a{}", "[1]".repeat(100_000)),
            format!("SELECT 1{}", " IS NULL".repeat(100_000)),
            format!("SELECT 1{}", " + CASE WHEN a THEN b END".repeat(100_000)),
            format!("SELECT CASE WHEN 1{} THEN 1 END", " OR when".repeat(100_000)),
            union,
        ] {
            let error = check(&text).err().map(|error| error.kind);
            assert_eq!(error, Some(ErrorKind::TooComplex));
        }
    }
}
