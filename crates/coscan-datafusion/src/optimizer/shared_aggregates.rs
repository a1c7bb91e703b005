//! Aggregations of a table share the states of chunks with other queries.

use std::sync::Arc;

use coscan_runtime::core::ChunkIndex;
use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;

use crate::aggregating::cheaper_aggregates;
use crate::chunkwise::leaf::LeafExec;
use crate::chunkwise::output::one_partition;
use crate::chunkwise::shared_aggregate::SharedAggregate;
#[cfg(doc)]
use crate::chunkwise::shared_aggregate::SharedAggregateExec;
use crate::execution::exec::{SharedScanExec, UnsharedReason};
use crate::operator::Plan;
use crate::optimizer::rule::{Changed, Rule, change_up};
use crate::optimizer::scan_path::{above_leaf, scan_below};
use crate::settings::{SessionSettings, ShareResults};
use crate::shared_results::QueryFragment;

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
    let is_two_stages = match aggregate.mode() {
        AggregateMode::Partial => true,
        AggregateMode::Single => false,
        _ => return Ok(None),
    };
    let Some(scan) = scan_below(aggregate.input()) else { return Ok(None) };
    let Some(&chunk) = scan.needed_chunks().first() else { return Ok(None) };
    if !scan.can_share_results() {
        return unshared(aggregate, scan, UnsharedReason::Scan);
    }
    if !is_two_stages && !is_separable(aggregate) {
        return unshared(aggregate, scan, UnsharedReason::Computation);
    }
    let first = if is_two_stages { aggregate.clone() } else { first_of(aggregate)? };
    match fragment(&first, scan, chunk) {
        Err(reason) => unshared(aggregate, scan, reason),
        Ok(fragment) if is_two_stages => first_stage(&first, scan, (fragment, keeps)),
        Ok(fragment) => match first_stage(&first, scan, (fragment, keeps))? {
            Some(first) => second_stage(aggregate, first),
            None => Ok(None),
        },
    }
}

/// What a first stage computes of each chunk, if that may be of use to others: the stage has few groups. With many, states would
/// not be published, and merging them would cost.
fn fragment(
    first: &AggregateExec,
    scan: &SharedScanExec,
    chunk: ChunkIndex,
) -> std::result::Result<QueryFragment, UnsharedReason> {
    let fragment = QueryFragment::of(first).ok_or(UnsharedReason::Computation)?;
    match fragment.may_have_few_groups(scan.table().table(), chunk) {
        true => Ok(fragment),
        false => Err(UnsharedReason::ManyGroups),
    }
}

/// The aggregation as it is. EXPLAIN of the scan says why it does not share results.
fn unshared(aggregate: &AggregateExec, scan: &SharedScanExec, reason: UnsharedReason) -> Changed {
    let scan = Arc::new(scan.with_unshared_results(reason));
    let input = above_leaf(aggregate.input(), scan)?;
    Ok(Some(replace_children_if_necessary(Arc::new(aggregate.clone()), vec![input])?))
}

/// The first stage of an aggregation, which shares states.
fn first_stage(
    first: &AggregateExec,
    scan: &SharedScanExec,
    (fragment, keeps): (QueryFragment, bool),
) -> Changed {
    let chunk = one_partition(EquivalenceProperties::new(scan.schema()));
    let leaf = Arc::new(LeafExec::of_chunks(scan.table_name(), chunk));
    let input = above_leaf(first.input(), leaf)?;
    let per_chunk = replace_children_if_necessary(Arc::new(first.clone()), vec![input])?;
    if per_chunk.schema() != first.schema() {
        return Ok(None);
    }
    let per_chunk = cheaper_aggregates(&per_chunk)?.unwrap_or(per_chunk);
    let shared = SharedAggregate::above(first, (fragment, keeps), per_chunk, scan.clone())?;
    Ok(Some(Arc::new(shared)))
}

/// Whether an aggregation in one stage can be made in two, of which the second merges a few states.
fn is_separable(single: &AggregateExec) -> bool {
    single.limit_options().is_none() && single.dynamic_expressions_produced().is_empty()
}

fn first_of(single: &AggregateExec) -> Result<AggregateExec> {
    AggregateExec::try_new(
        AggregateMode::Partial,
        single.group_expr().clone(),
        single.aggr_expr().to_vec(),
        single.filter_expr().to_vec(),
        Arc::clone(single.input()),
        single.input_schema(),
    )
}

fn second_stage(single: &AggregateExec, first: Plan) -> Changed {
    let aggregates = single.aggr_expr();
    let last = AggregateExec::try_new(
        AggregateMode::Final,
        single.group_expr().as_final(),
        aggregates.to_vec(),
        vec![None; aggregates.len()],
        first,
        single.input_schema(),
    )?;
    let is_alike = last.schema() == single.schema();
    Ok(is_alike.then(|| Arc::new(last) as _))
}
