//! A plan that is executed for one chunk after another.

use std::fmt;
use std::sync::Arc;

use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, replace_children_if_necessary,
};
use datafusion::physical_plan::{ExecutionPlan, ReplaceChildrenOptions, displayable};

use super::leaf::LeafExec;

/// A plan of one partition over the rows of a chunk (its [`LeafExec`]s) and, for joins, over rows that are the same for
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

    /// The same with other plans in place of its leaves for collected rows, from left to right. Joins collect them once for
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
    if plan.downcast_ref::<LeafExec>().is_some_and(LeafExec::is_collected) {
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
    // A join that has collected rows of this chunk only must not keep them for the next.
    let keeps_state = changed.iter().any(Option::is_none);
    let plan = if keeps_state { Arc::clone(plan) } else { Arc::clone(plan).reset_state()? };
    let children = changed.into_iter().zip(plan.children());
    let children = children.map(|(changed, child)| changed.unwrap_or_else(|| Arc::clone(child)));
    let (children, keep) =
        (children.collect(), ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep));
    plan.replace_children(children, keep).map(Some)
}
