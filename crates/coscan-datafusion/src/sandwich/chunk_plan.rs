//! A plan that is executed for one chunk after another.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
    displayable,
};

/// A plan of one partition whose leaves are [`ChunkInputExec`]. Each execution has inputs and metrics of its own.
#[derive(Clone, Debug)]
pub(super) struct ChunkPlan {
    plan: Arc<dyn ExecutionPlan>,
}

impl ChunkPlan {
    pub(super) fn new(plan: Arc<dyn ExecutionPlan>) -> Self {
        Self { plan }
    }

    pub(super) fn plan(&self) -> &Arc<dyn ExecutionPlan> {
        &self.plan
    }

    /// The plan over these rows, an input for each leaf, from left to right.
    pub(super) fn execute(
        &self,
        inputs: Vec<SendableRecordBatchStream>,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let plan = with_inputs(&self.plan, &mut inputs.into_iter())?;
        plan.execute(0, Arc::clone(context))
    }
}

impl fmt::Display for ChunkPlan {
    /// Its operators in one line, from the last to the first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut plan = &self.plan;
        loop {
            write!(f, "{}", displayable(plan.as_ref()).one_line().to_string().trim_end())?;
            match plan.children().as_slice() {
                &[input] if !input.is::<ChunkInputExec>() => plan = input,
                _ => return Ok(()),
            }
            write!(f, " <- ")?;
        }
    }
}

fn with_inputs(
    plan: &Arc<dyn ExecutionPlan>,
    inputs: &mut impl Iterator<Item = SendableRecordBatchStream>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(leaf) = plan.downcast_ref::<ChunkInputExec>() {
        let Some(input) = inputs.next() else { return internal_err!("a leaf without an input") };
        let properties = Arc::clone(&leaf.properties);
        return Ok(Arc::new(ChunkInputExec { properties, rows: Mutex::new(Some(input)) }));
    }
    let children = plan.children().into_iter().map(|child| with_inputs(child, inputs));
    let children = children.collect::<Result<Vec<_>>>()?;
    let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    Arc::clone(plan).replace_children(children, keep)
}

/// The rows of a chunk as the leaf of a [`ChunkPlan`].
pub(super) struct ChunkInputExec {
    /// Of every chunk.
    properties: Arc<PlanProperties>,
    /// Until it is executed.
    rows: Mutex<Option<SendableRecordBatchStream>>,
}

impl ChunkInputExec {
    /// A leaf without rows: [`ChunkPlan::execute`] provides them.
    pub(super) fn new(properties: Arc<PlanProperties>) -> Self {
        Self { properties, rows: Mutex::new(None) }
    }
}

impl fmt::Debug for ChunkInputExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkInputExec").finish_non_exhaustive()
    }
}

impl DisplayAs for ChunkInputExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkInputExec")
    }
}

impl ExecutionPlan for ChunkInputExec {
    fn name(&self) -> &str {
        "ChunkInputExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        match self.rows.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(rows) => Ok(rows),
            None => internal_err!("the rows of a chunk can be read once"),
        }
    }
}
