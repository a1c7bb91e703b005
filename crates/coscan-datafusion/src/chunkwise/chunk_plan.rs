//! A plan that is executed for one chunk after another.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, replace_children_if_necessary,
};
use datafusion::physical_plan::{EmptyRecordBatchStream, ReplaceChildrenOptions, displayable};
use futures::TryStreamExt;

use super::leaf::LeafExec;
use crate::operator::Plan;

/// A plan of one partition that is executed over the rows of a chunk (its [`LeafExec`]s). Joins in it may also read
/// rows that are the same for all chunks. Each execution has inputs and metrics of its own.
#[derive(Clone, Debug)]
pub(super) struct ChunkPlan {
    plan: Plan,
}

impl ChunkPlan {
    pub(super) fn new(plan: Plan) -> Self {
        Self { plan }
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Replaces the leaves for collected rows by other plans, from left to right. Joins collect the rows of these plans
    /// once for all executions.
    pub(super) fn with_collected(&self, collected: &[Plan]) -> Result<Self> {
        let mut collected = collected.iter().cloned();
        let replace = &mut |leaf: &LeafExec| leaf.is_collected().then(|| collected.next());
        Ok(Self { plan: with_leaves(&self.plan, replace)? })
    }

    /// The plan over all rows of its tables at once. The leaves of chunks and those for collected rows are replaced by
    /// plans, each from left to right. It may require them in one partition.
    pub(super) fn over_whole(&self, tables: &[Plan], collected: &[Plan]) -> Result<Plan> {
        let (mut tables, mut collected) = (tables.iter().cloned(), collected.iter().cloned());
        let replace = &mut |leaf: &LeafExec| match leaf.is_collected() {
            true => Some(collected.next()),
            false => Some(tables.next()),
        };
        with_leaves(&self.plan, replace)
    }

    /// Makes joins collect the rows that are the same for all chunks, by executing them over a chunk without rows. Each
    /// join is executed by itself, since one whose other side is empty does not read the joins below it.
    pub(super) async fn collect(&self, context: &Arc<TaskContext>) -> Result<()> {
        let mut joins = Vec::new();
        find_collecting(&self.plan, &mut joins);
        for join in joins {
            let mut schemas = Vec::new();
            find_leaves(join, &mut schemas);
            let empty = |schema| Box::pin(EmptyRecordBatchStream::new(schema)) as _;
            let inputs = schemas.into_iter().map(empty).collect();
            let mut joined = Self::new(Arc::clone(join)).execute(inputs, context)?;
            while joined.try_next().await?.is_some() {}
        }
        Ok(())
    }

    /// Executes the plan over these rows, one input for each chunk leaf, from left to right.
    pub(super) fn execute(
        &self,
        inputs: Vec<SendableRecordBatchStream>,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        match with_inputs(&self.plan, &mut inputs.into_iter())? {
            Some(plan) => plan.execute(0, Arc::clone(context)),
            None => internal_err!("the plan of a chunk does not read it"),
        }
    }
}

impl fmt::Display for ChunkPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        in_one_line(&self.plan, f)
    }
}

/// Formats a plan in one line, each operator before its inputs.
fn in_one_line(plan: &Plan, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{}", displayable(plan.as_ref()).one_line().to_string().trim_end())?;
    match plan.children().as_slice() {
        [] => Ok(()),
        &[input] => {
            write!(f, " <- ")?;
            in_one_line(input, f)
        }
        inputs => {
            for (index, input) in inputs.iter().enumerate() {
                write!(f, "{}", if index == 0 { " <- (" } else { "; " })?;
                in_one_line(input, f)?;
            }
            write!(f, ")")
        }
    }
}

/// Replaces some leaves of a plan.
fn with_leaves(
    plan: &Plan,
    replace: &mut impl FnMut(&LeafExec) -> Option<Option<Plan>>,
) -> Result<Plan> {
    match plan.downcast_ref::<LeafExec>().and_then(&mut *replace) {
        Some(Some(input)) => return Ok(input),
        Some(None) => return internal_err!("a leaf without an input"),
        None => {}
    }
    let children = plan.children().into_iter().map(|child| with_leaves(child, replace));
    let children = children.collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(Arc::clone(plan).reset_state()?, children)
}

/// Finds the joins that have rows of the chunk on one side only. A join comes before the joins above it.
fn find_collecting<'a>(plan: &'a Plan, found: &mut Vec<&'a Plan>) {
    let mut reads_chunk = Vec::new();
    for child in plan.children() {
        find_collecting(child, found);
        let mut schemas = Vec::new();
        find_leaves(child, &mut schemas);
        reads_chunk.push(!schemas.is_empty());
    }
    if reads_chunk.contains(&true) && reads_chunk.contains(&false) {
        found.push(plan);
    }
}

/// Collects the schemas of the leaves of a plan, from left to right.
fn find_leaves(plan: &Plan, schemas: &mut Vec<SchemaRef>) {
    if plan.is::<LeafExec>() {
        schemas.push(plan.schema());
    }
    plan.children().into_iter().for_each(|child| find_leaves(child, schemas));
}

/// The plan over these rows, or `None` if it does not read them.
fn with_inputs(
    plan: &Plan,
    inputs: &mut impl Iterator<Item = SendableRecordBatchStream>,
) -> Result<Option<Plan>> {
    if let Some(leaf) = plan.downcast_ref::<LeafExec>() {
        return match inputs.next() {
            Some(input) => Ok(Some(Arc::new(leaf.with_rows(input)))),
            None => internal_err!("a leaf without an input"),
        };
    }
    let children = plan.children().into_iter().map(|child| with_inputs(child, inputs));
    let changed = children.collect::<Result<Vec<_>>>()?;
    if changed.iter().all(Option::is_none) {
        return Ok(None);
    }
    // A join that has collected rows of this chunk only must not keep them for the next chunk.
    let keeps_state = changed.iter().any(Option::is_none);
    let plan = if keeps_state { Arc::clone(plan) } else { Arc::clone(plan).reset_state()? };
    let children = changed.into_iter().zip(plan.children());
    let children = children.map(|(changed, child)| changed.unwrap_or_else(|| Arc::clone(child)));
    let (children, keep) =
        (children.collect(), ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep));
    plan.replace_children(children, keep).map(Some)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use datafusion::arrow::array::{Int64Array, RecordBatch};
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::{JoinType, NullEquality};
    use datafusion::physical_expr::expressions::Column;
    use datafusion::physical_plan::ExecutionPlan;
    use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};

    use super::*;

    /// One row, with a count of how often it was read.
    #[derive(Debug, Default)]
    struct CountedRow(Arc<AtomicUsize>);

    static SCHEMA: LazyLock<SchemaRef> =
        LazyLock::new(|| Arc::new(Schema::new(vec![Field::new("key", DataType::Int64, false)])));

    fn schema() -> SchemaRef {
        Arc::clone(&SCHEMA)
    }

    fn row() -> SendableRecordBatchStream {
        let row = RecordBatch::try_new(schema(), vec![Arc::new(Int64Array::from(vec![7]))]);
        let row = futures::stream::once(std::future::ready(Ok(row.unwrap())));
        Box::pin(RecordBatchStreamAdapter::new(schema(), row))
    }

    impl PartitionStream for CountedRow {
        fn schema(&self) -> &SchemaRef {
            &SCHEMA
        }

        fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
            let count = Arc::clone(&self.0);
            let counted = row().inspect_ok(move |_| _ = count.fetch_add(1, Ordering::SeqCst));
            Box::pin(RecordBatchStreamAdapter::new(schema(), counted))
        }
    }

    fn join(left: Plan, right: Plan) -> Plan {
        let key = || Arc::new(Column::new("key", 0)) as _;
        let join = HashJoinExec::try_new(
            left,
            right,
            vec![(key(), key())],
            None,
            &JoinType::Inner,
            Some(vec![0]),
            PartitionMode::CollectLeft,
            NullEquality::NullEqualsNothing,
            false,
        );
        Arc::new(join.unwrap())
    }

    #[tokio::test]
    async fn each_join_collects_once_and_before_there_are_rows_of_chunks() {
        let chunk = || {
            let properties = Arc::clone(LeafExec::collected(schema()).properties());
            Arc::new(LeafExec::of_chunks("t", properties)) as _
        };
        let collected = || Arc::new(LeafExec::collected(schema())) as _;
        // The last join does not read the first one, because its other side is empty.
        let plan = join(chunk(), join(collected(), join(collected(), chunk())));
        let rows = [CountedRow::default(), CountedRow::default()];
        let counts = rows.each_ref().map(|row| Arc::clone(&row.0));
        let inputs = rows.map(|row| {
            let rows = vec![Arc::new(row) as _];
            let plan = StreamingTableExec::try_new(schema(), rows, None, [], false, None);
            Arc::new(plan.unwrap()) as Plan
        });
        let plan = ChunkPlan::new(plan).with_collected(&inputs).unwrap();
        let context = Arc::default();
        let counts = || counts.each_ref().map(|count| count.load(Ordering::SeqCst));
        plan.collect(&context).await.unwrap();
        assert_eq!(counts(), [1, 1]);
        for _ in 0..2 {
            let joined = plan.execute(vec![row(), row()], &context).unwrap();
            let joined: Vec<_> = joined.try_collect().await.unwrap();
            assert_eq!(joined.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
        }
        assert_eq!(counts(), [1, 1]);
    }
}
