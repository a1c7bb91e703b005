//! A plan that is executed for one chunk after another.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, EmissionType, replace_children_if_necessary,
};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
    displayable,
};

use super::output::one_partition;

/// A plan of one partition over the rows of a chunk ([`ChunkInputExec`]) and, for joins, over rows that are the same for
/// all chunks. Each execution has inputs and metrics of its own.
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

    /// The same with other plans in place of its [`CollectedInputExec`]s, from left to right. Joins collect them once for
    /// all executions.
    pub(super) fn with_collected(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Self> {
        Ok(Self { plan: with_collected(&self.plan, &mut inputs.iter())? })
    }

    /// The plan over these rows, an input for each chunk leaf, from left to right.
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

fn with_collected<'a>(
    plan: &Arc<dyn ExecutionPlan>,
    inputs: &mut impl Iterator<Item = &'a Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.is::<CollectedInputExec>() {
        return match inputs.next() {
            Some(input) => Ok(Arc::clone(input)),
            None => internal_err!("a leaf without an input"),
        };
    }
    let children = plan.children().into_iter().map(|child| with_collected(child, inputs));
    let children = children.collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(Arc::clone(plan).reset_state()?, children)
}

/// The plan over these rows; `None` if it does not read them.
fn with_inputs(
    plan: &Arc<dyn ExecutionPlan>,
    inputs: &mut impl Iterator<Item = SendableRecordBatchStream>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(leaf) = plan.downcast_ref::<ChunkInputExec>() {
        let Some(input) = inputs.next() else { return internal_err!("a leaf without an input") };
        let (table, properties) = (Arc::clone(&leaf.table), Arc::clone(&leaf.properties));
        let rows = Mutex::new(Some(input));
        return Ok(Some(Arc::new(ChunkInputExec { table, properties, rows })));
    }
    let children = plan.children().into_iter().map(|child| with_inputs(child, inputs));
    let changed = children.collect::<Result<Vec<_>>>()?;
    if changed.iter().all(Option::is_none) {
        return Ok(None);
    }
    // A join that has collected rows of this chunk only must not keep them for the next.
    let keeps_state = changed.iter().any(Option::is_none);
    let plan = if keeps_state { Arc::clone(plan) } else { Arc::clone(plan).reset_state()? };
    let children = changed.into_iter().zip(plan.children());
    let children = children.map(|(changed, child)| changed.unwrap_or_else(|| Arc::clone(child)));
    let (children, keep) =
        (children.collect(), ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep));
    plan.replace_children(children, keep).map(Some)
}

/// The rows of a chunk, a leaf of a [`ChunkPlan`].
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

/// Rows that are the same for all chunks, a leaf of a [`ChunkPlan`]: stands for a plan that a join collects once.
#[derive(Debug)]
pub(crate) struct CollectedInputExec {
    properties: Arc<PlanProperties>,
}

impl CollectedInputExec {
    /// Stands for a plan of this schema.
    pub(crate) fn new(schema: SchemaRef) -> Self {
        let properties =
            one_partition(EquivalenceProperties::new(schema), EmissionType::Incremental);
        Self { properties: Arc::new(properties) }
    }
}

impl DisplayAs for CollectedInputExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "collected rows")
    }
}

impl ExecutionPlan for CollectedInputExec {
    fn name(&self) -> &str {
        "CollectedInputExec"
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
        internal_err!("a plan takes the place of CollectedInputExec before it is executed")
    }
}
