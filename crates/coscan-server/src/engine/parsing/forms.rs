//! Forms of PostgreSQL that DataFusion does not know, or does not heed, in forms that it does.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Fetch, Ident, LimitClause, Query, SelectItem, SetExpr, Statement, TableFactor, Value,
    VisitMut, VisitorMut,
};

use crate::engine::column_names::repeated;
use crate::queries::{ErrorKind, QueryError};

/// Rewrites a statement.
///
/// # Errors
/// If it asks for what would be left out.
pub(super) fn rewrite_forms(statement: &mut Statement) -> Result<(), QueryError> {
    if let Statement::Query(query) = statement {
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

/// Gives columns of a result other names if theirs are taken: clients may have two of one name, DataFusion not.
fn name_columns(body: &mut SetExpr) {
    let select = match body {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { left, .. } => return name_columns(left),
        _ => return,
    };
    let mut taken = HashSet::new();
    for (index, item) in select.projection.iter_mut().enumerate() {
        let (name, expression) = match item {
            SelectItem::UnnamedExpr(expression) => (expression.to_string(), expression),
            SelectItem::ExprWithAlias { expr, alias } => (alias.value.clone(), expr),
            _ => continue,
        };
        if !taken.insert(name.clone()) {
            let plain = match expression {
                Expr::CompoundIdentifier(names) => names.last().map(|name| name.value.clone()),
                _ => None,
            };
            let alias = Ident::with_quote('"', repeated(&plain.unwrap_or(name), index));
            *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias };
        }
    }
}
