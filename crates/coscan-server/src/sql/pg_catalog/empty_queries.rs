//! Replaces queries on tables that never have rows (`no_objects`), which have no rows either, whatever they compute.
//! Each becomes a query without rows, so that functions and forms in it need not exist here.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Join,
    JoinOperator, Query, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, Statement,
    TableFactor, TableWithJoins, VisitMut, VisitorMut,
};

use super::no_objects::has_none;
use super::parameters::Parameters;
use super::syntax::{aggregates, catalog_table, information_table};
use crate::sql::column_names::repeated;
use crate::sql::empty_tables::columns_of_empty;
use crate::sql::syntax::{is_named, last_name, normalized, parsed, parsed_query};

/// Functions that return rows of columns that are NULL in the catalog: access rights, and options of storage.
const EMPTY_SETS: [&str; 2] = ["aclexplode", "pg_options_to_table"];

/// Replaces queries without rows anywhere in a statement. `named` are the names of its WITH queries.
pub(super) fn replace_empty(statement: &mut Statement, named: &HashSet<String>) {
    let tables = EmptyTables { named, with: HashSet::new() };
    let _ = VisitMut::visit(statement, &mut Replace(&tables));
    if let Statement::Query(query) = statement {
        tables.replace_query(query, true);
    }
}

/// Visits queries from the outside to the inside, since the parts around a query determine the use of its rows.
struct Replace<'a>(&'a EmptyTables<'a>);

impl VisitorMut for Replace<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Some(value) = self.0.value_of(expression) {
            *expression = value;
        } else if let Some(query) = subquery(expression) {
            self.0.replace_query(query, true);
        }
        ControlFlow::Continue(())
    }
}

fn subquery(expression: &mut Expr) -> Option<&mut Query> {
    match expression {
        Expr::Subquery(query) => Some(query),
        Expr::Exists { subquery, .. } | Expr::InSubquery { subquery, .. } => Some(subquery),
        Expr::Function(function) => match &mut function.args {
            FunctionArguments::Subquery(query) => Some(query),
            _ => None,
        },
        _ => None,
    }
}

/// Tables without rows: those of the catalog, and WITH queries.
#[derive(Clone, Debug)]
struct EmptyTables<'a> {
    /// The names of all WITH queries. They are not tables of the catalog where they are in scope.
    named: &'a HashSet<String>,
    /// The WITH queries without rows.
    with: HashSet<String>,
}

impl EmptyTables<'_> {
    /// The value of an expression on a query without rows.
    fn value_of(&self, expression: &Expr) -> Option<Expr> {
        let truth = |is_true: bool, removed: Parameters| {
            parsed(&match is_true {
                true => format!("(true OR {})", removed.are_null()),
                false => format!("(false AND {})", removed.are_null()),
            })
        };
        let without_rows = |query: &Expr| match query {
            Expr::Subquery(query) => self.has_query(query),
            _ => false,
        };
        let parameters = || Parameters::of(expression); // A walk, for the few that need it.
        match expression {
            Expr::Subquery(query) if self.has_query(query) => match parameters().is_empty() {
                true => parsed("NULL"),
                false => {
                    let condition = parameters().are_null();
                    parsed(&format!("CASE WHEN false AND {condition} THEN NULL END"))
                }
            },
            Expr::Exists { subquery, negated } if self.has_query(subquery) => {
                truth(*negated, parameters())
            }
            Expr::InSubquery { subquery, negated, .. } if self.has_query(subquery) => {
                truth(*negated, parameters())
            }
            Expr::AnyOp { right, .. } if without_rows(right) => truth(false, parameters()),
            Expr::AllOp { right, .. } if without_rows(right) => truth(true, parameters()),
            // These are `= ANY (…)` and `<> ALL (…)` in the form that the rules of
            // datafusion-pg-catalog produce.
            Expr::Function(function)
                if is_named(&function.name, &["array_contains"])
                    && first_argument(function).is_some_and(without_rows) =>
            {
                truth(false, parameters())
            }
            Expr::Function(function) => match &function.args {
                FunctionArguments::Subquery(query)
                    if self.has_query(query) && parameters().is_empty() =>
                {
                    parsed("CAST(ARRAY[] AS TEXT[])")
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Replaces a query. A part of a UNION gets the types of the other part. All other columns are text.
    fn replace_query(&self, query: &mut Query, is_whole: bool) {
        let mut tables = self.clone();
        for table in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            if tables.has_body(&table.query.body) {
                tables.with.insert(normalized(&table.alias.name));
            }
            tables.replace_query(&mut table.query, true);
        }
        if let SetExpr::Select(select) = query.body.as_ref()
            && tables.has_select(select)
            && let Some(empty) = empty_select(select, is_whole)
            && query.order_by.as_ref().is_none_or(|order| Parameters::of(order).is_empty())
        {
            query.body = empty;
            query.order_by = None;
            return;
        }
        tables.replace_body(&mut query.body);
    }

    fn replace_body(&self, body: &mut SetExpr) {
        match body {
            SetExpr::Select(select) => {
                if self.has_select(select)
                    && let Some(empty) = empty_select(select, false)
                {
                    *body = *empty;
                    return;
                }
                for table in &mut select.from {
                    let joined = table.joins.iter_mut().map(|join| &mut join.relation);
                    for relation in std::iter::once(&mut table.relation).chain(joined) {
                        if let TableFactor::Derived { subquery, .. } = relation {
                            self.replace_query(subquery, true);
                        }
                    }
                }
            }
            SetExpr::Query(query) => self.replace_query(query, false),
            SetExpr::SetOperation {
                op: SetOperator::Union,
                set_quantifier: SetQuantifier::All,
                left,
                right,
            } if self.has_body(right)
                && !self.has_body(left)
                && Parameters::of(right.as_ref()).is_empty() =>
            {
                *body = *left.clone(); // It need not be recursive.
                self.replace_body(body);
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.replace_body(left);
                self.replace_body(right);
            }
            _ => {}
        }
    }

    fn has_query(&self, query: &Query) -> bool {
        query.with.is_none() && self.has_body(&query.body)
    }

    fn has_body(&self, body: &SetExpr) -> bool {
        match body {
            SetExpr::Select(select) => self.has_select(select),
            SetExpr::Query(query) => self.has_query(query),
            SetExpr::SetOperation { op: SetOperator::Union, left, right, .. } => {
                self.has_body(left) && self.has_body(right)
            }
            _ => false,
        }
    }

    /// Whether a SELECT has no rows. An aggregate without groups, or of all rows, has one row.
    fn has_select(&self, select: &Select) -> bool {
        let is_column = |group: &Expr| {
            !matches!(
                group,
                Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_) | Expr::Tuple(_)
            )
        };
        let groups = match &select.group_by {
            GroupByExpr::Expressions(groups, modifiers) if modifiers.is_empty() => {
                match groups.iter().all(is_column) {
                    true => !groups.is_empty(),
                    false => return false,
                }
            }
            _ => return false,
        };
        if select.having.is_some() && !groups {
            return false;
        }
        let has_no_rows = select.from.iter().any(|table| self.has_table(table))
            || select.projection.iter().any(|item| {
                matches!(
                    item,
                    SelectItem::UnnamedExpr(Expr::Function(call))
                        | SelectItem::ExprWithAlias { expr: Expr::Function(call), .. }
                    if is_named(&call.name, &EMPTY_SETS)
                )
            });
        (groups || !aggregates(select)) && has_no_rows
    }

    fn has_table(&self, table: &TableWithJoins) -> bool {
        let mut is_empty = self.has_relation(&table.relation);
        for Join { relation, join_operator, .. } in &table.joins {
            match join_operator {
                JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_) => {
                    is_empty |= self.has_relation(relation);
                }
                JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => {}
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) => {
                    is_empty = self.has_relation(relation);
                }
                JoinOperator::FullOuter(_) => is_empty &= self.has_relation(relation),
                _ => return false,
            }
        }
        is_empty
    }

    fn has_relation(&self, relation: &TableFactor) -> bool {
        match relation {
            TableFactor::Table { name, args: None, .. } => match (&name.0[..], last_name(name)) {
                ([_], Some(name)) if self.named.contains(&name) => self.with.contains(&name),
                _ => {
                    catalog_table(name).is_some_and(|table| has_none(&table))
                        || information_table(name).and_then(columns_of_empty).is_some()
                }
            },
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => {
                is_named(name, &EMPTY_SETS)
            }
            TableFactor::Derived { subquery, .. } => self.has_query(subquery),
            TableFactor::NestedJoin { table_with_joins, .. } => self.has_table(table_with_joins),
            _ => false,
        }
    }
}

fn first_argument(function: &Function) -> Option<&Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.first()? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(first)) => Some(first),
        _ => None,
    }
}

/// A query with the same columns, as far as their names are known.
fn empty_select(select: &Select, is_text: bool) -> Option<Box<SetExpr>> {
    let null = if is_text { "NULL::text" } else { "NULL" };
    let (mut columns, mut names) = (Vec::new(), HashSet::new());
    for (index, item) in select.projection.iter().enumerate() {
        let name = match item {
            SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
            SelectItem::UnnamedExpr(expression) => name_of(expression, index),
            _ => return None, // The columns of a table.
        };
        let is_new = names.insert(name.clone());
        let name = if is_new { name } else { repeated(&name, index) };
        columns.push(format!("{null} AS \"{}\"", name.replace('"', "\"\"")));
    }
    let condition = format!("false AND {}", Parameters::of(select).are_null());
    let query = format!("SELECT {} WHERE {condition}", columns.join(", "));
    parsed_query(&query).map(|query| query.body)
}

fn name_of(expression: &Expr, index: usize) -> String {
    match expression {
        Expr::Identifier(name) => name.value.clone(),
        Expr::CompoundIdentifier(names) => {
            names.last().map_or_else(String::new, |name| name.value.clone())
        }
        Expr::Cast { expr, .. } => name_of(expr, index),
        _ => format!("column{}", index + 1),
    }
}
