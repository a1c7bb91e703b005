//! The leaf of a task.

use std::fmt;
use std::sync::Arc;

use coscan_datafusion::{CoscanOptions, ScanTask, SharedScanExec};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{exec_datafusion_err, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, SchedulingType, apply_expression_roots,
};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, EmptyRecordBatchStream, ExecutionPlan, Partitioning,
    PlanProperties,
};
use futures::{TryStreamExt, stream};
use tokio::sync::OnceCell;
use url::Url;

/// Reads the chunks of one task on the worker that owns them.
///
/// Decoding it reads nothing. When its first partition is polled, it opens the files of its table
/// with the manager of the session that executes it, in the versions that the task names, and becomes a
/// [`SharedScanExec`] of the chunks of the task.
#[derive(Debug)]
pub struct TaskScan {
    task: ScanTask,
    owner: Url,
    properties: Arc<PlanProperties>,
    scan: Arc<OnceCell<Arc<SharedScanExec>>>,
}

impl TaskScan {
    /// A scan of a task, to be executed by its owner.
    ///
    /// # Errors
    /// If the task reads columns that its table does not have.
    pub fn new(task: ScanTask, owner: Url) -> Result<Self> {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(task.schema()?),
            Partitioning::UnknownPartitioning(task.partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = properties.with_scheduling_type(SchedulingType::Cooperative);
        Ok(Self { task, owner, properties: Arc::new(properties), scan: Arc::default() })
    }

    /// The part of the table that it reads.
    #[must_use]
    pub fn task(&self) -> &ScanTask {
        &self.task
    }

    /// The worker that executes it.
    #[must_use]
    pub fn owner(&self) -> &Url {
        &self.owner
    }
}

impl DisplayAs for TaskScan {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (table, owner) = (&self.task.table.name, self.owner.as_str().trim_end_matches('/'));
        if matches!(kind, DisplayFormatType::TreeRender) {
            writeln!(f, "table={table}")?;
            writeln!(f, "owner={owner}")?;
            return writeln!(f, "rows={}", self.task.row_count());
        }
        write!(f, "TaskScan: table={table}, owner={owner}, rows={}", self.task.row_count())?;
        if let Some(scan) = self.scan.get() {
            let (needed, of) = scan.chunk_counts();
            write!(f, ", chunks={needed} of {of}")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for TaskScan {
    fn name(&self) -> &'static str {
        "TaskScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    /// Exposes the dynamic filters, which joins and top-k operators of the same stage update.
    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.task.filters.iter().chain(&self.task.pushed_filters), visit)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(self.task.clone(), self.owner.clone())?))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition >= self.task.partitions {
            return internal_err!("partition {partition} of {}", self.task.partitions);
        }
        let schema = self.schema();
        if self.task.rows.is_empty() {
            return Ok(Box::pin(EmptyRecordBatchStream::new(schema)));
        }
        let coscan = CoscanOptions::of(context.session_config()).ok_or_else(|| {
            exec_datafusion_err!("a task of a distributed query needs a session with coscan")
        })?;
        let (task, scan) = (self.task.clone(), Arc::clone(&self.scan));
        let opened = async move {
            let open = async || coscan.open_task(&task, context.session_config()).await;
            let scan = scan.get_or_try_init(async || open().await.map(Arc::new)).await?;
            scan.execute(partition, context)
        };
        let stream = stream::once(opened).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.scan.get().and_then(|scan| scan.metrics())
    }
}
