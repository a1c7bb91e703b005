//! Where rows are dropped by dynamic filters: below aggregations and repartitions that only filters and projections
//! separate from a scan.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{Partitioning, replace_children_if_necessary};

use crate::execution::exec::SharedScanExec;
use crate::filtering::dynamic::{DynamicFilter, dynamic_filters_above};
use crate::filtering::projected_predicate::renumber_columns;
use crate::operator::Plan;
use crate::optimizer::rule::{Changed, Rule, change_up};
use crate::optimizer::scan_path::{output_column, scan_below};

/// Drops rows below aggregations and repartitions. The rules that look for aggregations above a scan run before.
pub(crate) const DYNAMIC_FILTERS: Rule =
    Rule::new("coscan_dynamic_filters", |plan, _| change_up(plan, with_filtered_input));

fn with_filtered_input(plan: &Plan) -> Changed {
    if !is_costly_per_row(plan) {
        return Ok(None);
    }
    let &[input] = plan.children().as_slice() else { return Ok(None) };
    let Some(scan) = scan_below(input) else { return Ok(None) };
    let filters = filters(input, scan)?;
    if filters.is_empty() {
        return Ok(None);
    }
    replace_children_if_necessary(Arc::clone(plan), vec![dynamic_filters_above(input, filters)?])
        .map(Some)
}

/// Whether an operator does so much for each row of its input that rows are better dropped before.
fn is_costly_per_row(plan: &Plan) -> bool {
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return !aggregate.group_expr().is_true_no_grouping();
    }
    let repartition = plan.downcast_ref::<RepartitionExec>();
    repartition.is_some_and(|it| matches!(it.partitioning(), Partitioning::Hash(..)))
}

/// The dynamic filters of a scan whose columns an operator above it has.
fn filters(plan: &Plan, scan: &SharedScanExec) -> Result<Vec<DynamicFilter>> {
    let filters = scan.dynamic_filters();
    let filters = filters.iter().map(|filter| {
        let number = |column: &Column| output_column(plan, column.index());
        let on_output = renumber_columns(filter, number)?;
        on_output.map(|on_output| DynamicFilter::new(filter, &on_output, scan)).transpose()
    });
    filters.filter_map(Result::transpose).collect()
}
