//! Rewrites statements on the catalog in forms that DataFusion can run.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Ident, LimitClause, ObjectName, Query, SelectItem, SetExpr, Statement, TableFactor, Value,
    VisitMut, VisitorMut, visit_expressions_mut,
};

use super::added_tables::is_added;
use super::columns::TYPE_KINDS;
use super::empty_queries::replace_empty;
use super::pg_settings;
use super::syntax::{Names, PG_CATALOG, aggregates, catalog_table, reads_catalog_only};
use crate::sql::syntax::{is_named, is_user, last_name, literal, normalized, parsed, text_of};

/// Columns that every table of PostgreSQL has and that `*` leaves out.
const SYSTEM_COLUMNS: [&str; 4] = ["tableoid", "xmin", "xmax", "ctid"];

/// Columns that refer to functions, by name here and by number in PostgreSQL.
const FUNCTIONS: [&str; 11] = [
    "aggfnoid",
    "amhandler",
    "amproc",
    "oprcode",
    "typanalyze",
    "typinput",
    "typmodin",
    "typmodout",
    "typoutput",
    "typreceive",
    "typsend",
];

/// Functions that return the comment on an object.
const COMMENTS: [&str; 3] = ["col_description", "obj_description", "shobj_description"];

/// Rewrites a statement that reads only the catalog.
pub(in crate::sql) fn rewrite(statement: &mut Statement) {
    let Names { with, aliases } = Names::of(statement);
    let _ = VisitMut::visit(statement, &mut NameTables { with: &with });
    if !reads_catalog_only(statement) {
        return;
    }
    replace_empty(statement, &with);
    let _: ControlFlow<()> = visit_expressions_mut(statement, |expression| {
        // A column that the statement itself has named is not a column of the catalog.
        if !column(expression).is_some_and(|name| aliases.contains(&normalized(name))) {
            rewrite_expression(expression, &aliases);
        }
        ControlFlow::Continue(())
    });
    let _ = VisitMut::visit(statement, &mut NameNulls);
}

/// Adds the schema to names of catalog tables that datafusion-pg-catalog does not have. Replaces a function by the
/// table that it reads.
struct NameTables<'a> {
    /// The names of WITH queries, which may equal those of tables.
    with: &'a HashSet<String>,
}

impl VisitorMut for NameTables<'_> {
    type Break = ();
    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, args, .. } = table else { return ControlFlow::Continue(()) };
        let (last, is_alone) = (last_name(name), name.0.len() == 1);
        let known = match (last.as_deref(), &args) {
            (Some("pg_show_all_settings"), Some(_)) => pg_settings::TABLE,
            (Some(name), None) if is_alone && is_added(name) && !self.with.contains(name) => name,
            _ => return ControlFlow::Continue(()),
        };
        *name = ObjectName::from(vec![Ident::new(PG_CATALOG), Ident::new(known)]);
        *args = None;
        ControlFlow::Continue(())
    }
}

/// Names the NULLs of a SELECT, since DataFusion refuses two columns with the same name.
struct NameNulls;

impl VisitorMut for NameNulls {
    type Break = ();
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let SetExpr::Select(select) = query.body.as_mut() {
            for (index, item) in select.projection.iter_mut().enumerate() {
                let SelectItem::UnnamedExpr(expr) = item else { continue };
                if is_null(expr) {
                    let (expr, alias) = (expr.clone(), Ident::new(format!("column{}", index + 1)));
                    *item = SelectItem::ExprWithAlias { expr, alias };
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn is_null(expression: &Expr) -> bool {
    match expression {
        Expr::Value(value) => value.value == Value::Null,
        Expr::Cast { expr, .. } => is_null(expr),
        _ => false,
    }
}

fn rewrite_expression(expression: &mut Expr, aliases: &HashSet<String>) {
    let replacement = match expression {
        Expr::CompoundIdentifier(names) => {
            let column = names.last().map(|name| name.value.as_str());
            let is_system = column.is_some_and(|column| SYSTEM_COLUMNS.contains(&column));
            is_system.then(|| parsed("NULL::int")).flatten()
        }
        Expr::Identifier(name) if SYSTEM_COLUMNS.contains(&name.value.as_str()) => {
            parsed("NULL::int")
        }
        // These are comments, too, by the kind of their object.
        Expr::BinaryOp { left, op: BinaryOperator::Eq, .. }
            if column(left).is_some_and(|name| name.value == "classoid") =>
        {
            parsed("false")
        }
        // There are no types of such kinds here, so that expressions on them need not be supported.
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right }
            if column(left)
                .is_some_and(|name| name.value == "typtype" && !aliases.contains("typtype"))
                && text_of(right).is_some_and(|kind| !TYPE_KINDS.contains(&kind)) =>
        {
            parsed("false")
        }
        // PostgreSQL uses 0 for no function, whose name is a hyphen.
        Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::NotEq, right }
            if holds_function(left) && is_zero(right) =>
        {
            **right = literal("-");
            None
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            if holds_function(left) {
                name_function(right);
            } else if holds_function(right) {
                name_function(left);
            }
            None
        }
        // In `oid::regtype::text`, types are numbers here.
        Expr::Cast { expr, data_type: DataType::Text | DataType::Varchar(None), .. } => {
            let Expr::Cast { expr: number, data_type, .. } = expr.as_ref() else { return };
            let is_type = data_type.to_string().to_ascii_lowercase().ends_with("regtype");
            is_type.then(|| parsed(&format!("format_type({number}, -1)"))).flatten()
        }
        // Values with `::regprocedure` are names already.
        Expr::Cast { expr, .. } if holds_function(expr) => Some(expr.as_ref().clone()),
        Expr::Subquery(query) => {
            aggregate(query, "first_value");
            None
        }
        // No table of the catalog has such a column.
        Expr::Function(_) if is_user(expression) => parsed("session_user()"),
        // There are no comments, so their keys need not be evaluated.
        Expr::Function(function) if is_named(&function.name, &COMMENTS) => parsed("NULL::text"),
        // Tables have no storage options.
        Expr::Function(function) if function.to_string().contains("unnest(tc.reloptions)") => {
            parsed("''")
        }
        Expr::Function(function) if is_named(&function.name, &["coalesce"]) => {
            name_empty_array(function);
            None
        }
        Expr::Function(function) => match &mut function.args {
            FunctionArguments::Subquery(query) => {
                aggregate(query, "array_agg");
                Some(Expr::Subquery(query.clone()))
            }
            _ => None,
        },
        _ => None,
    };
    if let Some(replacement) = replacement {
        *expression = replacement;
    }
}

/// Replaces the text in `coalesce(array, '{}')`, which would not have the type of the array.
fn name_empty_array(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(last))) = list.args.last_mut() else {
        return;
    };
    if let Expr::Value(value) = last
        && matches!(&value.value, Value::SingleQuotedString(text) if text == "{}")
        && let Some(array) = parsed("ARRAY[]")
    {
        *last = array;
    }
}

/// Adds an aggregate to a subquery, since DataFusion runs a correlated subquery only if it has one. Subqueries that
/// clients send on the catalog have at most one row, or collect their rows in an array.
fn aggregate(query: &mut Query, function: &str) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let has_offset = match &query.limit_clause {
        Some(LimitClause::LimitOffset { offset, .. }) => offset.is_some(),
        Some(LimitClause::OffsetCommaLimit { .. }) => true,
        None => false,
    };
    if has_offset || aggregates(select) || select.distinct.is_some() || select.from.is_empty() {
        return;
    }
    let [SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. }] =
        &mut select.projection[..]
    else {
        return;
    };
    let order = query.order_by.take().map(|order| order.to_string()).unwrap_or_default();
    // `ORDER BY 1` would sort by a constant.
    let order = if order.ends_with(" 1") { format!("ORDER BY {expression}") } else { order };
    let text = format!("{function}({expression} {order})");
    if let Some(aggregated) = parsed(&text) {
        *expression = aggregated;
        query.limit_clause = None;
    }
}

fn is_zero(expression: &Expr) -> bool {
    let Expr::Value(value) = expression else { return false };
    matches!(&value.value, Value::Number(number, _) if number == "0")
}

fn holds_function(expression: &Expr) -> bool {
    column(expression).is_some_and(|name| FUNCTIONS.contains(&name.value.as_str()))
}

/// The name of a column.
fn column(expression: &Expr) -> Option<&Ident> {
    match expression {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(names) => names.last(),
        _ => None,
    }
}

/// Replaces an expression for a function by its name.
fn name_function(expression: &mut Expr) {
    if let Expr::CompoundIdentifier(names) = expression
        && let Some(column) = names.last_mut()
        && column.value == "oid"
    {
        "proname".clone_into(&mut column.value);
    } else if let Some(name) = function_name(expression) {
        *expression = name;
    }
}

/// The name in `'name'::regproc`, which the parser has turned into a subquery.
fn function_name(expression: &Expr) -> Option<Expr> {
    let Expr::Subquery(query) = expression else { return None };
    let select = query.body.as_select()?;
    let [table] = &select.from[..] else { return None };
    let TableFactor::Table { name, .. } = &table.relation else { return None };
    let Some(Expr::BinaryOp { right, .. }) = &select.selection else { return None };
    let Expr::Value(value) = right.as_ref() else { return None };
    let Value::SingleQuotedString(function) = &value.value else { return None };
    let function = function.strip_prefix("pg_catalog.").unwrap_or(function);
    (catalog_table(name)? == "pg_proc")
        .then(|| Expr::value(Value::SingleQuotedString(function.to_owned())))
}
