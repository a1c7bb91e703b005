//! Finds aggregations that a statement contains several times.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::logical_expr::expr::WindowFunctionDefinition;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, Volatility};

/// The most aggregations of a statement that are compared, each by the text of all that is below it. The cost is quadratic
/// where one is below the other.
const AGGREGATIONS_MAX: usize = 64;

/// An aggregation and its text, in which all of its literals are complete: plans are equal even if literals have different
/// time zones.
pub(super) type Candidate = (String, LogicalPlan);

/// The largest aggregations that a statement contains at least twice, that return the same rows each time, and of which
/// at least one is needed with all its groups.
///
/// # Errors
/// If the statement cannot be walked.
pub(super) fn common_aggregations(statement: &LogicalPlan) -> Result<Vec<Candidate>> {
    if !may_have_common(statement)? {
        return Ok(Vec::new());
    }
    let mut counts: HashMap<String, usize> = HashMap::new();
    statement.apply_with_subqueries(|plan| {
        if is_aggregation(plan) {
            *counts.entry(text(plan)).or_default() += 1;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    counts.retain(|_, count| *count > 1);
    let mut occurrences = Occurrences { counts, found: HashMap::new() };
    if !occurrences.counts.is_empty() {
        occurrences.visit(statement, false)?;
    }
    let common = occurrences
        .found
        .into_iter()
        .filter(|(_, of)| of.count > 1 && of.is_repeatable && of.needs_all_groups);
    Ok(common.map(|(text, of)| (text, of.plan)).collect())
}

/// Whether a statement has two aggregations, and not too many. Most have not, and cost no more than this.
fn may_have_common(statement: &LogicalPlan) -> Result<bool> {
    let (mut aggregations, mut is_recursive) = (0, false);
    statement.apply_with_subqueries(|plan| {
        aggregations += usize::from(is_aggregation(plan));
        // Each iteration executes the recursive term again.
        is_recursive |= matches!(plan, LogicalPlan::RecursiveQuery(_));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok((2..=AGGREGATIONS_MAX).contains(&aggregations) && !is_recursive)
}

pub(super) fn is_aggregation(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(Distinct::All(_)))
}

pub(super) fn text(plan: &LogicalPlan) -> String {
    format!("{plan:?}")
}

/// The aggregations of a statement by their text, without those inside others that it contains several times.
struct Occurrences {
    /// Those that it contains several times, wherever they are.
    counts: HashMap<String, usize>,
    found: HashMap<String, Occurrence>,
}

struct Occurrence {
    plan: LogicalPlan,
    count: usize,
    tables: Vec<Arc<dyn TableProvider>>,
    /// Whether each returns the same rows.
    is_repeatable: bool,
    /// Whether one of them is needed with all its groups. Others are below a limit, or below a join that may need few
    /// groups, which the engine finds out while it runs.
    needs_all_groups: bool,
}

impl Occurrences {
    /// Visits a part of the statement. `may_need_few` says whether what is above it may need few of its rows.
    fn visit(&mut self, plan: &LogicalPlan, may_need_few: bool) -> Result<()> {
        let is_one_group =
            matches!(plan, LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty());
        let may_need_few = (may_need_few && !is_one_group) || is_limited(plan);
        if is_aggregation(plan) {
            let text = text(plan);
            if self.counts.contains_key(&text) {
                return self.add(text, plan, may_need_few);
            }
        }
        plan.apply_subqueries(|subquery| {
            self.visit(subquery, false)?;
            Ok(TreeNodeRecursion::Jump)
        })?;
        if let LogicalPlan::Join(join) = plan
            && !join.on.is_empty()
        {
            let (left, right) = (self.reduces(&join.left), self.reduces(&join.right));
            self.visit(&join.left, may_need_few || right)?;
            return self.visit(&join.right, may_need_few || left);
        }
        plan.inputs().into_iter().try_for_each(|input| self.visit(input, may_need_few))
    }

    /// Whether a side of a join may leave few rows of the other side: not if it has all rows of such an aggregation.
    fn reduces(&self, side: &LogicalPlan) -> bool {
        match side {
            LogicalPlan::Projection(projection) => self.reduces(&projection.input),
            LogicalPlan::SubqueryAlias(alias) => self.reduces(&alias.input),
            side => !(is_aggregation(side) && self.counts.contains_key(&text(side))),
        }
    }

    fn add(&mut self, text: String, plan: &LogicalPlan, may_need_few: bool) -> Result<()> {
        let (tables, is_repeatable) = tables_read(plan)?;
        let Some(known) = self.found.get_mut(&text) else {
            let (plan, needs_all_groups) = (plan.clone(), !may_need_few);
            let new = Occurrence { plan, count: 1, tables, is_repeatable, needs_all_groups };
            self.found.insert(text, new);
            return Ok(());
        };
        known.count += 1;
        known.needs_all_groups |= !may_need_few;
        // Plans are equal if they name the same tables, which may be others.
        let same = |(table, known): (&Arc<dyn TableProvider>, &Arc<dyn TableProvider>)| {
            std::ptr::addr_eq(Arc::as_ptr(table), Arc::as_ptr(known))
        };
        known.is_repeatable &= *plan == known.plan
            && tables.len() == known.tables.len()
            && tables.iter().zip(&known.tables).all(same);
        Ok(())
    }
}

fn is_limited(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Limit(_) => true,
        LogicalPlan::Sort(sort) => sort.fetch.is_some(),
        LogicalPlan::TableScan(scan) => scan.fetch.is_some(),
        _ => false,
    }
}

/// The tables that a plan reads, in the order of the plan, and whether it returns the same rows each time.
fn tables_read(plan: &LogicalPlan) -> Result<(Vec<Arc<dyn TableProvider>>, bool)> {
    let (mut tables, mut is_repeatable) = (Vec::new(), true);
    plan.apply_with_subqueries(|part| {
        if let LogicalPlan::TableScan(scan) = part {
            match source_as_provider(&scan.source) {
                Ok(table) => tables.push(table),
                Err(_) => is_repeatable = false,
            }
        }
        is_repeatable &= !matches!(part, LogicalPlan::Extension(_)) && !is_limited(part);
        part.apply_expressions(|expression| {
            is_repeatable &= !expression.exists(|part| Ok(is_unrepeatable(part)))?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    let is_repeatable = is_repeatable && !tables.is_empty();
    Ok((tables, is_repeatable))
}

/// Whether a node of an expression depends on more than the rows that the plan reads.
fn is_unrepeatable(node: &Expr) -> bool {
    let volatility = match node {
        Expr::ScalarFunction(call) => call.func.signature().volatility,
        Expr::AggregateFunction(call) => call.func.signature().volatility,
        Expr::WindowFunction(call) => match &call.fun {
            WindowFunctionDefinition::AggregateUDF(function) => function.signature().volatility,
            WindowFunctionDefinition::WindowUDF(function) => function.signature().volatility,
        },
        Expr::OuterReferenceColumn(..) => return true,
        _ => return false,
    };
    volatility == Volatility::Volatile
}
