//! Helpers that inspect and create parts of SQL statements.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, Query, Value, ValueWithSpan,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// A name as DataFusion compares it, with unquoted names in lower case.
pub(crate) fn normalized(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_ascii_lowercase(),
    }
}

/// The last part of a name with schemas.
pub(super) fn last_name(name: &ObjectName) -> Option<String> {
    name.0.last()?.as_ident().map(normalized)
}

/// Whether the last part of a name is one of these.
pub(super) fn is_named(name: &ObjectName, wanted: &[&str]) -> bool {
    last_name(name).is_some_and(|name| wanted.contains(&name.as_str()))
}

/// Whether an expression is the word USER, which the parser treats as a function.
pub(super) fn is_user(expression: &Expr) -> bool {
    matches!(expression, Expr::Function(function)
        if matches!(function.args, FunctionArguments::None) && is_named(&function.name, &["user"]))
}

/// The text of a literal.
pub(super) fn text_of(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => Some(text),
        _ => None,
    }
}

/// A text as a literal.
pub(super) fn literal(text: &str) -> Expr {
    Expr::value(Value::SingleQuotedString(text.to_owned()))
}

/// A call of a function.
pub(super) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let arguments = arguments.into_iter().map(FunctionArgExpr::Expr).map(FunctionArg::Unnamed);
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// An expression from its text.
pub(super) fn parsed(expression: &str) -> Option<Expr> {
    let parser = Parser::new(&PostgreSqlDialect {});
    parser.try_with_sql(expression).ok()?.parse_expr().ok()
}

/// A query from its text.
pub(super) fn parsed_query(query: &str) -> Option<Box<Query>> {
    let parser = Parser::new(&PostgreSqlDialect {});
    parser.try_with_sql(query).ok()?.parse_query().ok()
}
