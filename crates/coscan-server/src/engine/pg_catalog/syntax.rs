//! What rewriting asks of statements, and parts of statements from text.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Cte, Expr, ObjectName, Query, Select, Statement, TableFactor, Visit, Visitor,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::engine::information_schema::INFORMATION_SCHEMA;

/// The name of the schema.
pub(in crate::engine) const PG_CATALOG: &str = "pg_catalog";

const AGGREGATES: [&str; 10] = [
    "array_agg",
    "avg",
    "bool_and",
    "bool_or",
    "count",
    "first_value",
    "max",
    "min",
    "string_agg",
    "sum",
];

/// Whether a SELECT has an aggregate itself.
pub(super) fn aggregates(select: &Select) -> bool {
    struct Search(usize, bool);
    impl Visitor for Search {
        type Break = ();
        fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
            self.0 += 1;
            ControlFlow::Continue(())
        }
        fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
            self.0 -= 1;
            ControlFlow::Continue(())
        }
        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
            if let (0, Expr::Function(function)) = (self.0, expression) {
                let name = function.name.0.last().and_then(|part| part.as_ident());
                let name = name.map(|name| name.value.to_ascii_lowercase());
                self.1 |= name.is_some_and(|name| AGGREGATES.contains(&name.as_str()));
            }
            ControlFlow::Continue(())
        }
    }
    let mut search = Search(0, false);
    let _ = select.projection.visit(&mut search);
    search.1
}

/// The name of a table of `pg_catalog`.
pub(super) fn catalog_table(name: &ObjectName) -> Option<String> {
    let mut parts = name.0.iter().rev().map(|part| part.as_ident());
    let table = parts.next()??.value.to_ascii_lowercase();
    let schema = match parts.next() {
        Some(schema) => schema?.value.to_ascii_lowercase(),
        None => return table.starts_with("pg_").then_some(table),
    };
    (schema == PG_CATALOG).then_some(table)
}

pub(super) fn parsed(expression: &str) -> Option<Expr> {
    let parser = Parser::new(&PostgreSqlDialect {});
    parser.try_with_sql(expression).ok()?.parse_expr().ok()
}

pub(in crate::engine) fn parsed_query(query: &str) -> Option<Box<Query>> {
    let parser = Parser::new(&PostgreSqlDialect {});
    parser.try_with_sql(query).ok()?.parse_query().ok()
}

/// Whether a statement reads tables of the catalog, and no others.
pub(in crate::engine) fn reads_catalog_only(statement: &Statement) -> bool {
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
