//! The size of a statement once its WITH queries are inserted wherever they are mentioned. DataFusion plans them this
//! way, and visits all parts even while it plans. A query that mentions another twice, which mentions a third twice,
//! and so on, is short only as a text.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, ObjectName, Query, Select, SelectItem, Statement, Visit, Visitor,
};

use super::too_complex;
use crate::queries::QueryError;
use crate::sql::syntax::normalized;

/// The maximum number of queries and tables.
pub(in crate::sql) const PARTS_MAX: usize = 2_000;

/// The maximum number of expressions, including nested ones.
pub(in crate::sql) const EXPRESSIONS_MAX: usize = 500_000;

/// The maximum number of columns of a SELECT that stand for all columns of its tables, or of one table.
const WILDCARDS_MAX: usize = 2;
const QUALIFIED_WILDCARDS_MAX: usize = 100;

/// The maximum number of grouping sets of a SELECT, as in PostgreSQL.
const GROUPING_SETS_MAX: usize = 4096;

/// Refuses statements that become too large.
pub(super) fn check_expansion(statement: &Statement) -> Result<(), QueryError> {
    let mut expansion = Expansion { open: vec![Open::default()] };
    match statement.visit(&mut expansion) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break((most, what)) => Err(too_complex(&format!(
            "the statement has more than {most} {what}, where a WITH query counts once for each mention; split it"
        ))),
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Size {
    parts: usize,
    expressions: usize,
}

impl Size {
    fn add(&mut self, other: Self) {
        self.parts = self.parts.saturating_add(other.parts);
        self.expressions = self.expressions.saturating_add(other.expressions);
    }
}

/// A query that is being visited.
#[derive(Debug, Default)]
struct Open {
    size: Size,
    /// The names of its remaining WITH queries, the next one last. They are visited before the rest of the query.
    names: Vec<Ident>,
    /// The sizes of the WITH queries that it may mention.
    with: HashMap<String, Size>,
}

struct Expansion {
    /// The open queries, from the outermost to the innermost.
    open: Vec<Open>,
}

impl Expansion {
    fn add(&mut self, size: Size) -> ControlFlow<(usize, &'static str)> {
        let Some(open) = self.open.last_mut() else { return ControlFlow::Continue(()) };
        open.size.add(size);
        match open.size {
            Size { parts, .. } if parts > PARTS_MAX => {
                ControlFlow::Break((PARTS_MAX, "queries and tables"))
            }
            Size { expressions, .. } if expressions > EXPRESSIONS_MAX => {
                ControlFlow::Break((EXPRESSIONS_MAX, "expressions"))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// The number of sets of columns that an element of GROUP BY stands for.
fn grouping_sets(element: &Expr) -> usize {
    match element {
        Expr::Cube(columns) => u32::try_from(columns.len())
            .ok()
            .and_then(|n| 1_usize.checked_shl(n))
            .unwrap_or(usize::MAX),
        Expr::Rollup(columns) => columns.len() + 1,
        Expr::GroupingSets(sets) => sets.len().max(1),
        _ => 1,
    }
}

impl Visitor for Expansion {
    type Break = (usize, &'static str);

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        let with = query.with.iter().flat_map(|with| with.cte_tables.iter().rev());
        let names = with.map(|query| query.alias.name.clone()).collect();
        self.open.push(Open { names, ..Open::default() });
        self.add(Size { parts: 1, expressions: 0 })
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<Self::Break> {
        let Some(closed) = self.open.pop() else { return ControlFlow::Continue(()) };
        if let Some(open) = self.open.last_mut()
            && let Some(name) = open.names.pop()
        {
            open.with.insert(normalized(&name), closed.size);
            return ControlFlow::Continue(());
        }
        self.add(closed.size)
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        let wildcard = |item: &&SelectItem| matches!(item, SelectItem::Wildcard(_));
        if select.projection.iter().filter(wildcard).count() > WILDCARDS_MAX {
            return ControlFlow::Break((WILDCARDS_MAX, "times * in a SELECT"));
        }
        let qualified = |item: &&SelectItem| matches!(item, SelectItem::QualifiedWildcard(..));
        let qualified = select.projection.iter().filter(qualified).count();
        if qualified > QUALIFIED_WILDCARDS_MAX {
            return ControlFlow::Break((QUALIFIED_WILDCARDS_MAX, "times table.* in a SELECT"));
        }
        let GroupByExpr::Expressions(grouped, _) = &select.group_by else {
            return ControlFlow::Continue(());
        };
        let sets = grouped.iter().map(grouping_sets).fold(1, usize::saturating_mul);
        match sets > GROUPING_SETS_MAX {
            true => ControlFlow::Break((GROUPING_SETS_MAX, "grouping sets")),
            false => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Self::Break> {
        let name = match &relation.0[..] {
            [name] => name.as_ident().map(normalized),
            _ => None,
        };
        let of = |open: &Open| open.with.get(name.as_ref()?).copied();
        let size = self.open.iter().rev().find_map(of);
        self.add(size.unwrap_or(Size { parts: 1, expressions: 0 }))
    }

    fn pre_visit_expr(&mut self, _expression: &Expr) -> ControlFlow<Self::Break> {
        self.add(Size { parts: 0, expressions: 1 })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn is_admitted(text: &str) -> bool {
        let statements = Parser::parse_sql(&PostgreSqlDialect {}, text).unwrap();
        check_expansion(&statements[0]).is_ok()
    }

    #[test]
    fn with_queries_count_at_each_mention_and_where_they_are_in_sight() {
        let doubled = |n: usize| format!(", C{} AS (SELECT 1 FROM c{n} JOIN \"c{n}\" b)", n + 1);
        let with = |levels| {
            let queries: String = (0..levels).map(doubled).collect();
            format!("WITH c0 AS (SELECT 1){queries}")
        };
        // The sizes are 1, 3, 7, 15, …, since the query itself counts, too.
        assert!(is_admitted(&format!("{} SELECT 1 FROM c8", with(8))));
        assert!(!is_admitted(&format!("{} SELECT 1 FROM c10", with(10))));
        let outside = format!("SELECT 1 FROM ({} SELECT 1) x, c9 a, c9 b, c9 c", with(9));
        assert!(is_admitted(&outside), "c9 is a table there");
        let expression = format!("SELECT 1{}", " + 1".repeat(3_000));
        let mentions = " UNION ALL SELECT 1 FROM c".repeat(90);
        assert!(!is_admitted(&format!("WITH c AS ({expression}) SELECT 1 FROM c{mentions}")));
    }
}
