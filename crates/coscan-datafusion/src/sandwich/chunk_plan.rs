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
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        in_one_line(&self.plan, f)
    }
}

/// A plan in one line, each operator before its inputs.
fn in_one_line(plan: &Arc<dyn ExecutionPlan>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

fn with_inputs(
    plan: &Arc<dyn ExecutionPlan>,
    inputs: &mut impl Iterator<Item = SendableRecordBatchStream>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(leaf) = plan.downcast_ref::<ChunkInputExec>() {
        let Some(input) = inputs.next() else { return internal_err!("a leaf without an input") };
        let (table, properties) = (Arc::clone(&leaf.table), Arc::clone(&leaf.properties));
        return Ok(Arc::new(ChunkInputExec { table, properties, rows: Mutex::new(Some(input)) }));
    }
    let children = plan.children().into_iter().map(|child| with_inputs(child, inputs));
    let children = children.collect::<Result<Vec<_>>>()?;
    let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    // A join would keep the rows that it has collected.
    Arc::clone(plan).reset_state()?.replace_children(children, keep)
}

/// The rows of a chunk as the leaf of a [`ChunkPlan`].
pub(crate) struct ChunkInputExec {
    /// For EXPLAIN.
    table: Arc<str>,
    /// Of every chunk.
    properties: Arc<PlanProperties>,
    /// Until it is executed.
    rows: Mutex<Option<SendableRecordBatchStream>>,
}

impl ChunkInputExec {
    /// A leaf without rows: [`ChunkPlan::execute`] provides them.
    pub(crate) fn new(table: &str, properties: Arc<PlanProperties>) -> Self {
        Self { table: table.into(), properties, rows: Mutex::new(None) }
    }
}

impl fmt::Debug for ChunkInputExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkInputExec").finish_non_exhaustive()
    }
}

impl DisplayAs for ChunkInputExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rows of {}", self.table)
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
