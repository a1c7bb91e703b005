//! Joins of tables that are clustered on one key, joint chunk by joint chunk.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, EquivalenceProperties};
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};

use super::chunk_plan::ChunkPlan;
use super::cooperative_join_execution::{IsExecuted, Joining, WholeTables};
use super::joint_chunks::Clustering;
use super::needed::Needed;
use super::output::{one_partition, started_late};
use crate::execution::exec::SharedScanExec;
use crate::execution::metrics::ScanCounts;
use crate::operator::{Operator, OperatorExec, Plan};

/// Joins tables that are clustered on one key, in joint chunks that hold all rows of their keys: the Cooperative Merge
/// Join [CS11 ch. 5]. All tables are one scan of the scheduler, which gives joint chunks in any order, and shares what
/// it reads with the scans of each table.
///
/// A joint chunk is joined by itself, with the memory of one chunk. Its rows go through the engine's hash join: within a
/// chunk, its table stays in the processor's cache. Joins with other, smaller tables may be between: their rows are
/// collected once.
///
/// EXPLAIN shows:
///
/// | field | meaning |
/// |---|---|
/// | `joint_chunks` | the number of joint chunks; statistics rule out some of them when the query runs. EXPLAIN ANALYZE: `none (not clustered)` if rows were found not to be in the order of the key, and the tables were joined as a whole |
/// | `per_chunk` | the operators that each joint chunk goes through, each before its inputs |
///
/// EXPLAIN ANALYZE adds the figures of a scan, see [`SharedScanExec`].
pub(crate) type CooperativeJoinExec = OperatorExec<CooperativeJoin>;

/// The part of [`CooperativeJoinExec`] that other operators do not have. Its inputs are a [`SharedScanExec`] in any
/// order for each of the scans, followed by the plans of one partition that joins collect once, from left to right.
#[derive(Clone, Debug)]
pub(crate) struct CooperativeJoin {
    scan_count: usize,
    clustering: Arc<Clustering>,
    needed: Arc<Needed>,
    filling: ChunkPlan,
    properties: Arc<PlanProperties>,
    /// Whether an execution found that the tables are not clustered, and joined them as a whole.
    was_whole: IsExecuted,
}

impl CooperativeJoin {
    /// Creates the join from a plan whose leaves ([`LeafExec`](super::leaf::LeafExec)) stand for the scans and for the
    /// plans to collect, from left to right.
    pub(crate) fn above(
        plan: Plan,
        scans: Vec<SharedScanExec>,
        collected: Vec<Plan>,
        clustering: Clustering,
        needed: Needed,
    ) -> Result<CooperativeJoinExec> {
        let operator = Self {
            scan_count: scans.len(),
            clustering: Arc::new(clustering),
            needed: Arc::new(needed),
            properties: one_partition(EquivalenceProperties::new(plan.schema())),
            filling: ChunkPlan::new(plan),
            was_whole: IsExecuted::default(),
        };
        let scans = scans.into_iter().map(|scan| Arc::new(scan) as _);
        OperatorExec::above(operator, scans.chain(collected).collect())
    }

    fn scans(&self, inputs: &[Plan]) -> Result<Vec<SharedScanExec>> {
        let scans = inputs.iter().take(self.scan_count);
        let scans: Option<Vec<_>> = scans.map(|scan| scan.downcast_ref().cloned()).collect();
        match scans {
            Some(scans) if scans.len() == self.scan_count => Ok(scans),
            _ => internal_err!("the first inputs of CooperativeJoinExec are shared scans"),
        }
    }
}

impl Operator for CooperativeJoin {
    const NAME: &'static str = "CooperativeJoinExec";

    fn properties(&self, inputs: &[Plan]) -> Result<Arc<PlanProperties>> {
        self.scans(inputs)?;
        Ok(Arc::clone(&self.properties))
    }

    fn fields(&self, _: &[Plan]) -> Vec<String> {
        let chunks = match self.was_whole.0.load(Ordering::Relaxed) {
            true => "none (not clustered)".to_owned(),
            false => self.clustering.joint_chunks().to_string(),
        };
        vec![format!("joint_chunks={chunks}"), format!("per_chunk=({})", self.filling)]
    }

    fn distributions(&self, inputs: &[Plan]) -> Vec<Distribution> {
        let mut required = vec![Distribution::UnspecifiedDistribution; self.scan_count];
        required.resize(inputs.len(), Distribution::SinglePartition);
        required
    }

    fn execute(
        plan: &CooperativeJoinExec,
        _: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Self { clustering, needed, filling, was_whole, .. } = &plan.operator;
        let (tables, collected) = plan.inputs.split_at(plan.operator.scan_count);
        let whole = WholeTables {
            filling: filling.clone(),
            tables: tables.to_vec(),
            collected: collected.to_vec(),
            is_executed: Arc::clone(&was_whole.0),
        };
        let joining = Joining {
            whole,
            scans: plan.operator.scans(&plan.inputs)?,
            clustering: Arc::clone(clustering),
            needed: Arc::clone(needed),
            filling: filling.with_collected(collected)?,
            has_collected: !collected.is_empty(),
            context,
            counts: ScanCounts::new(&plan.metrics),
        };
        Ok(started_late(plan, Arc::new(joining).start(plan.schema())))
    }
}
