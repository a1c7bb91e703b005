//! Finds aggregations that a statement contains several times.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::logical_expr::{Distinct, LogicalPlan};

/// The largest aggregations that are in the statement at least twice, give the same rows each time, and of which at least one
/// has to be computed as a whole.
pub(super) fn common_aggregations(statement: &LogicalPlan) -> Result<Vec<LogicalPlan>> {
    if !may_have_common(statement)? {
        return Ok(Vec::new());
    }
    let mut found = Found::default();
    found.visit(statement, false)?;
    let is_common = |uses: &Uses| uses.count > 1 && uses.is_repeatable && uses.is_whole;
    let common = found.uses.into_iter().filter(|(_, uses)| is_common(uses));
    let mut common: Vec<_> = common.map(|(plan, uses)| (uses.position, plan)).collect();
    common.sort_by_key(|(position, _)| *position);
    Ok(common.into_iter().map(|(_, plan)| plan).collect())
}

/// Whether a statement has two aggregations. Most have not, and cost no more than this.
fn may_have_common(statement: &LogicalPlan) -> Result<bool> {
    let (mut aggregations, mut is_recursive) = (0, false);
    statement.apply_with_subqueries(|plan| {
        aggregations += usize::from(is_aggregation(plan));
        // The rows of a recursive query's own name differ from one iteration to the next.
        is_recursive |= matches!(plan, LogicalPlan::RecursiveQuery(_));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(aggregations > 1 && !is_recursive)
}

pub(super) fn is_aggregation(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(Distinct::All(_)))
}

#[derive(Default)]
struct Found {
    uses: HashMap<LogicalPlan, Uses>,
}

/// The uses of equal aggregations.
struct Uses {
    /// The place of the first in the statement.
    position: usize,
    count: usize,
    tables: Vec<Arc<dyn TableProvider>>,
    /// Whether each gives the same rows.
    is_repeatable: bool,
    /// Whether one of them is computed as a whole. Others are below a join that may need few of their groups, which the
    /// engine finds out while it runs.
    is_whole: bool,
}

impl Found {
    /// Visits a part of the statement. `is_reduced` says whether a join above it may need few of its rows.
    fn visit(&mut self, plan: &LogicalPlan, is_reduced: bool) -> Result<()> {
        let is_one_group =
            matches!(plan, LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty());
        let is_reduced = is_reduced && !is_one_group;
        if is_aggregation(plan) {
            self.note(plan, is_reduced)?;
        }
        plan.apply_subqueries(|subquery| {
            self.visit(subquery, false)?;
            Ok(TreeNodeRecursion::Jump)
        })?;
        if let LogicalPlan::Join(join) = plan
            && !join.on.is_empty()
        {
            self.visit(&join.left, is_reduced || is_filtered(&join.right)?)?;
            return self.visit(&join.right, is_reduced || is_filtered(&join.left)?);
        }
        plan.inputs().into_iter().try_for_each(|input| self.visit(input, is_reduced))
    }

    fn note(&mut self, plan: &LogicalPlan, is_reduced: bool) -> Result<()> {
        let position = self.uses.len();
        let (tables, is_repeatable) = tables_read(plan)?;
        match self.uses.entry(plan.clone()) {
            Entry::Vacant(new) => {
                let is_whole = !is_reduced;
                new.insert(Uses { position, count: 1, tables, is_repeatable, is_whole });
            }
            Entry::Occupied(mut known) => {
                let uses = known.get_mut();
                uses.count += 1;
                uses.is_whole |= !is_reduced;
                // Plans are equal if they name the same tables.
                uses.is_repeatable &= tables.len() == uses.tables.len()
                    && tables.iter().zip(&uses.tables).all(|(table, known)| {
                        std::ptr::addr_eq(Arc::as_ptr(table), Arc::as_ptr(known))
                    });
            }
        }
        Ok(())
    }
}

/// Whether a side of a join has less than all rows of its tables.
fn is_filtered(side: &LogicalPlan) -> Result<bool> {
    let mut is_filtered = false;
    side.apply_with_subqueries(|plan| {
        is_filtered = match plan {
            LogicalPlan::TableScan(scan) => !scan.filters.is_empty() || scan.fetch.is_some(),
            LogicalPlan::Filter(_) | LogicalPlan::Limit(_) | LogicalPlan::Values(_) => true,
            _ => false,
        };
        Ok(if is_filtered { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(is_filtered)
}

/// The tables that a plan reads, in the order of the plan, and whether it gives the same rows each time.
fn tables_read(plan: &LogicalPlan) -> Result<(Vec<Arc<dyn TableProvider>>, bool)> {
    let (mut tables, mut is_repeatable) = (Vec::new(), true);
    plan.apply_with_subqueries(|part| {
        if let LogicalPlan::TableScan(scan) = part {
            match source_as_provider(&scan.source) {
                Ok(table) => tables.push(table),
                Err(_) => is_repeatable = false,
            }
        }
        is_repeatable &= !matches!(part, LogicalPlan::Extension(_) | LogicalPlan::Limit(_));
        part.apply_expressions(|expression| {
            is_repeatable &= !expression.is_volatile() && !expression.contains_outer();
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    let is_repeatable = is_repeatable && !tables.is_empty();
    Ok((tables, is_repeatable))
}
