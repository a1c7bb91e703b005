//! Joins of tables that are clustered on the join key go joint chunk by joint chunk.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinSide, JoinType};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::utils::{ColumnIndex, build_join_schema};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::ProjectionExec;

use crate::execution::exec::SharedScanExec;
use crate::optimizer::ordered_aggregates::only_or_first_stage;
use crate::optimizer::sorts::Changed;
use crate::sandwich::chunk_plan::{ChunkInputExec, CollectedInputExec};
use crate::sandwich::clustering::{ClusteredTable, Clustering};
use crate::sandwich::cooperative_join::{CooperativeJoinExec, Needed};
use crate::sandwich::joint_cost::JointCost;

/// A joint chunk takes at most this part of the pool: several are read and joined at a time.
const POOL_PART: u64 = 4;

/// The scans of each table by themselves read fewer chunks of a narrow range: joint chunks are larger. They may have so
/// many times as many rows.
const ROWS_FACTOR: u64 = 2;

/// A side of a join is collected if its scans read at most this part of the rows of the other side.
const COLLECTED_PART: u64 = 4;

/// Replaces plans of hash joins on the key of clustered tables by [`CooperativeJoinExec`], with the filters,
/// projections and aggregations by the key between and above them.
///
/// It runs before the rule that repartitions rows for joins.
#[derive(Debug)]
pub(crate) struct ClusteredJoins;

impl ClusteredJoins {
    pub(crate) const NAME: &'static str = "coscan_clustered_joins";
    pub(crate) const BEFORE: &'static str = "EnsureRequirements";
}

impl PhysicalOptimizerRule for ClusteredJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let change = |plan: Arc<dyn ExecutionPlan>| {
            Ok(joint(&plan, config)?.map_or_else(|| Transformed::no(plan), Transformed::yes))
        };
        plan.transform_down(change).data()
    }

    fn name(&self) -> &str {
        Self::NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The largest part of a plan, from its root, that can go joint chunk by joint chunk, if it has a join for which that
/// pays.
fn joint(plan: &Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Changed {
    let Some(Clustered { leaves, collected, plan: filling, needed }) = clustered(plan, config)?
    else {
        return Ok(None);
    };
    let [first, _, ..] = leaves.as_slice() else { return Ok(None) };
    let (manager, options) = (first.scan.manager().clone(), first.options);
    let tables = leaves.iter().map(Leaf::table).collect();
    let Some(clustering) = Clustering::new(&manager, tables, options)? else { return Ok(None) };
    let scans: Vec<_> = leaves.iter().map(|leaf| &leaf.scan).collect();
    let cost = JointCost::new(&clustering, &scans, &needed)?;
    let scanned: u64 = scans.iter().map(|scan| scan.row_count()).sum();
    let pays = cost.chunk_bytes_max <= manager.options().pool_bytes / POOL_PART
        && cost.rows <= scanned.saturating_mul(ROWS_FACTOR);
    if !pays || filling.schema() != plan.schema() {
        return Ok(None);
    }
    let scans = leaves.into_iter().map(|leaf| Arc::new(leaf.scan) as _).collect();
    Ok(Some(Arc::new(CooperativeJoinExec::new(filling, scans, collected, clustering, needed))))
}

/// A plan that gives the same rows if it is executed for each joint chunk of its tables by itself.
struct Clustered {
    /// Its scans, from left to right.
    leaves: Vec<Leaf>,
    /// Plans of which it collects all rows, from left to right.
    collected: Vec<Arc<dyn ExecutionPlan>>,
    /// Over the rows of a joint chunk, and those collected.
    plan: Arc<dyn ExecutionPlan>,
    needed: Needed,
}

/// The scan of a table that is clustered on a column.
struct Leaf {
    scan: SharedScanExec,
    /// An index into the scan's output.
    key: usize,
    options: SortOptions,
}

impl Leaf {
    fn table(&self) -> ClusteredTable {
        ClusteredTable { table: self.scan.table().clone(), key: self.scan.projection()[self.key] }
    }
}

/// A plan with a join or an aggregation below filters and projections.
fn clustered(plan: &Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Option<Clustered>> {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        for (left, right) in join.on() {
            if let Some(joined) = of_join(join, (left, right), config)? {
                return Ok(Some(joined));
            }
        }
        return match clustered(join.right(), config)? {
            Some(right) => with_collected_side(join, right),
            None => Ok(None),
        };
    }
    if let Some(aggregate) = only_or_first_stage(plan) {
        for group in aggregate.group_expr().input_exprs() {
            if let Some(aggregate) = of_aggregate(aggregate, &group, config)? {
                return Ok(Some(aggregate));
            }
        }
        return Ok(None);
    }
    // The first stage of an aggregation by another key.
    let is_partial = plan.downcast_ref::<AggregateExec>().is_some_and(|aggregate| {
        *aggregate.mode() == AggregateMode::Partial && aggregate.limit_options().is_none()
    });
    if !is_partial && !plan.is::<ProjectionExec>() && !plan.is::<FilterExec>() {
        return Ok(None);
    }
    let &[input] = plan.children().as_slice() else { return Ok(None) };
    clustered(input, config)?.map(|input| input.below(plan)).transpose()
}

impl Clustered {
    fn below(self, plan: &Arc<dyn ExecutionPlan>) -> Result<Self> {
        let plan = replace_children_if_necessary(Arc::clone(plan), vec![self.plan])?;
        Ok(Self { plan, ..self })
    }
}

/// A plan clustered on an expression, which must be a column of its output: all rows of a value are in one joint chunk.
fn clustered_on(
    plan: &Arc<dyn ExecutionPlan>,
    key: &Arc<dyn PhysicalExpr>,
    config: &ConfigOptions,
) -> Result<Option<Clustered>> {
    let Some(column) = key.downcast_ref::<Column>().map(Column::index) else { return Ok(None) };
    if let Some(scan) = plan.downcast_ref::<SharedScanExec>() {
        return of_scan(scan, column);
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        if let Some(pair) = pair_of_column(join, column)
            && let Some(joined) = of_join(join, pair, config)?
        {
            return Ok(Some(joined));
        }
        let Some((JoinSide::Right, key)) = input_of_column(join, column) else { return Ok(None) };
        return match clustered_on(join.right(), &key, config)? {
            Some(right) => with_collected_side(join, right),
            None => Ok(None),
        };
    }
    if let Some(aggregate) = only_or_first_stage(plan) {
        let groups = aggregate.group_expr().input_exprs();
        return match groups.get(column) {
            Some(group) => of_aggregate(aggregate, group, config),
            None => Ok(None),
        };
    }
    let below: Arc<dyn PhysicalExpr> =
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            Arc::clone(&projection.expr()[column].expr)
        } else if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            let projected = filter.projection().as_ref();
            Arc::new(Column::new("", projected.map_or(column, |columns| columns[column])))
        } else {
            return Ok(None);
        };
    let &[input] = plan.children().as_slice() else { return Ok(None) };
    clustered_on(input, &below, config)?.map(|input| input.below(plan)).transpose()
}

fn of_scan(scan: &SharedScanExec, key: usize) -> Result<Option<Clustered>> {
    let Some(properties) = scan.properties_of_chunks()? else { return Ok(None) };
    let table = ClusteredTable { table: scan.table().clone(), key: scan.projection()[key] };
    let Some(options) = table.order()? else { return Ok(None) };
    Ok(Some(Clustered {
        leaves: vec![Leaf { scan: scan.clone(), key, options }],
        collected: Vec::new(),
        plan: Arc::new(ChunkInputExec::new(scan.table_name(), properties)),
        needed: Needed::By(0),
    }))
}

/// The stages of an aggregation by a key as one: all rows of a group are in one joint chunk.
fn of_aggregate(
    aggregate: &AggregateExec,
    group: &Arc<dyn PhysicalExpr>,
    config: &ConfigOptions,
) -> Result<Option<Clustered>> {
    let Some(input) = clustered_on(aggregate.input(), group, config)? else { return Ok(None) };
    let plan = AggregateExec::try_new(
        AggregateMode::Single,
        aggregate.group_expr().clone(),
        aggregate.aggr_expr().to_vec(),
        aggregate.filter_expr().to_vec(),
        input.plan,
        aggregate.input_schema(),
    )?;
    Ok(Some(Clustered { plan: Arc::new(plan), ..input }))
}

/// Two expressions that a join requires to be equal, of its left and its right side.
type Pair<'a> = (&'a Arc<dyn PhysicalExpr>, &'a Arc<dyn PhysicalExpr>);

fn of_join(
    join: &HashJoinExec,
    (left_key, right_key): Pair<'_>,
    config: &ConfigOptions,
) -> Result<Option<Clustered>> {
    let data_types =
        (left_key.data_type(&join.left().schema())?, right_key.data_type(&join.right().schema())?);
    if join.null_aware || join.fetch().is_some() || data_types.0 != data_types.1 {
        return Ok(None);
    }
    let (Some(left), Some(right)) = (
        clustered_on(join.left(), left_key, config)?,
        clustered_on(join.right(), right_key, config)?,
    ) else {
        return Ok(None);
    };
    let is_small = |leaf: &Leaf| {
        let rows = usize::try_from(leaf.scan.row_count()).unwrap_or(usize::MAX);
        rows <= config.optimizer.hash_join_single_partition_threshold_rows
    };
    // A small table is cheap to hold in memory, and its keys prune the scan of the other side.
    let is_cheap =
        *join.partition_mode() == PartitionMode::CollectLeft && left.leaves.iter().all(is_small);
    let options = left.leaves[0].options;
    if is_cheap || right.leaves.iter().any(|leaf| leaf.options != options) {
        return Ok(None);
    }
    let needed =
        needed_by_join(*join.join_type(), left.needed, right.needed.after(left.leaves.len()));
    let plan = over(join, left.plan, right.plan)?;
    let leaves = left.leaves.into_iter().chain(right.leaves).collect();
    let collected = left.collected.into_iter().chain(right.collected).collect();
    Ok(Some(Clustered { leaves, collected, plan, needed }))
}

/// A join whose left side is small beside the clustered right one: it is collected once, for all joint chunks. `None` if
/// the join returns rows of the left side that have no match.
fn with_collected_side(join: &HashJoinExec, right: Clustered) -> Result<Option<Clustered>> {
    let returns_matches = matches!(
        join.join_type(),
        JoinType::Inner
            | JoinType::Right
            | JoinType::RightSemi
            | JoinType::RightAnti
            | JoinType::RightMark
    );
    let rows = right.leaves.iter().map(|leaf| leaf.scan.row_count()).max().unwrap_or(0);
    let is_small = match scanned_rows(join.left()) {
        Some(collected) => collected <= rows / COLLECTED_PART,
        None => *join.partition_mode() == PartitionMode::CollectLeft,
    };
    if !returns_matches || !is_small || join.null_aware || join.fetch().is_some() {
        return Ok(None);
    }
    let left = Arc::new(CollectedInputExec::new(join.left().schema()));
    let plan = over(join, left, right.plan)?;
    let collected = std::iter::once(Arc::clone(join.left())).chain(right.collected).collect();
    Ok(Some(Clustered { collected, plan, ..right }))
}

/// The rows that the scans of a plan read; `None` if some are not of shared tables.
fn scanned_rows(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    if let Some(scan) = plan.downcast_ref::<SharedScanExec>() {
        return Some(scan.row_count());
    }
    let inputs = plan.children();
    if inputs.is_empty() { None } else { inputs.into_iter().map(scanned_rows).sum() }
}

/// A join of these inputs, in one partition.
fn over(
    join: &HashJoinExec,
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let join = join.builder().with_partition_mode(PartitionMode::CollectLeft);
    join.recompute_properties().with_new_children(vec![left, right])?.build_exec()
}

/// The pair of which a column of a join's output is one.
fn pair_of_column(join: &HashJoinExec, column: usize) -> Option<Pair<'_>> {
    let (side, input) = input_of_column(join, column)?;
    let index = input.downcast_ref::<Column>()?.index();
    let mut pairs = join.on().iter();
    let pair = pairs.find(|(left, right)| {
        let key = if side == JoinSide::Left { left } else { right };
        key.downcast_ref::<Column>().is_some_and(|key| key.index() == index)
    })?;
    Some((&pair.0, &pair.1))
}

/// The side of which a column of a join's output is a column; `None` if it is NULL for rows without a match.
fn input_of_column(
    join: &HashJoinExec,
    column: usize,
) -> Option<(JoinSide, Arc<dyn PhysicalExpr>)> {
    let column = join.projection.as_ref().map_or(column, |columns| columns[column]);
    let (_, columns) =
        build_join_schema(&join.left().schema(), &join.right().schema(), join.join_type());
    let ColumnIndex { index, side } = columns.get(column)?;
    let keeps = match (join.join_type(), side) {
        (JoinType::Left, side) => *side == JoinSide::Left,
        (JoinType::Right, side) => *side == JoinSide::Right,
        (JoinType::Full, _) | (_, JoinSide::None) => false,
        _ => true,
    };
    keeps.then(|| (*side, Arc::new(Column::new("", *index)) as _))
}

fn needed_by_join(join_type: JoinType, left: Needed, right: Needed) -> Needed {
    match join_type {
        JoinType::Inner | JoinType::LeftSemi | JoinType::RightSemi => {
            Needed::Both(Box::new(left), Box::new(right))
        }
        JoinType::Left | JoinType::LeftAnti | JoinType::LeftMark => left,
        JoinType::Right | JoinType::RightAnti | JoinType::RightMark => right,
        JoinType::Full => Needed::Either(Box::new(left), Box::new(right)),
    }
}
