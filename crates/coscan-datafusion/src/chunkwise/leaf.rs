//! The leaves of a plan that is executed for one chunk after another.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::output::one_partition;
use crate::operator::Plan;

/// A leaf of a [`ChunkPlan`](super::chunk_plan::ChunkPlan): rows that are provided before it is executed.
pub(crate) struct LeafExec {
    /// The table whose chunks it reads, for EXPLAIN. `None` if it stands for a plan that a join collects once.
    table: Option<Arc<str>>,
    properties: Arc<PlanProperties>,
    /// `None` once it is executed.
    rows: Mutex<Option<SendableRecordBatchStream>>,
}

impl LeafExec {
    /// Creates a leaf for the rows of a chunk of a table. Every chunk has these properties.
    pub(crate) fn of_chunks(table: &str, properties: Arc<PlanProperties>) -> Self {
        Self { table: Some(table.into()), properties, rows: Mutex::default() }
    }

    /// Creates a leaf for rows that are the same for all chunks. It is replaced by a plan of this schema before the
    /// execution.
    pub(crate) fn collected(schema: SchemaRef) -> Self {
        let properties = one_partition(EquivalenceProperties::new(schema));
        Self { table: None, properties, rows: Mutex::default() }
    }

    /// Creates a leaf for rows that come once.
    pub(crate) fn of_rows(schema: SchemaRef, rows: SendableRecordBatchStream) -> Self {
        Self::collected(schema).with_rows(rows)
    }

    pub(super) fn is_collected(&self) -> bool {
        self.table.is_none()
    }

    /// Returns a copy of the leaf with the rows of a chunk.
    pub(super) fn with_rows(&self, rows: SendableRecordBatchStream) -> Self {
        let (table, properties) = (self.table.clone(), Arc::clone(&self.properties));
        Self { table, properties, rows: Mutex::new(Some(rows)) }
    }
}

impl fmt::Debug for LeafExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeafExec").field("table", &self.table).finish_non_exhaustive()
    }
}

impl DisplayAs for LeafExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.table {
            Some(table) => write!(f, "rows of {table}"),
            None => write!(f, "collected rows"),
        }
    }
}

impl ExecutionPlan for LeafExec {
    fn name(&self) -> &str {
        "LeafExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Plan> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Plan>) -> Result<Plan> {
        Ok(self)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        match self.rows.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(rows) => Ok(rows),
            None => internal_err!("a leaf without rows, or whose rows were read"),
        }
    }
}
