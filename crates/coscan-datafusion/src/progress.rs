//! The progress of a query.

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;

use crate::chunkwise::cooperative_join::CooperativeJoinExec;
use crate::chunkwise::in_order::InOrderExec;
use crate::chunkwise::shared_aggregate::{CHUNKS_FROM_RESULTS, SharedAggregateExec};
use crate::execution::exec::SharedScanExec;
use crate::execution::metrics::{CHUNKS_DELIVERED, CHUNKS_NEEDED, CHUNKS_PRUNED_DYNAMIC_FILTER};

/// The chunks that the scans of a query are done with and need, in all executions so far. A scan that has not started, such as
/// one that waits for the other side of a join, is not known yet. Scans that the engine itself executes have no chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkProgress {
    /// Chunks that were delivered, ruled out while the query ran, or not needed since their results were there.
    pub done: usize,
    /// Chunks that were needed when the scans started.
    pub needed: usize,
}

/// The counters of a plan's scans. They do not hold the plan, which may hold as much memory as its joins.
#[derive(Clone, Debug, Default)]
pub struct ScanCounters(Vec<ExecutionPlanMetricsSet>);

impl ScanCounters {
    /// The counters of a plan, before or while it is executed.
    #[must_use]
    pub fn of(plan: &dyn ExecutionPlan) -> Self {
        let mut counters = Self::default();
        counters.add(plan);
        counters
    }

    fn add(&mut self, plan: &dyn ExecutionPlan) {
        let scan = plan.downcast_ref::<SharedScanExec>().map(SharedScanExec::counters);
        let join = plan.downcast_ref::<CooperativeJoinExec>().map(|join| &join.metrics);
        let in_order = plan.downcast_ref::<InOrderExec>().map(|in_order| &in_order.metrics);
        let shared = plan.downcast_ref::<SharedAggregateExec>().map(|shared| &shared.metrics);
        self.0.extend([scan, join, in_order, shared].into_iter().flatten().cloned());
        plan.children().into_iter().for_each(|input| self.add(input.as_ref()));
    }

    /// The progress so far.
    #[must_use]
    pub fn progress(&self) -> ChunkProgress {
        let (mut done, mut needed) = (0, 0);
        for counters in &self.0 {
            let metrics = counters.clone_inner();
            let count = |name| metrics.sum_by_name(name).map_or(0, |count| count.as_usize());
            needed += count(CHUNKS_NEEDED);
            done += count(CHUNKS_DELIVERED)
                + count(CHUNKS_PRUNED_DYNAMIC_FILTER)
                + count(CHUNKS_FROM_RESULTS);
        }
        // A chunk that was given back is handed out again.
        ChunkProgress { done: done.min(needed), needed }
    }
}
