//! Queries on tables that never have rows (`no_objects`) have none either, whatever they compute from them. Each becomes a
//! query that has none, so that the functions and forms in it need not exist here.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArguments, GroupByExpr, Join, JoinOperator, ObjectName, Query, Select,
    SelectItem, SetExpr, SetOperator, SetQuantifier, Statement, TableFactor, TableWithJoins, Value,
    visit_expressions, visit_expressions_mut,
};

use super::no_objects::has_none;
use super::syntax::{aggregates, catalog_table, parsed, parsed_query};
use crate::engine::column_names::repeated;
use crate::engine::information_schema::{INFORMATION_SCHEMA, has_no_rows};

/// Functions of what is NULL.
const EMPTY_SETS: [&str; 2] = ["aclexplode", "pg_options_to_table"];

/// Replaces queries that have no rows, wherever they are in a statement.
pub(super) fn replace_empty(statement: &mut Statement) {
    let tables = EmptyTables::default();
    let _: ControlFlow<()> = visit_expressions_mut(statement, |expression| {
        if let Some(value) = tables.value_of(expression) {
            *expression = value;
        } else if let Some(query) = subquery(expression) {
            tables.replace_query(query, true);
        }
        ControlFlow::Continue(())
    });
    if let Statement::Query(query) = statement {
        tables.replace_query(query, true);
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
#[derive(Clone, Debug, Default)]
struct EmptyTables {
    with: HashSet<String>,
}

impl EmptyTables {
    /// The value of an expression on a query without rows.
    fn value_of(&self, expression: &Expr) -> Option<Expr> {
        match expression {
            Expr::Subquery(query) if self.has_query(query) => parsed("NULL"),
            Expr::Exists { subquery, negated } if self.has_query(subquery) => {
                parsed(if *negated { "true" } else { "false" })
            }
            Expr::InSubquery { subquery, negated, .. } if self.has_query(subquery) => {
                parsed(if *negated { "true" } else { "false" })
            }
            Expr::Function(function) => match &function.args {
                FunctionArguments::Subquery(query) if self.has_query(query) => {
                    parsed("CAST(ARRAY[] AS TEXT[])")
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Part of a UNION has the types of the other part, all others are text.
    fn replace_query(&self, query: &mut Query, is_whole: bool) {
        let mut tables = self.clone();
        for table in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            if tables.has_body(&table.query.body) {
                tables.with.insert(table.alias.name.value.clone());
            }
            tables.replace_query(&mut table.query, true);
        }
        if let SetExpr::Select(select) = query.body.as_ref()
            && tables.has_select(select)
            && let Some(empty) = empty_select(select, is_whole)
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
            } if self.has_body(right) && !self.has_body(left) => {
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

    /// Whether a SELECT has no rows. An aggregate without groups has one.
    fn has_select(&self, select: &Select) -> bool {
        let groups = match &select.group_by {
            GroupByExpr::Expressions(groups, _) => !groups.is_empty(),
            GroupByExpr::All(_) => true,
        };
        let has_no_rows = select.from.iter().any(|table| self.has_table(table))
            || select.projection.iter().any(|item| {
                matches!(
                    item,
                    SelectItem::UnnamedExpr(Expr::Function(call))
                        | SelectItem::ExprWithAlias { expr: Expr::Function(call), .. }
                    if is_empty_set(&call.name)
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
            TableFactor::Table { name, args: None, .. } => {
                let is_with = match &name.0[..] {
                    [name] => name.as_ident().is_some_and(|name| self.with.contains(&name.value)),
                    _ => false,
                };
                is_with
                    || catalog_table(name).is_some_and(|table| has_none(&table))
                    || information_table(name).is_some_and(has_no_rows)
            }
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => {
                is_empty_set(name)
            }
            TableFactor::Derived { subquery, .. } => self.has_query(subquery),
            TableFactor::NestedJoin { table_with_joins, .. } => self.has_table(table_with_joins),
            _ => false,
        }
    }
}

/// A query of the same columns, as far as their names are known.
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
    // The parameters stay, since clients send values for them.
    let mut condition = "false".to_owned();
    let _: ControlFlow<()> = visit_expressions(select, |expression| {
        if let Expr::Value(value) = expression
            && let Value::Placeholder(name) = &value.value
        {
            condition += &format!(" AND {name} IS NULL");
        }
        ControlFlow::Continue(())
    });
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

/// Whether a function returns the rows of what is NULL in the catalog: access rights, and options of storage.
fn is_empty_set(function: &ObjectName) -> bool {
    let name = function.0.last().and_then(|part| part.as_ident());
    name.is_some_and(|name| {
        EMPTY_SETS.iter().any(|function| name.value.eq_ignore_ascii_case(function))
    })
}

/// The name of a table of `information_schema`.
fn information_table(name: &ObjectName) -> Option<&str> {
    let [.., schema, table] = &name.0[..] else { return None };
    let schema = &schema.as_ident()?.value;
    schema.eq_ignore_ascii_case(INFORMATION_SCHEMA).then_some(&*table.as_ident()?.value)
}
