//! Scans are in any order unless an operator above needs the order of the table's rows.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_expr::{LexRequirement, OrderingRequirements};
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::BoundedWindowAggExec;

use crate::common_subplans::operator::CommonSubplanExec;
use crate::execution::exec::{SharedScanExec, UnorderedReason};
use crate::operator::Plan;
use crate::optimizer::ordered_aggregates::is_order_sensitive;
use crate::optimizer::rule::{Changed, Rule, change_down};

/// Reads a table in its order, declared or stored, where that saves a sort. This applies if a sort, or an operator that
/// requires sorted input, is above the scan, and the operators between them keep the order.
///
/// If the copy of a table that a scan reads has another order, a copy that costs little more may have the needed one.
///
/// Other scans stay in any order, since a scan in order has one partition and shares less. The rule runs before the one
/// that adds the sorts that operators require and removes those that are not needed.
pub(crate) const NEEDED_ORDER: Rule =
    Rule::new("coscan_needed_order", |plan, _| change_down(plan, with_inputs_in_order));

/// An operator with its inputs in the orders that it needs.
fn with_inputs_in_order(plan: &Plan) -> Changed {
    let (mut inputs, mut is_changed) = (Vec::new(), false);
    for (input, required) in plan.children().into_iter().zip(required_orders(plan)) {
        let changed = input_in_order(plan, input, &required)?;
        is_changed |= changed.is_some();
        inputs.push(changed.unwrap_or_else(|| Arc::clone(input)));
    }
    is_changed.then(|| replace_children_if_necessary(Arc::clone(plan), inputs)).transpose()
}

/// The orders of which an operator needs one, for each of its inputs. The list is empty if no order is needed.
///
/// Aggregates are left out, since some of them would change with the order of the input, see [`in_order`].
fn required_orders(plan: &Plan) -> Vec<Vec<LexRequirement>> {
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        return vec![vec![sort.expr().clone().into()]];
    }
    if plan.is::<AggregateExec>() {
        return Vec::new();
    }
    let alternatives = |required: OrderingRequirements| {
        let (mut alternatives, _) = required.into_alternatives();
        // DataFusion takes the first order, unless a window can be computed for one of the others.
        if !plan.is::<BoundedWindowAggExec>() {
            alternatives.truncate(1);
        }
        alternatives
    };
    let required = plan.required_input_ordering().into_iter();
    required.map(|required| required.map(alternatives).unwrap_or_default()).collect()
}

/// The input of an operator with its scans in order, so that it has one of the required orders. If that is impossible
/// or does not pay, the input with the reason. `None` if the input has such an order anyway, or has no scan.
fn input_in_order(operator: &Plan, input: &Plan, required: &[LexRequirement]) -> Changed {
    if required.is_empty() || satisfies_any(input, required)? {
        return Ok(None);
    }
    let has_limit = operator.is::<SortExec>() && operator.fetch().is_some();
    // The sort is not in the plan that a user sees.
    let needed_by = if operator.is::<SortExec>() { "ORDER BY" } else { operator.name() };
    let on_copy = |copy| -> Result<PlanOrReason> {
        let path = PathToScan { needed_by, has_limit, copy, filters: false, aggregates: false };
        Ok(match in_order(input, path)? {
            Ok(input) if satisfies_any(&input, required)? => Ok(input),
            Ok(_) => Err(UnorderedReason::Other(needed_by.into())),
            Err(unordered_reason) => Err(unordered_reason),
        })
    };
    let unordered_reason = match on_copy(0)? {
        Ok(input) => return Ok(Some(input)),
        Err(unordered_reason) => unordered_reason,
    };
    for copy in 1..=other_copies(input)? {
        if let Ok(input) = on_copy(copy)? {
            return Ok(Some(input));
        }
    }
    in_any_order(input, &unordered_reason)
}

/// Sets the reason why the scans of a plan are in any order. Those of a common subplan have the same one in all places.
fn in_any_order(plan: &Plan, unordered_reason: &UnorderedReason) -> Changed {
    let changed = Arc::clone(plan).transform_down(|plan| {
        if plan.is::<CommonSubplanExec>() {
            return Ok(Transformed::new(plan, false, TreeNodeRecursion::Jump));
        }
        Ok(match plan.downcast_ref::<SharedScanExec>() {
            Some(scan) => {
                Transformed::yes(Arc::new(scan.in_any_order(unordered_reason.clone())) as _)
            }
            None => Transformed::no(plan),
        })
    })?;
    Ok(changed.transformed.then_some(changed.data))
}

/// The number of other copies of a table that may be read for their order. Of several tables, the largest number
/// counts.
fn other_copies(plan: &Plan) -> Result<usize> {
    let mut copies = 0;
    plan.apply(|plan| {
        if let Some(scan) = plan.downcast_ref::<SharedScanExec>() {
            copies = copies.max(scan.on_copies_for_order()?.len());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(copies)
}

fn satisfies_any(plan: &Plan, required: &[LexRequirement]) -> Result<bool> {
    for required in required {
        if plan.equivalence_properties().ordering_satisfy_requirement(required.clone())? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A plan with its scans in order, or the reason why they are not.
type PlanOrReason = std::result::Result<Plan, UnorderedReason>;

/// The operators between a scan and an operator that needs an order.
#[derive(Clone, Copy)]
struct PathToScan<'a> {
    needed_by: &'a str,
    /// Whether only the first rows are needed.
    has_limit: bool,
    /// The copies of tables to read: 0 for those that the scans chose, 1 for the next best ones.
    copy: usize,
    filters: bool,
    aggregates: bool,
}

impl PathToScan<'_> {
    /// Whether an order of the scan is worth its single partition.
    fn pays(self) -> bool {
        match (self.has_limit, self.aggregates) {
            // The first groups are known before the rest is read.
            (true, true) => true,
            // The first few rows that pass a filter are found faster by several partitions that a
            // top-k prunes.
            (true, false) => !self.filters,
            // Groups can be made from rows in any order, and there are fewer groups than rows to
            // sort.
            (false, aggregates) => !aggregates,
        }
    }
}

/// The plan with its scans in the order of their tables, or the reason why that is impossible or does not pay.
fn in_order(plan: &Plan, path: PathToScan<'_>) -> Result<PlanOrReason> {
    if let Some(scan) = plan.downcast_ref::<SharedScanExec>() {
        return Ok(match scan_in_order(scan, path)? {
            None => Err(UnorderedReason::NoneDeclared(path.needed_by.into())),
            Some(_) if !path.pays() => Err(UnorderedReason::SortCostsLess(path.needed_by.into())),
            Some(scan) => Ok(scan),
        });
    }
    let lost = || Ok(Err(UnorderedReason::Lost(path.needed_by.into())));
    // Depending on the order of its input, a stage decides whether to compute
    // `nth_value(x, 2 ORDER BY y DESC)` in the opposite order. Only the planner makes the partial
    // and the final stage decide alike.
    if plan.downcast_ref::<AggregateExec>().is_some_and(is_order_sensitive) {
        return lost();
    }
    let below = PathToScan {
        filters: path.filters || plan.is::<FilterExec>(),
        aggregates: path.aggregates || plan.is::<AggregateExec>(),
        ..path
    };
    let children = plan.children();
    if children.len() != 1 && !plan.is::<UnionExec>() {
        return lost();
    }
    let mut inputs = Vec::with_capacity(children.len());
    for input in children {
        match in_order(input, below)? {
            Ok(input) => inputs.push(input),
            Err(unordered_reason) => return Ok(Err(unordered_reason)),
        }
    }
    let plan = replace_children_if_necessary(Arc::clone(plan), inputs)?;
    match plan.maintains_input_order().iter().all(|&keeps| keeps) {
        true => Ok(Ok(plan)),
        false => lost(),
    }
}

/// A scan in its order, of the copy given by the path. The chosen copy is used if there are not enough copies.
fn scan_in_order(scan: &SharedScanExec, path: PathToScan<'_>) -> Changed {
    let others = scan.on_copies_for_order()?;
    let other = path.copy.checked_sub(1).and_then(|copy| others.get(copy));
    let scan = other.unwrap_or(scan).in_table_order(path.needed_by)?;
    Ok(scan.map(|scan| Arc::new(scan) as _))
}
