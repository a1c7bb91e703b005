//! Aggregation of a table by leading columns of its order, chunk by chunk.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};

use super::chunk_rows::ChunkRows;
use super::ordered_aggregate_execution::{Aggregation, ChunkPlans};
use super::output::{one_partition, only_scan, started_late};
use crate::execution::exec::SharedScanExec;
use crate::operator::{Operator, OperatorExec, Plan};

/// Groups the rows of a table by columns that lead its order, and maybe others, without reading it in order.
///
/// The groups of a chunk are complete, except those of its first and its last key: they are returned as soon as the
/// chunk has been read, with the memory of streaming aggregation. Of the first and the last key of each chunk the
/// states of the aggregates are kept, two rows or so, and merged at the end [CS07 §7.2].
///
/// EXPLAIN shows:
///
/// | field | meaning |
/// |---|---|
/// | `key` | the columns of the table's order by which it groups |
/// | `per_chunk` | the operators that each chunk goes through, from the last to the first |
///
/// EXPLAIN ANALYZE adds `chunks`, how often they were started, and `border_groups`, the groups that were kept.
pub(crate) type OrderedAggregateExec = OperatorExec<OrderedAggregate>;

/// The part of [`OrderedAggregateExec`] that other operators do not have. Its input is a [`SharedScanExec`] in any
/// order.
#[derive(Clone, Debug)]
pub(crate) struct OrderedAggregate {
    /// The order columns by which it groups, as indexes into the scan's columns.
    key: Vec<usize>,
    plans: ChunkPlans,
    properties: Arc<PlanProperties>,
}

impl OrderedAggregate {
    /// Creates the operator from an aggregate of the first or the only stage, whose leaf is a
    /// [`LeafExec`](super::leaf::LeafExec).
    pub(crate) fn above(
        aggregate: &AggregateExec,
        scan: SharedScanExec,
        key: Vec<usize>,
    ) -> Result<OrderedAggregateExec> {
        let plans = ChunkPlans::new(aggregate)?;
        let properties = one_partition(EquivalenceProperties::new(plans.inner.plan().schema()));
        OperatorExec::above(Self { key, plans, properties }, vec![Arc::new(scan)])
    }
}

impl Operator for OrderedAggregate {
    const NAME: &'static str = "OrderedAggregateExec";

    fn properties(&self, inputs: &[Plan]) -> Result<Arc<PlanProperties>> {
        only_scan(inputs)?;
        Ok(Arc::clone(&self.properties))
    }

    fn fields(&self, inputs: &[Plan]) -> Vec<String> {
        let schema = inputs[0].schema();
        let key: Vec<_> =
            self.key.iter().map(|&column| schema.field(column).name().as_str()).collect();
        vec![format!("key=[{}]", key.join(", ")), format!("per_chunk=({})", self.plans.inner)]
    }

    fn execute(
        plan: &OrderedAggregateExec,
        _: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (scan, Self { key, plans, .. }) = (only_scan(&plan.inputs)?, &plan.operator);
        let readers = scan.properties().partitioning.partition_count();
        let memory = MemoryConsumer::new(Self::NAME).register(context.memory_pool());
        let (plans, metrics) = (plans.clone(), &plan.metrics);
        let aggregation = Aggregation::new(plans, Arc::clone(&context), memory, readers, metrics);
        let aggregation = Arc::new(aggregation);
        let mut partitions = Vec::with_capacity(readers);
        for partition in 0..readers {
            let (reader, baseline) = scan.execute_chunks(partition, &context)?;
            partitions.push(ChunkRows::new(reader, baseline, scan.schema(), key.clone()));
        }
        let mut output = RecordBatchReceiverStreamBuilder::new(plan.schema(), readers);
        Ok(started_late(plan, async move {
            for rows in partitions {
                output.spawn(Arc::clone(&aggregation).run(rows, output.tx()));
            }
            Ok(output.build())
        }))
    }
}
