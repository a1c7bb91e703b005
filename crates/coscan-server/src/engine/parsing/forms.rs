//! Forms of PostgreSQL that DataFusion does not know, or does not heed, in forms that it does.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CopySource, Expr, Fetch, Ident, LimitClause, Query, SelectItem, SetExpr, Statement,
    TableFactor, Value, VisitMut, VisitorMut,
};

use super::expansion::normalized;
use crate::engine::column_names::repeated;
use crate::queries::{ErrorKind, QueryError};

/// Rewrites a statement.
///
/// # Errors
/// If it asks for what would be left out.
pub(super) fn rewrite_forms(statement: &mut Statement) -> Result<(), QueryError> {
    if let Some(query) = query_of(statement) {
        name_columns(&mut query.body);
    }
    match VisitMut::visit(statement, &mut Forms) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(what) => {
            Err(QueryError::new(ErrorKind::NotSupported, format!("{what} is not supported")))
        }
    }
}

struct Forms;

impl VisitorMut for Forms {
    type Break = &'static str;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        match query.fetch.take() {
            None => ControlFlow::Continue(()),
            Some(Fetch { with_ties: true, .. }) => {
                ControlFlow::Break("FETCH FIRST … WITH TIES; use a window function,")
            }
            Some(_) if has_limit(query) => ControlFlow::Break("both LIMIT and FETCH FIRST"),
            Some(Fetch { percent: true, .. }) => ControlFlow::Break("FETCH FIRST … PERCENT"),
            Some(Fetch { quantity, .. }) => {
                let one = || Expr::value(Value::Number("1".to_owned(), false));
                let rows = Some(quantity.unwrap_or_else(one));
                let offset = match query.limit_clause.take() {
                    Some(LimitClause::LimitOffset { offset, .. }) => offset,
                    _ => None,
                };
                let limit_by = Vec::new();
                query.limit_clause =
                    Some(LimitClause::LimitOffset { limit: rows, offset, limit_by });
                ControlFlow::Continue(())
            }
        }
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Self::Break> {
        match table {
            TableFactor::Table { sample: Some(_), .. }
            | TableFactor::Derived { sample: Some(_), .. } => ControlFlow::Break(
                "TABLESAMPLE; use WHERE random() < 0.1, which reads all rows: it",
            ),
            TableFactor::Table { with_ordinality: true, .. }
            | TableFactor::Function { with_ordinality: true, .. } => {
                ControlFlow::Break("WITH ORDINALITY")
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn has_limit(query: &Query) -> bool {
    match &query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) => limit.is_some(),
        Some(LimitClause::OffsetCommaLimit { .. }) => true,
        None => false,
    }
}

/// The query whose result a statement returns, or copies.
fn query_of(statement: &mut Statement) -> Option<&mut Query> {
    match statement {
        Statement::Query(query) => Some(query),
        Statement::Copy { source: CopySource::Query(query), .. } => Some(query),
        Statement::Explain { statement, .. } => query_of(statement),
        Statement::Declare { stmts } => stmts.last_mut()?.for_query.as_deref_mut(),
        _ => None,
    }
}

/// Gives columns of a result other names if theirs are taken: clients may have two of one name, DataFusion not.
fn name_columns(body: &mut SetExpr) {
    let select = match body {
        SetExpr::Select(select) => select,
        SetExpr::Query(query) => return name_columns(&mut query.body),
        SetExpr::SetOperation { left, right, .. } => {
            name_columns(left);
            return name_columns(right);
        }
        _ => return,
    };
    let mut taken = HashSet::new();
    for (place, item) in select.projection.iter_mut().enumerate() {
        let (name, expression) = match item {
            SelectItem::UnnamedExpr(expression) => (name_of(expression), expression),
            SelectItem::ExprWithAlias { expr, alias } => (normalized(alias), expr),
            _ => continue,
        };
        let text = match expression {
            Expr::CompoundIdentifier(_) => expression.to_string(), // Of another table it is no repetition.
            _ => name.clone(),
        };
        if !taken.insert(text) {
            let alias = Ident::with_quote('"', repeated(&name, place));
            *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias };
        }
    }
}

/// The name of a column without an alias.
fn name_of(expression: &Expr) -> String {
    match expression {
        Expr::Identifier(name) => normalized(name),
        Expr::CompoundIdentifier(names) => names.last().map(normalized).unwrap_or_default(),
        Expr::Function(_) => expression.to_string().to_ascii_lowercase(),
        other => other.to_string(),
    }
}
