//! PostgreSQL's dialect, with a limit on the work of parsing.

use std::any::TypeId;
use std::cell::Cell;
use std::panic::resume_unwind;

use coscan_datafusion::count_versions;
use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::TokenWithSpan;

/// The number of parsing steps that are allowed beyond those for each token. The start of an expression or of a SELECT
/// is a step.
const STEPS: usize = 10_000;

/// The number of steps for each token. A text of which nothing is parsed twice needs at most one.
const STEPS_OF_TOKEN: usize = 8;

/// The payload of the panic that ends parsing after too many steps.
pub(super) struct TooManySteps;

/// PostgreSQL's dialect. The parser of sqlparser tries one form and then another, so that parts nested in `n` levels
/// may be parsed `2^n` times. The dialect then panics with [`TooManySteps`], since there is no other way to leave the
/// parser.
#[derive(Debug)]
pub(super) struct BoundedDialect {
    steps_left: Cell<usize>,
    /// Whether the text names a version of a table (`VERSION AS OF`).
    names_version: bool,
}

impl BoundedDialect {
    /// Creates the dialect for a text of these tokens.
    pub(super) fn new(tokens: &[TokenWithSpan]) -> Self {
        Self {
            steps_left: Cell::new(STEPS + STEPS_OF_TOKEN * tokens.len()),
            names_version: count_versions(tokens.iter().map(|token| &token.token)) > 0,
        }
    }

    fn step(&self) {
        match self.steps_left.get().checked_sub(1) {
            Some(left) => self.steps_left.set(left),
            None => resume_unwind(Box::new(TooManySteps)), // Tells no panic hook.
        }
    }
}

const POSTGRES: PostgreSqlDialect = PostgreSqlDialect {};

/// Implements methods by those of PostgreSQL's dialect.
macro_rules! as_in_postgres {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> $result { POSTGRES.$name($($argument),*) })*
    };
}

impl Dialect for BoundedDialect {
    /// The type of PostgreSQL's dialect, for which the parser has special cases.
    fn dialect(&self) -> TypeId {
        POSTGRES.dialect()
    }

    fn parse_prefix(&self, _parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        self.step();
        None
    }

    fn supports_top_before_distinct(&self) -> bool {
        self.step(); // Asked for each SELECT.
        POSTGRES.supports_top_before_distinct()
    }

    /// PostgreSQL has no such clause, and allows its words as aliases.
    fn supports_table_versioning(&self) -> bool {
        self.names_version
    }

    /// If names could be expressions, each argument would be parsed twice, at each level of calls
    /// (apache/datafusion-sqlparser-rs, issue 2378). Names that are words are still parsed.
    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        false
    }

    as_in_postgres! {
        identifier_quote_style(identifier: &str) -> Option<char>;
        is_delimited_identifier_start(ch: char) -> bool;
        is_identifier_start(ch: char) -> bool;
        is_identifier_part(ch: char) -> bool;
        supports_unicode_string_literal() -> bool;
        is_reserved_for_identifier(keyword: Keyword) -> bool;
        is_custom_operator_part(ch: char) -> bool;
        get_next_precedence(parser: &Parser) -> Option<Result<u8, ParserError>>;
        supports_filter_during_aggregation() -> bool;
        supports_group_by_expr() -> bool;
        prec_value(precedence: Precedence) -> u8;
        allow_extract_custom() -> bool;
        allow_extract_single_quotes() -> bool;
        supports_create_index_with_clause() -> bool;
        supports_explain_with_utility_options() -> bool;
        supports_listen_notify() -> bool;
        supports_factorial_operator() -> bool;
        supports_bitwise_shift_operators() -> bool;
        supports_comment_on() -> bool;
        supports_load_extension() -> bool;
        supports_named_fn_args_with_colon_operator() -> bool;
        supports_empty_projections() -> bool;
        supports_nested_comments() -> bool;
        supports_string_escape_constant() -> bool;
        supports_numeric_literal_underscores() -> bool;
        supports_array_typedef_with_brackets() -> bool;
        supports_geometric_types() -> bool;
        supports_set_names() -> bool;
        supports_alter_column_type_using() -> bool;
        supports_notnull_operator() -> bool;
        supports_interval_options() -> bool;
        supports_insert_table_alias() -> bool;
        supports_create_table_like_parenthesized() -> bool;
        supports_select_wildcard_with_alias() -> bool;
        supports_comma_separated_trim() -> bool;
        supports_xml_expressions() -> bool;
        supports_comment_optimizer_hint() -> bool;
    }
}
