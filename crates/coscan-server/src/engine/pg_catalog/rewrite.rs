//! Statements on the catalog in forms that DataFusion can run.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Cte, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, Query, SelectItem, SetExpr, Statement, TableFactor, Value, Visit, VisitMut,
    Visitor, VisitorMut, visit_expressions_mut,
};

use super::no_objects::replace_empty;
use super::syntax::{aggregates, catalog_table, parsed};
use crate::engine::information_schema::INFORMATION_SCHEMA;

/// Columns that every table of PostgreSQL has and that `*` leaves out.
const SYSTEM_COLUMNS: [&str; 4] = ["tableoid", "xmin", "xmax", "ctid"];

/// Columns that hold functions: by name here, by number in PostgreSQL.
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

/// Rewrites a statement that reads the catalog and nothing else.
pub(in crate::engine) fn rewrite(statement: &mut Statement) {
    if !reads_catalog_only(statement) {
        return;
    }
    replace_empty(statement);
    let _: ControlFlow<()> = visit_expressions_mut(statement, |expression| {
        rewrite_expression(expression);
        ControlFlow::Continue(())
    });
    let _ = VisitMut::visit(statement, &mut NameNulls);
}

/// Names the NULLs of a SELECT: DataFusion refuses two columns of one name.
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

fn rewrite_expression(expression: &mut Expr) {
    let replacement = match expression {
        Expr::CompoundIdentifier(names) => {
            let column = names.last().map(|name| name.value.as_str());
            let is_system = column.is_some_and(|column| SYSTEM_COLUMNS.contains(&column));
            is_system.then(|| parsed("NULL::int")).flatten()
        }
        // Comments again, by the kind of their object.
        Expr::BinaryOp { left, op: BinaryOperator::Eq, .. }
            if column(left).is_some_and(|name| name.value == "classoid") =>
        {
            parsed("false")
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            if holds_function(left) {
                name_function(right);
            } else if holds_function(right) {
                name_function(left);
            }
            None
        }
        // `::regprocedure`: they are names already.
        Expr::Cast { expr, .. } if holds_function(expr) => Some(expr.as_ref().clone()),
        Expr::Subquery(query) => {
            aggregate(query, "first_value");
            None
        }
        // There are no comments; what they are looked up by need not be evaluated.
        Expr::Function(function) if is_named(&function.name, &COMMENTS) => parsed("NULL::text"),
        // The storage options of tables, of which there are none.
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

fn is_named(function: &ObjectName, names: &[&str]) -> bool {
    let name = function.0.last().and_then(|part| part.as_ident());
    name.is_some_and(|name| names.contains(&name.value.to_ascii_lowercase().as_str()))
}

/// `coalesce(array, '{}')`: the text would not have the type of the array.
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

/// DataFusion runs a subquery that depends on its surroundings only if it has an aggregate. Those that clients send on
/// the catalog have at most one row, or collect their rows in an array.
fn aggregate(query: &mut Query, function: &str) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    if aggregates(select) || select.distinct.is_some() || select.from.is_empty() {
        return;
    }
    let [SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. }] =
        &mut select.projection[..]
    else {
        return;
    };
    let order = query.order_by.take().map(|order| order.to_string()).unwrap_or_default();
    // `ORDER BY 1` would be a constant.
    let order = if order.ends_with(" 1") { format!("ORDER BY {expression}") } else { order };
    let text = format!("{function}({expression} {order})");
    if let Some(aggregated) = parsed(&text) {
        *expression = aggregated;
        query.limit_clause = None;
    }
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

/// Replaces what stands for a function by its name.
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

/// The name in `'name'::regproc`, which the parser has made a subquery.
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

/// Whether a statement reads tables of the catalog, and no others.
fn reads_catalog_only(statement: &Statement) -> bool {
    #[derive(Default)]
    struct Search {
        reads: bool,
        reads_others: bool,
        named: HashSet<String>,
    }
    impl Visitor for Search {
        type Break = ();
        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            let tables = query.with.iter().flat_map(|with| &with.cte_tables);
            self.named.extend(tables.map(|Cte { alias, .. }| alias.name.value.clone()));
            ControlFlow::Continue(())
        }
        fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
            let TableFactor::Table { name, args: None, .. } = table else {
                return ControlFlow::Continue(());
            };
            let schema = name.0.iter().rev().nth(1).and_then(|part| part.as_ident());
            let is_information = schema.is_some_and(|schema| schema.value == INFORMATION_SCHEMA);
            if is_information
                || catalog_table(name).is_some_and(|table| !self.named.contains(&table))
            {
                self.reads = true;
            } else {
                let name = name.0.last().and_then(|part| part.as_ident());
                self.reads_others |= name.is_none_or(|name| !self.named.contains(&name.value));
            }
            ControlFlow::Continue(())
        }
    }
    let mut search = Search::default();
    let _ = statement.visit(&mut search);
    search.reads && !search.reads_others
}
