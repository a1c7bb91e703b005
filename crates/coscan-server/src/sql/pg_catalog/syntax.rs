//! Properties of statements that rewriting needs.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Cte, Expr, ObjectName, Query, Select, SelectItem, Statement, TableFactor, Visit, Visitor,
};

use crate::sql::information_schema::INFORMATION_SCHEMA;
use crate::sql::syntax::normalized;

/// The name of the schema.
pub(in crate::sql) const PG_CATALOG: &str = "pg_catalog";

/// The aggregates of PostgreSQL, and those of DataFusion.
const AGGREGATES: [&str; 48] = [
    "any_value",
    "approx_distinct",
    "approx_median",
    "approx_percentile_cont",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "every",
    "first_value",
    "json_agg",
    "json_object_agg",
    "jsonb_agg",
    "jsonb_object_agg",
    "last_value",
    "max",
    "median",
    "min",
    "mode",
    "nth_value",
    "percentile_cont",
    "percentile_disc",
    "range_agg",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
    "xmlagg",
];

/// Whether a SELECT contains an aggregate itself.
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

/// The name of a table of `information_schema`.
pub(super) fn information_table(name: &ObjectName) -> Option<&str> {
    let [.., schema, table] = &name.0[..] else { return None };
    let schema = &schema.as_ident()?.value;
    schema.eq_ignore_ascii_case(INFORMATION_SCHEMA).then_some(&*table.as_ident()?.value)
}

/// Whether a statement reads tables of the catalog, and no other tables.
pub(in crate::sql) fn reads_catalog_only(statement: &Statement) -> bool {
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

/// The names of the WITH queries of a statement.
pub(in crate::sql) fn with_names(statement: &Statement) -> HashSet<String> {
    Names::of(statement).with
}

/// The names that a statement defines.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The names of WITH queries.
    pub(super) with: HashSet<String>,
    /// The names of columns.
    pub(super) aliases: HashSet<String>,
}

impl Names {
    pub(super) fn of(statement: &Statement) -> Self {
        let mut names = Self::default();
        let _ = statement.visit(&mut names);
        names
    }
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.with.insert(normalized(&table.alias.name));
            self.aliases.extend(table.alias.columns.iter().map(|column| normalized(&column.name)));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let aliases = select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } => {
                // An alias equal to the column's own name does not change its meaning.
                let own = match expr {
                    Expr::Identifier(name) => Some(normalized(name)),
                    Expr::CompoundIdentifier(names) => names.last().map(normalized),
                    _ => None,
                };
                let alias = normalized(alias);
                (own.as_ref() != Some(&alias)).then_some(alias)
            }
            _ => None,
        });
        self.aliases.extend(aliases);
        ControlFlow::Continue(())
    }
}
