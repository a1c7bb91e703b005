//! Filters that a plan pushes down filter the column they name.
//!
//! Operators of the engine look the columns of a filter up by name. Of two columns with the same name, such as `a.id`
//! and `b.id` above a join, they take the first. Rows are then lost by the wrong filter, whatever tables the plan reads
//! ([an answer that this makes wrong](https://github.com/apache/datafusion/issues/25296)). Versions after 55.2 look
//! columns up by position ([how](https://github.com/apache/datafusion/pull/25259)), which makes this rule superfluous.
//!
//! Aggregations that would lose rows by their own dynamic filter do not get it. No filter passes an operator with a limit.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinSide, JoinType, internal_datafusion_err};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_common::physical_expr::is_volatile;
#[cfg(doc)]
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterPushdownResult, ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation,
    PushedDown, PushedDownPredicate,
};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::joins::utils::build_join_schema;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr, replace_children_if_necessary};

use crate::operator::Plan;
use crate::optimizer::rule::Rule;

type Filter = Arc<dyn PhysicalExpr>;

/// The engine's [`FilterPushdown`], under its names, except that no operator gets a filter whose columns it would
/// confuse with others. Such a filter stays above the operator.
pub(crate) const SOUND_FILTER_PUSHDOWN: [Rule; 2] = [
    Rule::new("FilterPushdown", |plan, config| {
        Ok(push_down(plan, &[], FilterPushdownPhase::Pre, config)?.updated_node)
    }),
    Rule::new("FilterPushdown(Post)", |plan, config| {
        let config = settings_of(plan, config)?;
        Ok(push_down(plan, &[], FilterPushdownPhase::Post, &config)?.updated_node)
    }),
];

/// Pushes filters on the output of an operator into it, and its own filters into its inputs.
fn push_down(
    plan: &Plan,
    filters: &[Filter],
    phase: FilterPushdownPhase,
    config: &ConfigOptions,
) -> Result<FilterPushdownPropagation<Plan>> {
    let description = plan.gather_filters_for_pushdown(phase, filters.to_vec(), config)?;
    let (from_above, own) = (description.parent_filters(), description.self_filters());
    let mut results = vec![Vec::new(); filters.len()];
    let mut own_results = Vec::new();
    let mut inputs = Vec::new();
    let is_sound = has_sound_filter(plan);
    // A limit counts the rows that a filter from above would rule out, whatever operator has taken it over.
    let passes_on = plan.fetch().is_none();
    for ((input, from_above), own) in plan.children().into_iter().zip(from_above).zip(own) {
        let wanted = from_above.iter().map(|filter| match filter.discriminant {
            PushedDown::Yes => passes_on.then_some(&filter.predicate),
            PushedDown::No => None,
        });
        let of_plan = own.iter().map(|filter| is_sound.then_some(filter));
        let offered: Vec<_> = of_plan.chain(wanted).collect();
        let (input, pushed) = push_into(input, &offered, phase, config)?;
        inputs.push(input);
        let (of_own, of_above) = pushed.split_at(own.len());
        own_results.push(wrapped(of_own, &own));
        results.iter_mut().zip(of_above).for_each(|(result, pushed)| result.push(*pushed));
    }
    let replaced = replace_children_if_necessary(Arc::clone(plan), inputs)?;
    let results = filters.iter().zip(results);
    let results = results.map(|(filter, child_results)| ChildFilterPushdownResult {
        filter: Arc::clone(filter),
        child_results,
    });
    let of_children =
        ChildPushdownResult { parent_filters: results.collect(), self_filters: own_results };
    let mut pushed = replaced.handle_child_pushdown_result(phase, of_children, config)?;
    if pushed.updated_node.is_none() && !Arc::ptr_eq(&replaced, plan) {
        pushed.updated_node = Some(replaced);
    }
    Ok(pushed)
}

/// Whether the rows that an operator's own filter leaves out are of no use to it. The dynamic filter of an aggregation without groups
/// is made of each `min(column)` and `max(column)`. The engine leaves out those of which it knows no value yet, and `max(column + 1)`;
/// the filter of the others would rule out their rows.
fn has_sound_filter(plan: &Plan) -> bool {
    let Some(aggregate) = plan.downcast_ref::<AggregateExec>() else { return true };
    match aggregate.aggr_expr() {
        [function] => {
            matches!(function.expressions().as_slice(), [argument] if argument.is::<Column>())
        }
        _ => false,
    }
}

/// The settings for a plan. An aggregation that is executed again keeps its dynamic filter, and with it the bounds that it found before,
/// so those of recursive queries get none.
fn settings_of(plan: &Plan, config: &ConfigOptions) -> Result<ConfigOptions> {
    let mut config = config.clone();
    if plan.exists(|plan| Ok(plan.is::<RecursiveQueryExec>()))? {
        config.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    }
    Ok(config)
}

/// Pushes filters into an operator, except those that must not be pushed. Returns the operator, and which of the
/// filters it accepts.
fn push_into(
    plan: &Plan,
    offered: &[Option<&Filter>],
    phase: FilterPushdownPhase,
    config: &ConfigOptions,
) -> Result<(Plan, Vec<PushedDown>)> {
    let passes = |filter: &Filter| !has_volatile(filter) && is_understood(plan, filter);
    let offered: Vec<_> = offered.iter().map(|filter| filter.filter(|it| passes(it))).collect();
    let passed: Vec<Filter> = offered.iter().flatten().map(|filter| Arc::clone(filter)).collect();
    let pushed = push_down(plan, &passed, phase, config)?;
    let mut taken = pushed.filters.into_iter();
    let result = |filter: &Option<&Filter>| match filter {
        Some(_) => taken.next().ok_or_else(|| {
            internal_datafusion_err!("{} forgets filters that are pushed into it", plan.name())
        }),
        None => Ok(PushedDown::No),
    };
    let results = offered.iter().map(result).collect::<Result<_>>()?;
    Ok((pushed.updated_node.unwrap_or_else(|| Arc::clone(plan)), results))
}

fn wrapped(results: &[PushedDown], filters: &[Filter]) -> Vec<PushedDownPredicate> {
    let filters = results.iter().zip(filters);
    filters.map(|(result, filter)| result.wrap_expression(Arc::clone(filter))).collect()
}

fn has_volatile(filter: &Filter) -> bool {
    filter.exists(|part| Ok(is_volatile(part))).unwrap_or(true)
}

/// Whether an operator, looking them up by name, finds the columns that a filter on its output means.
fn is_understood(plan: &Plan, filter: &Filter) -> bool {
    let mut understood = true;
    let checked = filter.apply(|part| {
        if let Some(column) = part.downcast_ref::<Column>() {
            understood &= looked_up(plan, column.index()).iter().all(|(schema, meant)| {
                let found = schema.index_of(column.name()).ok();
                found.is_none() || found == *meant
            });
        }
        Ok(if understood { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    checked.is_ok() && understood
}

/// The schemas in which an operator looks up a column of its output, with the index of that column in each of them. The
/// index is `None` if the column with that name is another one.
fn looked_up(plan: &Plan, output: usize) -> Vec<(SchemaRef, Option<usize>)> {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let schema = projection.schema();
        // The last of several expressions with the same name is used.
        let name = schema.fields().get(output).map(|field| field.name());
        let alike = schema.fields().iter().filter(|field| Some(field.name()) == name).count();
        return vec![(schema, (alike == 1).then_some(output))];
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let projection = filter.projection().as_ref();
        let input = projection.map_or(Some(output), |columns| columns.get(output).copied());
        return vec![(filter.input().schema(), input)];
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let group = aggregate.group_expr().expr().get(output);
        let input = |(group, _): &(Filter, String)| group.downcast_ref().map(Column::index);
        return group.map(|group| (aggregate.input().schema(), input(group))).into_iter().collect();
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return looked_up_by_join(join, output);
    }
    // All other operators that pass filters on look them up in their input.
    plan.children().iter().map(|input| (input.schema(), Some(output))).collect()
}

/// Does the same as [`looked_up`] for joins. The keys of a semi join are looked up in both inputs.
fn looked_up_by_join(join: &HashJoinExec, output: usize) -> Vec<(SchemaRef, Option<usize>)> {
    let (left, right) = (join.left().schema(), join.right().schema());
    let (_, columns) = build_join_schema(&left, &right, join.join_type());
    let projected = join.projection.as_ref();
    let place = projected.map_or(Some(output), |columns| columns.get(output).copied());
    let Some(column) = place.and_then(|place| columns.get(place)) else { return Vec::new() };
    let key = |key: &Filter| key.downcast_ref().map(Column::index);
    let mut keys = join.on().iter().map(|(left, right)| (key(left), key(right)));
    match column.side {
        JoinSide::Left => {
            let in_right = match join.join_type() {
                JoinType::LeftSemi => keys.find(|(left, _)| *left == Some(column.index)),
                _ => None,
            };
            let in_right = in_right.map(|(_, of_right)| (right, of_right));
            [(left, Some(column.index))].into_iter().chain(in_right).collect()
        }
        JoinSide::Right => {
            let in_left = match join.join_type() {
                JoinType::RightSemi => keys.find(|(_, right)| *right == Some(column.index)),
                _ => None,
            };
            let in_left = in_left.map(|(of_left, _)| (left, of_left));
            [(right, Some(column.index))].into_iter().chain(in_left).collect()
        }
        JoinSide::None => Vec::new(),
    }
}
