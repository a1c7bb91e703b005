//! The operators between a sort and the scan whose rows it sorts.

use std::sync::Arc;

use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;

use crate::execution::exec::SharedScanExec;
use crate::operator::Plan;
use crate::optimizer::rule::{Changed, change_down};

/// Replaces the inputs of all sorts of a plan by the results of `change`.
pub(crate) fn change_sort_inputs(plan: &Plan, change: impl Fn(&SortExec) -> Changed) -> Changed {
    change_down(plan, |plan| {
        let input = plan.downcast_ref::<SortExec>().map(&change).transpose()?.flatten();
        input.map(|input| replace_children_if_necessary(Arc::clone(plan), vec![input])).transpose()
    })
}

/// Replaces the scan below a plan by the result of `change`, which gets an order of the plan's rows as an order of the
/// scan's rows. Returns `None` if there is no scan below that is reached through operators that only pass rows on.
pub(crate) fn change_scan(
    plan: &Plan,
    order: &[PhysicalSortExpr],
    change: &dyn Fn(&SharedScanExec, &[PhysicalSortExpr]) -> Changed,
) -> Changed {
    if let Some(scan) = plan.downcast_ref::<SharedScanExec>() {
        return change(scan, order);
    }
    let (Some(below), &[input]) = (below(plan, order), plan.children().as_slice()) else {
        return Ok(None);
    };
    let input = change_scan(input, &below, change)?;
    input.map(|input| replace_children_if_necessary(Arc::clone(plan), vec![input])).transpose()
}

/// Converts an order of an operator's output to an order of its input, which has the leading keys that are columns of
/// the input. Returns `None` if the operator does more than pass rows on.
fn below(plan: &Plan, order: &[PhysicalSortExpr]) -> Option<Vec<PhysicalSortExpr>> {
    let map = |input_column: &dyn Fn(usize) -> Option<Column>| {
        let key = |key: &PhysicalSortExpr| {
            let column = input_column(key.expr.downcast_ref::<Column>()?.index())?;
            Some(PhysicalSortExpr::new(Arc::new(column), key.options))
        };
        order.iter().map_while(key).collect::<Vec<_>>()
    };
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let schema = filter.input().schema();
        return Some(map(&|column| {
            let column = match filter.projection() {
                Some(projection) => *projection.get(column)?,
                None => column,
            };
            Some(Column::new(schema.field(column).name(), column))
        }));
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let column =
            |column: usize| projection.expr().get(column)?.expr.downcast_ref::<Column>().cloned();
        return Some(map(&column));
    }
    let passes_on = plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<CooperativeExec>();
    passes_on.then(|| order.to_vec())
}
