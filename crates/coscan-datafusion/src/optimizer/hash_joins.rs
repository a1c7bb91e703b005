//! Helpers for hash joins: their keys, their columns, and what they need of each side.

use std::sync::Arc;

use datafusion::common::{JoinSide, JoinType};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::joins::utils::{ColumnIndex, build_join_schema};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};

use crate::chunkwise::needed::Needed;
use crate::operator::Plan;

/// An expression of the left and one of the right side that a join requires to be equal.
pub(super) type Pair<'a> = (&'a Arc<dyn PhysicalExpr>, &'a Arc<dyn PhysicalExpr>);

/// Replaces the inputs of a join, and makes it a join in one partition.
pub(super) fn over(join: &HashJoinExec, left: Plan, right: Plan) -> Result<Plan> {
    let join = join.builder().with_partition_mode(PartitionMode::CollectLeft);
    join.recompute_properties().with_new_children(vec![left, right])?.build_exec()
}

/// The pair that contains a column of a join's output.
pub(super) fn pair_of_column(join: &HashJoinExec, column: usize) -> Option<Pair<'_>> {
    let (side, input) = input_of_column(join, column)?;
    let index = input.downcast_ref::<Column>()?.index();
    let mut pairs = join.on().iter();
    let pair = pairs.find(|(left, right)| {
        let key = if side == JoinSide::Left { left } else { right };
        key.downcast_ref::<Column>().is_some_and(|key| key.index() == index)
    })?;
    Some((&pair.0, &pair.1))
}

/// The input that a column of a join's output comes from. `None` if the column is NULL for rows without a match.
pub(super) fn input_of_column(
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

/// The joint chunks that a join needs, from those that its sides need.
pub(super) fn needed_by_join(join_type: JoinType, left: Needed, right: Needed) -> Needed {
    match join_type {
        JoinType::Inner | JoinType::LeftSemi | JoinType::RightSemi => {
            Needed::Both(Box::new(left), Box::new(right))
        }
        JoinType::Left | JoinType::LeftAnti | JoinType::LeftMark => left,
        JoinType::Right | JoinType::RightAnti | JoinType::RightMark => right,
        JoinType::Full => Needed::Either(Box::new(left), Box::new(right)),
    }
}
