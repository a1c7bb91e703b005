//! Aggregations by leading columns of a table's order are executed chunk by chunk.

use std::sync::Arc;

use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::aggregates::{
    AggregateExec, AggregateInputMode, AggregateMode, AggregateOutputMode,
};
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};

use crate::chunkwise::leaf::LeafExec;
use crate::chunkwise::ordered_aggregate::OrderedAggregate;
#[cfg(doc)]
use crate::chunkwise::ordered_aggregate::OrderedAggregateExec;
use crate::filtering::{cheaper_filters, engine_filter};
use crate::operator::Plan;
use crate::optimizer::rule::{Changed, Rule, change_up};
use crate::optimizer::scan_path::{above_leaf, scan_below};

/// Replaces the stages of an aggregation by [`OrderedAggregateExec`] where the rows of a group are consecutive in the
/// table, and only filters and projections are between.
///
/// It runs before the rule that repartitions rows for aggregations.
pub(crate) const ORDERED_AGGREGATES: Rule =
    Rule::new("coscan_ordered_aggregates", |plan, _| change_up(plan, chunk_by_chunk));

fn chunk_by_chunk(plan: &Plan) -> Changed {
    let Some(aggregate) = only_or_first_stage(plan) else { return Ok(None) };
    let Some(scan) = scan_below(aggregate.input()) else { return Ok(None) };
    if scan.needed_chunks().len() < 2 {
        return Ok(None);
    }
    let Some(order) = scan.order_of_chunks()? else { return Ok(None) };
    let grouped = aggregate.group_expr().input_exprs();
    let grouped: Vec<_> = grouped
        .iter()
        .filter_map(|expression| column_of_scan(expression, aggregate.input()))
        .collect();
    let keys = order.columns.iter().map(|columns| {
        let leading = columns.iter().take_while(|column| grouped.contains(column));
        leading.copied().collect::<Vec<_>>()
    });
    let Some(key) = keys.max_by_key(Vec::len).filter(|key| !key.is_empty()) else {
        return Ok(None);
    };
    if !scan.has_many_keys(key[0])? {
        return Ok(None);
    }
    let leaf = Arc::new(LeafExec::of_chunks(scan.table_name(), order.properties));
    let input = above_leaf(aggregate.input(), leaf)?;
    // The rules that run last do not look into the plan of a chunk.
    let input = cheaper_filters(&input)?.unwrap_or(input);
    let filling = replace_children_if_necessary(Arc::new(aggregate.clone()), vec![input])?;
    let Some(filling) = filling.downcast_ref::<AggregateExec>() else { return Ok(None) };
    let ordered = OrderedAggregate::above(filling, scan.clone(), key)?;
    Ok((ordered.schema() == plan.schema()).then(|| Arc::new(ordered) as _))
}

/// The stage of an aggregation that reads rows, if the plan is the last stage of an aggregation without a limit and
/// without an order.
pub(super) fn only_or_first_stage(plan: &Plan) -> Option<&AggregateExec> {
    let last = plan.downcast_ref::<AggregateExec>()?;
    if last.mode().output_mode() != AggregateOutputMode::Final || last.limit_options().is_some() {
        return None;
    }
    let first = match last.mode().input_mode() {
        AggregateInputMode::Raw => last,
        AggregateInputMode::Partial => {
            let first = last.input().downcast_ref::<AggregateExec>()?;
            (*first.mode() == AggregateMode::Partial).then_some(first)?
        }
    };
    let is_plain = first.group_expr().is_single()
        && first.limit_options().is_none()
        && *first.input_order_mode() == InputOrderMode::Linear;
    (is_plain && !is_order_sensitive(first)).then_some(first)
}

/// Whether any of the aggregates depends on the order of rows.
pub(super) fn is_order_sensitive(aggregate: &AggregateExec) -> bool {
    aggregate.aggr_expr().iter().any(|function| !function.order_bys().is_empty())
}

/// The column of the scan, as an index into its output, that equals an expression on the rows of a plan above it.
fn column_of_scan(expression: &Arc<dyn PhysicalExpr>, plan: &Plan) -> Option<usize> {
    let column = expression.downcast_ref::<Column>()?;
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return column_of_scan(&projection.expr()[column.index()].expr, projection.input());
    }
    if let Some(filter) = engine_filter(plan) {
        let projected = filter.projection().as_ref();
        let index = projected.map_or(column.index(), |columns| columns[column.index()]);
        let below: Arc<dyn PhysicalExpr> = Arc::new(Column::new(column.name(), index));
        return column_of_scan(&below, plan.children().first()?);
    }
    Some(column.index())
}
