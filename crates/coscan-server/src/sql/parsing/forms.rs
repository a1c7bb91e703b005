//! Rewrites forms of PostgreSQL that DataFusion does not know, or ignores, in forms that it supports.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CopySource, Expr, Fetch, Ident, LimitClause, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Statement, TableAlias, TableAliasColumnDef,
    TableFactor, Value, VisitMut, VisitorMut,
};

use super::expressions::{name_user, refuse, rewrite_expression};
use crate::queries::QueryError;
use crate::sql::column_names::repeated;
use crate::sql::syntax::{last_name, normalized, parsed_query};

/// Rewrites a statement.
///
/// # Errors
/// If a part of it would be ignored.
pub(super) fn rewrite_forms(statement: &mut Statement) -> Result<(), QueryError> {
    if let Statement::Set(_) = statement {
        return Ok(()); // Its values are no expressions of a query.
    }
    if let Some(query) = query_of(statement) {
        name_columns(&mut query.body);
    }
    match VisitMut::visit(statement, &mut Forms) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Functions of one value that may stand for a table.
const SCALAR_FUNCTIONS: [&str; 8] = [
    "current_database",
    "current_schema",
    "current_schemas",
    "current_setting",
    "pg_backend_pid",
    "session_user",
    "string_to_array",
    "version",
];

struct Forms;

impl VisitorMut for Forms {
    type Break = QueryError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if let SetExpr::Select(select) = query.body.as_mut() {
            if select.from.is_empty() {
                name_user(&mut select.projection);
            }
            qualify_wildcards(select);
        }
        numbers_of_limit(query);
        match query.fetch.take() {
            None => ControlFlow::Continue(()),
            Some(Fetch { with_ties: true, .. }) => {
                refuse("FETCH FIRST … WITH TIES", "use a window function")
            }
            Some(_) if has_limit(query) => refuse("LIMIT with FETCH FIRST", ""),
            Some(Fetch { percent: true, .. }) => refuse("FETCH FIRST … PERCENT", ""),
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

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Self::Break> {
        rewrite_expression(expression)
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Self::Break> {
        if let Some(query) = scalar_function_as_subquery(table) {
            *table = query;
        }
        name_series(table);
        match table {
            TableFactor::Table { sample: Some(_), .. }
            | TableFactor::Derived { sample: Some(_), .. } => {
                refuse("TABLESAMPLE", "use WHERE random() < 0.1, which reads all rows")
            }
            TableFactor::Table { with_ordinality: true, .. }
            | TableFactor::Function { with_ordinality: true, .. } => {
                refuse("WITH ORDINALITY", "use row_number()")
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Converts the text in `LIMIT '10'` to a number.
fn numbers_of_limit(query: &mut Query) {
    let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause else {
        return;
    };
    for rows in limit.iter_mut().chain(offset.iter_mut().map(|offset| &mut offset.value)) {
        if let Expr::Value(value) = rows
            && let Value::SingleQuotedString(text) = &value.value
            && text.parse::<u64>().is_ok()
        {
            value.value = Value::Number(text.clone(), false);
        }
    }
}

/// Qualifies the wildcard of `SELECT t.* FROM schema.t`, since the name of the table includes its schema.
fn qualify_wildcards(select: &mut Select) {
    let tables = select.from.iter().flat_map(|table| {
        let joined = table.joins.iter().map(|join| &join.relation);
        std::iter::once(&table.relation).chain(joined)
    });
    let names: Vec<_> = tables
        .filter_map(|table| match table {
            TableFactor::Table { name, alias: None, args: None, .. } if name.0.len() > 1 => {
                Some(name.clone())
            }
            _ => None,
        })
        .collect();
    for item in &mut select.projection {
        if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(of), _) =
            item
            && let [part] = &of.0[..]
            && let Some(name) =
                names.iter().find(|name| last_name(name) == part.as_ident().map(normalized))
        {
            *of = name.clone();
        }
    }
}

/// Names the column of `FROM generate_series(1, 3) i` like the table.
fn name_series(table: &mut TableFactor) {
    if let TableFactor::Table { name, args: Some(_), alias, .. } = table
        && last_name(name).as_deref() == Some("generate_series")
    {
        let named = || TableAlias {
            explicit: true,
            name: Ident::new("generate_series"),
            columns: Vec::new(),
            at: None,
        };
        let TableAlias { name, columns, .. } = alias.get_or_insert_with(named);
        if columns.is_empty() {
            columns.push(TableAliasColumnDef { name: name.clone(), data_type: None });
        }
    }
}

/// Replaces `FROM current_schema() s` by a table of one value, with a column of the same name.
fn scalar_function_as_subquery(table: &TableFactor) -> Option<TableFactor> {
    let TableFactor::Table { name, args: Some(args), alias, .. } = table else { return None };
    let function = name.0.last()?.as_ident()?;
    if !SCALAR_FUNCTIONS.contains(&normalized(function).as_str()) {
        return None;
    }
    let named = |name| TableAlias { explicit: true, name, columns: Vec::new(), at: None };
    let alias = alias.clone().unwrap_or_else(|| named(function.clone()));
    let arguments: Vec<_> = args.args.iter().map(ToString::to_string).collect();
    let query = format!("SELECT {function}({}) AS {}", arguments.join(", "), alias.name);
    Some(TableFactor::Derived {
        lateral: false,
        subquery: parsed_query(&query)?,
        alias: Some(alias),
        sample: None,
    })
}

fn has_limit(query: &Query) -> bool {
    match &query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) => limit.is_some(),
        Some(LimitClause::OffsetCommaLimit { .. }) => true,
        None => false,
    }
}

/// The query whose result a statement returns or copies.
fn query_of(statement: &mut Statement) -> Option<&mut Query> {
    match statement {
        Statement::Query(query) => Some(query),
        Statement::Copy { source: CopySource::Query(query), .. } => Some(query),
        Statement::Explain { statement, .. } => query_of(statement),
        Statement::Declare { stmts } => stmts.last_mut()?.for_query.as_deref_mut(),
        _ => None,
    }
}

/// Renames columns of a result whose names are taken. Clients may use a name twice, but DataFusion does not allow it.
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
