//! Joins of tables that are clustered on one key, joint chunk by joint chunk.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::{StreamExt as _, TryStreamExt, stream};

use super::chunk_plan::ChunkPlan;
use super::clustering::Clustering;
use super::joining::{Joining, WholeTables};
use super::needed::Needed;
use super::output::one_partition;
use crate::execution::exec::SharedScanExec;
use crate::execution::metrics::ScanCounts;

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
#[derive(Debug)]
pub(crate) struct CooperativeJoinExec {
    /// A [`SharedScanExec`] in any order for each of the scans, followed by the plans of one partition that joins
    /// collect once, from left to right.
    children: Vec<Arc<dyn ExecutionPlan>>,
    scan_count: usize,
    clustering: Arc<Clustering>,
    needed: Arc<Needed>,
    filling: ChunkPlan,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    /// Whether an execution found that the tables are not clustered, and joined them as a whole.
    was_whole: Arc<AtomicBool>,
}

impl CooperativeJoinExec {
    /// Creates the join from a plan whose leaves ([`LeafExec`](super::leaf::LeafExec)) stand for the scans and for the
    /// plans to collect, from left to right.
    pub(crate) fn new(
        plan: Arc<dyn ExecutionPlan>,
        scans: Vec<Arc<dyn ExecutionPlan>>,
        collected: Vec<Arc<dyn ExecutionPlan>>,
        clustering: Clustering,
        needed: Needed,
    ) -> Self {
        let equivalence = EquivalenceProperties::new(plan.schema());
        Self {
            scan_count: scans.len(),
            children: scans.into_iter().chain(collected).collect(),
            clustering: Arc::new(clustering),
            needed: Arc::new(needed),
            filling: ChunkPlan::new(plan),
            properties: Arc::new(one_partition(equivalence, EmissionType::Incremental)),
            metrics: ExecutionPlanMetricsSet::new(),
            was_whole: Arc::default(),
        }
    }

    fn with_children(
        &self,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let changed = Self {
            children,
            scan_count: self.scan_count,
            clustering: Arc::clone(&self.clustering),
            needed: Arc::clone(&self.needed),
            filling: self.filling.clone(),
            properties: Arc::clone(&self.properties),
            metrics: ExecutionPlanMetricsSet::new(),
            was_whole: Arc::default(),
        };
        changed.scans()?;
        Ok(Arc::new(changed))
    }

    fn scans(&self) -> Result<Vec<&SharedScanExec>> {
        let scans = self.children.iter().take(self.scan_count);
        let scans: Option<Vec<_>> = scans.map(|scan| scan.downcast_ref()).collect();
        match scans {
            Some(scans) if scans.len() == self.scan_count => Ok(scans),
            _ => internal_err!("the first children of CooperativeJoinExec are shared scans"),
        }
    }

    /// The state of the join that its tasks share.
    fn joining(&self, context: &Arc<TaskContext>) -> Result<Joining> {
        let (tables, collected) = self.children.split_at(self.scan_count);
        let whole = WholeTables {
            filling: self.filling.clone(),
            tables: tables.to_vec(),
            collected: collected.to_vec(),
            is_executed: Arc::clone(&self.was_whole),
        };
        Ok(Joining {
            whole,
            scans: self.scans()?.into_iter().cloned().collect(),
            clustering: Arc::clone(&self.clustering),
            needed: Arc::clone(&self.needed),
            filling: self.filling.with_collected(collected)?,
            has_collected: !collected.is_empty(),
            context: Arc::clone(context),
            counts: ScanCounts::new(&self.metrics),
        })
    }
}

impl DisplayAs for CooperativeJoinExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chunks = match self.was_whole.load(Ordering::Relaxed) {
            true => "none (not clustered)".to_owned(),
            false => self.clustering.joint_chunks().to_string(),
        };
        match kind {
            DisplayFormatType::TreeRender => writeln!(f, "joint_chunks={chunks}"),
            _ => write!(
                f,
                "CooperativeJoinExec: joint_chunks={chunks}, per_chunk=({})",
                self.filling
            ),
        }
    }
}

impl ExecutionPlan for CooperativeJoinExec {
    fn name(&self) -> &str {
        "CooperativeJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.children.iter().collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let any = vec![Distribution::UnspecifiedDistribution; self.scan_count];
        let collected = vec![Distribution::SinglePartition; self.children.len() - self.scan_count];
        InputDistributionRequirements::new(any.into_iter().chain(collected).collect())
    }

    /// False, since the join has a task for each of the session's target partitions.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.children.len()]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.with_children(children)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.with_children(children)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition > 0 {
            return internal_err!("partition {partition} of 1");
        }
        let joining = Arc::new(self.joining(&context)?);
        let schema = self.schema();
        let joined = stream::once(joining.start(schema)).try_flatten().boxed();
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let joined = joined.inspect_ok(move |batch| {
            batch.record_output(&baseline);
        });
        let joined = RecordBatchStreamAdapter::new(self.schema(), joined);
        Ok(Box::pin(cooperative(joined)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
