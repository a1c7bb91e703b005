//! Plans over a table in its order, whose chunks several tasks work on.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::PlanProperties;
use datafusion::physical_plan::metrics::MetricBuilder;

use super::chunk_plan::ChunkPlan;
use super::in_order_execution::Execution;
use super::output::{one_partition, only_scan, started_late};
use crate::execution::exec::SharedScanExec;
use crate::operator::{Operator, OperatorExec, Plan};

/// Filters and projections over a table in its order, for which several tasks each work on a chunk. The rows are
/// returned chunk by chunk, so that the output is in the table's order without a merge.
///
/// One task has the chunk whose turn it is. The others work ahead as long as there is memory for their rows. While
/// memory is short, they return their chunks, so that a paused query holds no more than a scan of one partition.
///
/// EXPLAIN shows:
///
/// | field | meaning |
/// |---|---|
/// | `tasks` | the number of chunks that are worked on at the same time |
/// | `per_chunk` | the operators that each chunk goes through, from the last to the first |
///
/// EXPLAIN ANALYZE adds `chunks_given_back`, the chunks that were given back and worked on again.
pub(crate) type InOrderExec = OperatorExec<InOrder>;

/// The part of [`InOrderExec`] that other operators do not have. Its input is a [`SharedScanExec`] in order.
#[derive(Clone, Debug)]
pub(crate) struct InOrder {
    tasks: usize,
    filling: ChunkPlan,
    properties: Arc<PlanProperties>,
}

impl InOrder {
    /// Creates the operator from a plan that keeps the order of its leaf, a [`LeafExec`](super::leaf::LeafExec) with
    /// the rows of this scan.
    pub(crate) fn above(plan: Plan, scan: SharedScanExec, tasks: usize) -> Result<InOrderExec> {
        let properties = one_partition(plan.properties().eq_properties.clone());
        let operator = Self { tasks, filling: ChunkPlan::new(plan), properties };
        OperatorExec::above(operator, vec![Arc::new(scan)])
    }
}

impl Operator for InOrder {
    const NAME: &'static str = "InOrderExec";

    fn properties(&self, inputs: &[Plan]) -> Result<Arc<PlanProperties>> {
        only_scan(inputs)?;
        Ok(Arc::clone(&self.properties))
    }

    fn fields(&self, _: &[Plan]) -> Vec<String> {
        vec![format!("tasks={}", self.tasks), format!("per_chunk=({})", self.filling)]
    }

    fn execute(
        plan: &InOrderExec,
        _: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Self { tasks, filling, .. } = &plan.operator;
        let given_back = MetricBuilder::new(&plan.metrics).global_counter("chunks_given_back");
        let scan = only_scan(&plan.inputs)?;
        let in_order = Execution::new(scan, *tasks, filling.clone(), given_back, context);
        Ok(started_late(plan, async move { in_order.start() }))
    }
}
