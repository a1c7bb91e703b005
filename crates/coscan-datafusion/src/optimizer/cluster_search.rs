//! The search for plans that can go joint chunk by joint chunk.

use std::cell::Cell;
use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{JoinSide, JoinType};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::ProjectionExec;

use crate::chunkwise::joint_chunks::ClusteredTable;
use crate::chunkwise::leaf::LeafExec;
use crate::chunkwise::needed::Needed;
use crate::execution::exec::SharedScanExec;
use crate::operator::Plan;
use crate::optimizer::hash_joins::{Pair, input_of_column, needed_by_join, over, pair_of_column};
use crate::optimizer::ordered_aggregates::{is_order_sensitive, only_or_first_stage};

/// The maximum number of operators that a search visits.
const STEPS_MAX: usize = 2000;

/// A side of a join is collected if its scans read at most this part of the rows of the other side, and at most the
/// maximum below.
const COLLECTED_DIVISOR: u64 = 4;
const COLLECTED_MAX: u64 = 1 << 21;

/// A plan that returns the same rows if it is executed for each joint chunk of its tables by itself.
pub(super) struct Clustered {
    /// Its scans, from left to right.
    pub(super) leaves: Vec<Leaf>,
    /// The plans of which all rows are collected, from left to right.
    pub(super) collected: Vec<Plan>,
    /// The plan over the rows of a joint chunk and the collected rows.
    pub(super) plan: Plan,
    pub(super) needed: Needed,
}

/// The scan of a table that is clustered on a column.
pub(super) struct Leaf {
    pub(super) scan: SharedScanExec,
    /// The index of the column in the scan's output.
    key: usize,
    pub(super) options: SortOptions,
}

impl Leaf {
    pub(super) fn table(&self) -> ClusteredTable {
        ClusteredTable { table: self.scan.table().clone(), key: self.scan.projection()[self.key] }
    }
}

/// The search for a plan that is [`Clustered`].
pub(super) struct Search<'a> {
    config: &'a ConfigOptions,
    /// The number of operators that may still be visited. Some are visited repeatedly.
    steps_left: Cell<usize>,
}

impl<'a> Search<'a> {
    pub(super) fn new(config: &'a ConfigOptions) -> Self {
        Self { config, steps_left: Cell::new(STEPS_MAX) }
    }

    /// Whether there is a step left.
    fn step(&self) -> bool {
        self.steps_left.replace(self.steps_left.get().saturating_sub(1)) > 0
    }

    /// Finds a plan with a join or an aggregation below filters and projections.
    pub(super) fn clustered(&self, plan: &Plan) -> Result<Option<Clustered>> {
        if !self.step() {
            return Ok(None);
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            for (left, right) in join.on() {
                if let Some(joined) = self.of_join(join, (left, right))? {
                    return Ok(Some(joined));
                }
            }
            return match self.clustered(join.right())? {
                Some(right) => self.with_collected_side(join, right),
                None => Ok(None),
            };
        }
        if let Some(aggregate) = only_or_first_stage(plan) {
            for group in aggregate.group_expr().input_exprs() {
                if let Some(aggregate) = self.of_aggregate(aggregate, &group)? {
                    return Ok(Some(aggregate));
                }
            }
            return Ok(None);
        }
        // The first stage of an aggregation by another key. With grouping sets it may return a row
        // for no rows, but without chunks it would not run.
        let is_partial = plan.downcast_ref::<AggregateExec>().is_some_and(|aggregate| {
            *aggregate.mode() == AggregateMode::Partial
                && aggregate.group_expr().is_single()
                && aggregate.limit_options().is_none()
                && !is_order_sensitive(aggregate)
        });
        if !is_partial && !plan.is::<ProjectionExec>() && !plan.is::<FilterExec>() {
            return Ok(None);
        }
        let &[input] = plan.children().as_slice() else { return Ok(None) };
        self.clustered(input)?.map(|input| input.below(plan)).transpose()
    }

    /// A plan clustered on an expression, which must be a column of its output. All rows with the same value are in one
    /// joint chunk.
    fn clustered_on(&self, plan: &Plan, key: &Arc<dyn PhysicalExpr>) -> Result<Option<Clustered>> {
        let column = key.downcast_ref::<Column>().map(Column::index);
        let Some(column) = column.filter(|_| self.step()) else { return Ok(None) };
        if let Some(scan) = plan.downcast_ref::<SharedScanExec>() {
            return of_scan(scan, column);
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            if let Some(pair) = pair_of_column(join, column)
                && let Some(joined) = self.of_join(join, pair)?
            {
                return Ok(Some(joined));
            }
            let Some((JoinSide::Right, key)) = input_of_column(join, column) else {
                return Ok(None);
            };
            return match self.clustered_on(join.right(), &key)? {
                Some(right) => self.with_collected_side(join, right),
                None => Ok(None),
            };
        }
        if let Some(aggregate) = only_or_first_stage(plan) {
            let groups = aggregate.group_expr().input_exprs();
            return match groups.get(column) {
                Some(group) => self.of_aggregate(aggregate, group),
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
        self.clustered_on(input, &below)?.map(|input| input.below(plan)).transpose()
    }

    /// Merges the stages of an aggregation by a key into one, since all rows of a group are in one joint chunk.
    fn of_aggregate(
        &self,
        aggregate: &AggregateExec,
        group: &Arc<dyn PhysicalExpr>,
    ) -> Result<Option<Clustered>> {
        let Some(input) = self.clustered_on(aggregate.input(), group)? else { return Ok(None) };
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

    /// A join on the keys of both sides.
    fn of_join(
        &self,
        join: &HashJoinExec,
        (left_key, right_key): Pair<'_>,
    ) -> Result<Option<Clustered>> {
        let data_types = (
            left_key.data_type(&join.left().schema())?,
            right_key.data_type(&join.right().schema())?,
        );
        let is_possible = !join.null_aware
            && join.fetch().is_none()
            && data_types.0 == data_types.1
            && !self.has_small_build_side(join);
        if !is_possible {
            return Ok(None);
        }
        let Some(left) = self.clustered_on(join.left(), left_key)? else { return Ok(None) };
        let Some(right) = self.clustered_on(join.right(), right_key)? else { return Ok(None) };
        let options = left.leaves[0].options;
        if right.leaves.iter().any(|leaf| leaf.options != options) {
            return Ok(None);
        }
        let needed =
            needed_by_join(*join.join_type(), left.needed, right.needed.after(left.leaves.len()));
        let plan = over(join, left.plan, right.plan)?;
        let leaves = left.leaves.into_iter().chain(right.leaves).collect();
        let collected = left.collected.into_iter().chain(right.collected).collect();
        Ok(Some(Clustered { leaves, collected, plan, needed }))
    }

    /// Whether the left side is a table that is small enough to hold in memory.
    fn has_small_build_side(&self, join: &HashJoinExec) -> bool {
        let rows_max = self.config.optimizer.hash_join_single_partition_threshold_rows;
        *join.partition_mode() == PartitionMode::CollectLeft
            && scanned_rows(join.left()).is_none_or(|rows| rows <= rows_max as u64)
    }

    /// A join whose left side is small compared to the clustered right side. The left side is collected once, for all
    /// joint chunks. Returns `None` if the join returns rows of the left side that have no match.
    fn with_collected_side(
        &self,
        join: &HashJoinExec,
        right: Clustered,
    ) -> Result<Option<Clustered>> {
        let returns_matches = matches!(
            join.join_type(),
            JoinType::Inner
                | JoinType::Right
                | JoinType::RightSemi
                | JoinType::RightAnti
                | JoinType::RightMark
        );
        let rows = right.leaves.iter().map(|leaf| leaf.scan.row_count()).max().unwrap_or(0);
        let is_small = *join.partition_mode() == PartitionMode::CollectLeft
            || scanned_rows(join.left())
                .is_some_and(|collected| collected <= COLLECTED_MAX.min(rows / COLLECTED_DIVISOR));
        if !returns_matches || !is_small || join.null_aware || join.fetch().is_some() {
            return Ok(None);
        }
        // The keys of a small table prune the scan of a table that is clustered on them.
        for (_, key) in join.on() {
            if self.clustered_on(join.right(), key)?.is_some() {
                return Ok(None);
            }
        }
        let left = Arc::new(LeafExec::collected(join.left().schema()));
        let plan = over(join, left, right.plan)?;
        let collected = std::iter::once(Arc::clone(join.left())).chain(right.collected).collect();
        Ok(Some(Clustered { collected, plan, ..right }))
    }
}

impl Clustered {
    fn below(self, plan: &Plan) -> Result<Self> {
        let plan = replace_children_if_necessary(Arc::clone(plan), vec![self.plan])?;
        Ok(Self { plan, ..self })
    }
}

fn of_scan(scan: &SharedScanExec, key: usize) -> Result<Option<Clustered>> {
    let Some(properties) = scan.properties_of_chunks()? else { return Ok(None) };
    let table = ClusteredTable { table: scan.table().clone(), key: scan.projection()[key] };
    let Some(options) = table.order()? else { return Ok(None) };
    Ok(Some(Clustered {
        leaves: vec![Leaf { scan: scan.clone(), key, options }],
        collected: Vec::new(),
        plan: Arc::new(LeafExec::of_chunks(scan.table_name(), properties)),
        needed: Needed::By(0),
    }))
}

/// The number of rows that the scans of a plan read, or `None` if some are not scans of shared tables.
fn scanned_rows(plan: &Plan) -> Option<u64> {
    if let Some(scan) = plan.downcast_ref::<SharedScanExec>() {
        return Some(scan.row_count());
    }
    let inputs = plan.children();
    if inputs.is_empty() { None } else { inputs.into_iter().map(scanned_rows).sum() }
}
