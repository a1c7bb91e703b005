//! Aggregations of a table share the states of chunks with other queries.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;

use crate::chunkwise::leaf::LeafExec;
use crate::chunkwise::output::one_partition;
use crate::chunkwise::shared_aggregate::SharedAggregate;
#[cfg(doc)]
use crate::chunkwise::shared_aggregate::SharedAggregateExec;
use crate::operator::Plan;
use crate::optimizer::rule::{Changed, Rule, change_up};
use crate::optimizer::scan_path::{above_leaf, scan_below};
use crate::results::QueryFragment;
use crate::settings::{SessionSettings, ShareResults};

/// Replaces the first stage of an aggregation by [`SharedAggregateExec`] where only filters and projections are between it and a
/// scan of whole chunks. It must run after the rules that replace filters.
pub(crate) const SHARED_AGGREGATES: Rule =
    Rule::new("coscan_shared_aggregates", |plan, config| match setting(config) {
        ShareResults::Never => Ok(None),
        setting => change_up(plan, |plan| shared(plan, setting == ShareResults::Kept)),
    });

fn setting(config: &ConfigOptions) -> ShareResults {
    config.extensions.get::<SessionSettings>().map_or(ShareResults::Never, |set| set.share_results)
}

fn shared(plan: &Plan, keeps: bool) -> Changed {
    let Some(aggregate) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    match aggregate.mode() {
        AggregateMode::Partial => first_stage(aggregate, keeps),
        AggregateMode::Single => in_two_stages(aggregate, keeps),
        _ => Ok(None),
    }
}

/// A first stage with few groups. With many, states would not be published, and merging them would cost.
fn first_stage(aggregate: &AggregateExec, keeps: bool) -> Changed {
    let Some(scan) = scan_below(aggregate.input()) else { return Ok(None) };
    let Some(&first) = scan.needed_chunks().first() else { return Ok(None) };
    if !scan.can_share_results() {
        return Ok(None);
    }
    let fragment = QueryFragment::of(aggregate);
    let fragment =
        fragment.filter(|fragment| fragment.may_have_few_groups(scan.table().table(), first));
    let Some(fragment) = fragment else { return Ok(None) };
    let chunk = one_partition(EquivalenceProperties::new(scan.schema()));
    let leaf = Arc::new(LeafExec::of_chunks(scan.table_name(), chunk));
    let input = above_leaf(aggregate.input(), leaf)?;
    let per_chunk = replace_children_if_necessary(Arc::new(aggregate.clone()), vec![input])?;
    if per_chunk.schema() != aggregate.schema() {
        return Ok(None);
    }
    let shared = SharedAggregate::above(aggregate, (fragment, keeps), per_chunk, scan.clone())?;
    Ok(Some(Arc::new(shared)))
}

/// An aggregation in one stage, as two of which the second merges a few states.
fn in_two_stages(single: &AggregateExec, keeps: bool) -> Changed {
    let (aggregates, group_by) = (single.aggr_expr(), single.group_expr());
    if single.limit_options().is_some() || !single.dynamic_expressions_produced().is_empty() {
        return Ok(None);
    }
    let first = AggregateExec::try_new(
        AggregateMode::Partial,
        group_by.clone(),
        aggregates.to_vec(),
        single.filter_expr().to_vec(),
        Arc::clone(single.input()),
        single.input_schema(),
    )?;
    let Some(first) = first_stage(&first, keeps)? else { return Ok(None) };
    let last = AggregateExec::try_new(
        AggregateMode::Final,
        group_by.as_final(),
        aggregates.to_vec(),
        vec![None; aggregates.len()],
        first,
        single.input_schema(),
    )?;
    let is_alike = last.schema() == single.schema();
    Ok(is_alike.then(|| Arc::new(last) as _))
}
