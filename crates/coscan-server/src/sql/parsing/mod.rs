//! Parses texts to statements. The work is bounded, including that of planning: by the `depth` of the text, by the
//! steps of the parser (`dialect`), and by the `expansion` of the statement. Some `forms` and `expressions` are
//! rewritten.

mod depth;
mod dialect;
mod expansion;
mod expressions;
mod forms;

use std::panic::{AssertUnwindSafe, catch_unwind};

use coscan_datafusion::count_versions;
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser as SqlParser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use datafusion_pg_catalog::pg_catalog::PG_CATALOG_TABLES;
use datafusion_pg_catalog::sql::PostgresCompatibilityParser;

use crate::queries::{ErrorKind, QueryError};
use crate::sql::STACK_BYTES;
use crate::sql::errors::{from_parser, from_tokenizer};
use crate::sql::pg_catalog::{rewrite, with_names};
use depth::check_depth;
use dialect::{BoundedDialect, TooManySteps};
use expansion::check_expansion;
pub(super) use expansion::{EXPRESSIONS_MAX, PARTS_MAX};
use forms::rewrite_forms;

/// The maximum number of earlier versions of tables that a statement names.
const VERSIONS_MAX: usize = 8;

/// Parses statements, and rewrites parts that DataFusion has in other forms.
#[derive(Debug, Default)]
pub(super) struct Parser {
    rules: PostgresCompatibilityParser,
}

/// Refuses a text whose chains of operators, or of SELECTs and joins, are so long that planning it would exhaust a stack of `stack_bytes`.
/// For programs that plan statements without a server.
///
/// # Errors
/// If there is such a chain.
pub fn check_chains(text: &str, stack_bytes: usize) -> Result<(), QueryError> {
    match Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location() {
        Ok(tokens) => check_depth(&tokens, stack_bytes),
        // The parser says what is wrong with it.
        Err(_) => Ok(()),
    }
}

impl Parser {
    /// The statements in a text.
    ///
    /// # Errors
    /// If it cannot be parsed, or takes too much work.
    pub(super) fn parse(&self, text: &str) -> Result<Vec<Statement>, QueryError> {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location();
        let tokens = tokens.map_err(|error| from_tokenizer(&error))?;
        check_depth(&tokens, STACK_BYTES)?;
        let parsed = catch_unwind(AssertUnwindSafe(|| self.parse_tokens(tokens)));
        parsed.unwrap_or_else(|payload| match payload.downcast::<TooManySteps>() {
            Ok(_) => Err(too_complex(
                "the statement is nested too deeply; write parts of it as WITH queries",
            )),
            Err(_) => Err(super::errors::panicked("parsing")),
        })
    }

    fn parse_tokens(&self, mut tokens: Vec<TokenWithSpan>) -> Result<Vec<Statement>, QueryError> {
        abort_is_rollback(&mut tokens);
        end_copy(&mut tokens);
        check_versions(&tokens)?;
        let dialect = BoundedDialect::new(&tokens);
        let parser = SqlParser::new(&dialect).with_tokens_with_locations(tokens);
        let statements = { parser }.parse_statements().map_err(|error| from_parser(&error))?;
        let rewritten = statements.into_iter().map(|statement| {
            check_expansion(&statement)?;
            check_names(&statement)?;
            let mut statement = self.rules.rewrite(statement);
            rewrite_forms(&mut statement)?;
            rewrite(&mut statement);
            Ok(statement)
        });
        rewritten.collect()
    }
}

/// Replaces ABORT, which the parser does not know, by ROLLBACK.
fn abort_is_rollback(tokens: &mut [TokenWithSpan]) {
    let mut begins = true;
    for TokenWithSpan { token, .. } in tokens {
        match token {
            Token::Whitespace(_) => {}
            Token::SemiColon => begins = true,
            Token::Word(word) if begins && word.value.eq_ignore_ascii_case("abort") => {
                *token = Token::make_keyword("ROLLBACK");
                begins = false;
            }
            _ => begins = false,
        }
    }
}

/// Ends a COPY … FROM STDIN with a semicolon, without which the parser does not know it.
fn end_copy(tokens: &mut Vec<TokenWithSpan>) {
    let is_word = |token: &TokenWithSpan, text: &str| matches!(&token.token, Token::Word(word) if word.value.eq_ignore_ascii_case(text));
    let mut shown = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let is_copy = shown.next().is_some_and(|token| is_word(token, "copy"));
    let has_end = shown.clone().any(|token| token.token == Token::SemiColon);
    if is_copy && !has_end && shown.any(|token| is_word(token, "stdin")) {
        tokens.push(TokenWithSpan::wrap(Token::SemiColon));
    }
}

/// Refuses statements with too many earlier versions of tables, each of which is opened while the statement is planned.
fn check_versions(tokens: &[TokenWithSpan]) -> Result<(), QueryError> {
    let versions = count_versions(tokens.iter().map(|token| &token.token));
    if versions <= VERSIONS_MAX {
        return Ok(());
    }
    Err(too_complex(&format!(
        "the statement names {versions} earlier versions of tables, and may name {VERSIONS_MAX}; run several statements"
    )))
}

/// Refuses names that the rules take for tables of the catalog, even where a WITH query has such a name.
fn check_names(statement: &Statement) -> Result<(), QueryError> {
    match with_names(statement).iter().find(|name| PG_CATALOG_TABLES.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let text = format!(
                "a WITH query cannot be called {name}, as a table of the catalog; rename it"
            );
            Err(QueryError::new(ErrorKind::NotSupported, text))
        }
    }
}

fn too_complex(text: &str) -> QueryError {
    QueryError::new(ErrorKind::TooComplex, text)
}
