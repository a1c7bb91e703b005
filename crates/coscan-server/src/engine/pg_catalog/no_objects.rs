//! Tables of the catalog that never have rows: this server has no keys, indexes, triggers, policies, extensions.
//!
//! A query on such a table has no rows either, whatever it computes from them. It becomes a query that has none, so that
//! the functions and forms in it need not exist here.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArguments, GroupByExpr, Join, JoinOperator, Query, Select, SelectItem, SetExpr,
    Statement, TableFactor, TableWithJoins, Value, visit_expressions, visit_expressions_mut,
};

use super::syntax::{aggregates, catalog_table, parsed, parsed_query};

/// Tables of datafusion-pg-catalog, some of which have rows about PostgreSQL itself.
const TABLES: [&str; 46] = [
    "pg_attrdef",
    "pg_auth_members",
    "pg_authid",
    "pg_constraint",
    "pg_db_role_setting",
    "pg_default_acl",
    "pg_depend",
    "pg_enum",
    "pg_event_trigger",
    "pg_extension",
    "pg_foreign_data_wrapper",
    "pg_foreign_server",
    "pg_foreign_table",
    "pg_index",
    "pg_inherits",
    "pg_init_privs",
    "pg_largeobject",
    "pg_largeobject_metadata",
    "pg_matviews",
    "pg_partitioned_table",
    "pg_policy",
    "pg_publication",
    "pg_publication_namespace",
    "pg_publication_rel",
    "pg_range",
    "pg_replication_origin",
    "pg_replication_slots",
    "pg_rewrite",
    "pg_seclabel",
    "pg_sequence",
    "pg_shdepend",
    "pg_shdescription",
    "pg_shseclabel",
    "pg_stat_user_tables",
    "pg_statistic",
    "pg_statistic_ext",
    "pg_statistic_ext_data",
    "pg_subscription",
    "pg_subscription_rel",
    "pg_trigger",
    "pg_ts_config",
    "pg_ts_dict",
    "pg_ts_parser",
    "pg_ts_template",
    "pg_user_mapping",
    "pg_views",
];

/// Tables that datafusion-pg-catalog does not have, with their columns.
const MORE_TABLES: [(&str, &[&str]); 8] = [
    ("pg_indexes", &["schemaname", "tablename", "indexname", "tablespace", "indexdef"]),
    ("pg_locks", &["locktype", "database", "relation", "pid", "mode", "granted"]),
    ("pg_policies", &["schemaname", "tablename", "policyname", "roles", "cmd", "qual"]),
    ("pg_rules", &["schemaname", "tablename", "rulename", "definition"]),
    ("pg_sequences", &["schemaname", "sequencename", "sequenceowner", "last_value"]),
    ("pg_stat_activity", &["datid", "datname", "pid", "usename", "state", "query"]),
    ("pg_stat_all_tables", &["relid", "schemaname", "relname", "n_live_tup"]),
    ("pg_user_mappings", &["umid", "srvid", "srvname", "umuser", "usename", "umoptions"]),
];

pub(super) fn has_none(name: &str) -> bool {
    TABLES.contains(&name) || more_tables().any(|table| table == name)
}

pub(super) fn more_tables() -> impl Iterator<Item = &'static str> {
    MORE_TABLES.iter().map(|(name, _)| *name)
}

pub(super) fn schema_of_more(name: &str) -> Option<SchemaRef> {
    let (_, columns) = MORE_TABLES.iter().find(|(table, _)| *table == name)?;
    let fields = columns.iter().map(|column| Field::new(*column, DataType::Utf8, true));
    Some(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// Replaces queries that have no rows, wherever they are in a statement.
pub(super) fn replace_empty(statement: &mut Statement) {
    let _: ControlFlow<()> = visit_expressions_mut(statement, |expression| {
        if let Some(value) = value_of_empty(expression) {
            *expression = value;
        }
        ControlFlow::Continue(())
    });
    if let Statement::Query(query) = statement {
        replace_query(query, true);
    }
}

/// The value of an expression on a query without rows.
fn value_of_empty(expression: &Expr) -> Option<Expr> {
    match expression {
        Expr::Subquery(query) if is_empty_query(query) => parsed("NULL"),
        Expr::Exists { subquery, negated } if is_empty_query(subquery) => {
            parsed(if *negated { "true" } else { "false" })
        }
        Expr::InSubquery { subquery, negated, .. } if is_empty_query(subquery) => {
            parsed(if *negated { "true" } else { "false" })
        }
        Expr::Function(function) => match &function.args {
            FunctionArguments::Subquery(query) if is_empty_query(query) => {
                parsed("CAST(ARRAY[] AS TEXT[])")
            }
            _ => None,
        },
        _ => None,
    }
}

/// Part of a UNION has the types of the other part, all others are text.
fn replace_query(query: &mut Query, is_whole: bool) {
    if let Some(with) = &mut query.with {
        with.cte_tables.iter_mut().for_each(|table| replace_query(&mut table.query, true));
    }
    if let SetExpr::Select(select) = query.body.as_ref()
        && is_empty_select(select)
        && let Some(empty) = empty_select(select, is_whole)
    {
        query.body = empty;
        query.order_by = None;
        return;
    }
    replace_body(&mut query.body);
}

fn replace_body(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => {
            if is_empty_select(select)
                && let Some(empty) = empty_select(select, false)
            {
                *body = *empty;
                return;
            }
            for table in &mut select.from {
                let joined = table.joins.iter_mut().map(|join| &mut join.relation);
                for relation in std::iter::once(&mut table.relation).chain(joined) {
                    if let TableFactor::Derived { subquery, .. } = relation {
                        replace_query(subquery, true);
                    }
                }
            }
        }
        SetExpr::Query(query) => replace_query(query, false),
        SetExpr::SetOperation { left, right, .. } => {
            replace_body(left);
            replace_body(right);
        }
        _ => {}
    }
}

/// A query of the same columns, as far as their names are known.
fn empty_select(select: &Select, is_text: bool) -> Option<Box<SetExpr>> {
    let null = if is_text { "NULL::text" } else { "NULL" };
    let mut columns = Vec::new();
    for (index, item) in select.projection.iter().enumerate() {
        let name = match item {
            SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
            SelectItem::UnnamedExpr(expression) => name_of(expression, index),
            _ => return None, // The columns of a table.
        };
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

fn is_empty_query(query: &Query) -> bool {
    query.with.is_none() && is_empty_body(&query.body)
}

fn is_empty_body(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => is_empty_select(select),
        SetExpr::Query(query) => is_empty_query(query),
        _ => false,
    }
}

/// Whether a SELECT has no rows. An aggregate without groups has one.
fn is_empty_select(select: &Select) -> bool {
    let groups = match &select.group_by {
        GroupByExpr::Expressions(groups, _) => !groups.is_empty(),
        GroupByExpr::All(_) => true,
    };
    (groups || !aggregates(select)) && select.from.iter().any(is_empty_table)
}

fn is_empty_table(table: &TableWithJoins) -> bool {
    let mut is_empty = is_empty_relation(&table.relation);
    for Join { relation, join_operator, .. } in &table.joins {
        match join_operator {
            JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_) => {
                is_empty |= is_empty_relation(relation);
            }
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => {}
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => {
                is_empty = is_empty_relation(relation);
            }
            JoinOperator::FullOuter(_) => is_empty &= is_empty_relation(relation),
            _ => return false,
        }
    }
    is_empty
}

fn is_empty_relation(relation: &TableFactor) -> bool {
    match relation {
        TableFactor::Table { name, args: None, .. } => {
            catalog_table(name).is_some_and(|table| has_none(&table))
        }
        TableFactor::Derived { subquery, .. } => is_empty_query(subquery),
        TableFactor::NestedJoin { table_with_joins, .. } => is_empty_table(table_with_joins),
        _ => false,
    }
}
