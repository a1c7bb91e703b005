//! Queries that statistics answer read no file. When such a query runs, it checks that the files have not changed since
//! their statistics were read.

use std::fmt;
use std::sync::Arc;

use coscan_storage::table::{ParquetFile, ParquetTable, ReadError};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::aggregate_statistics::AggregateStatistics;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::{StreamExt, TryStreamExt, stream};

use crate::execution::exec::SharedScanExec;

/// The maximum number of concurrent requests to stores.
const CHECKS_AT_A_TIME: usize = 32;

/// Puts [`UnchangedFilesExec`] above answers from statistics. It must run before the engine's rule.
#[derive(Debug)]
pub(crate) struct UnchangedFiles;

impl UnchangedFiles {
    pub(crate) const NAME: &'static str = "coscan_unchanged_files";
}

impl PhysicalOptimizerRule for UnchangedFiles {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let answer = |plan: Arc<dyn ExecutionPlan>| {
            let tables = match plan.downcast_ref::<AggregateExec>() {
                Some(_) => tables_of(&plan)?,
                None => Vec::new(),
            };
            if tables.is_empty() {
                return Ok(Transformed::no(plan));
            }
            let answered = AggregateStatistics::new().optimize(Arc::clone(&plan), config)?;
            let is_answered = answered
                .children()
                .first()
                .is_some_and(|child| child.downcast_ref::<PlaceholderRowExec>().is_some());
            if !is_answered {
                return Ok(Transformed::no(plan));
            }
            let checked = Arc::new(UnchangedFilesExec { answer: answered, tables });
            Ok(Transformed::new(checked, true, TreeNodeRecursion::Jump))
        };
        plan.transform_down(answer).data()
    }

    fn name(&self) -> &str {
        Self::NAME
    }

    /// Returns false, like the engine's rule, which makes columns nullable.
    fn schema_check(&self) -> bool {
        false
    }
}

/// The shared tables that a plan reads, except those whose files were listed for this query.
fn tables_of(plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<Arc<ParquetTable>>> {
    let mut tables = Vec::new();
    plan.apply(|plan| {
        if let Some(scan) = plan.downcast_ref::<SharedScanExec>()
            && !scan.is_listed_by_query()
        {
            tables.push(Arc::clone(scan.table().table()));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(tables)
}

/// Passes an answer on if the files that it was computed from have not changed.
#[derive(Debug)]
struct UnchangedFilesExec {
    answer: Arc<dyn ExecutionPlan>,
    tables: Vec<Arc<ParquetTable>>,
}

impl UnchangedFilesExec {
    /// Creates the operator above another answer.
    fn above(&self, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(answer), true) => Ok(Arc::new(Self { answer, tables: self.tables.clone() })),
            _ => internal_err!("UnchangedFilesExec has one child"),
        }
    }

    /// The files to check.
    fn files(&self) -> Vec<Arc<ParquetFile>> {
        self.tables.iter().flat_map(|table| table.parquet_files()).cloned().collect()
    }
}

async fn check(files: Vec<Arc<ParquetFile>>) -> Result<(), ReadError> {
    let checks = stream::iter(files).map(|file| async move { file.file().check().await });
    checks.buffer_unordered(CHECKS_AT_A_TIME).try_collect().await
}

impl DisplayAs for UnchangedFilesExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.files().len();
        match kind {
            DisplayFormatType::TreeRender => writeln!(f, "files={files}"),
            _ => write!(f, "UnchangedFilesExec: files={files}"),
        }
    }
}

impl ExecutionPlan for UnchangedFilesExec {
    fn name(&self) -> &str {
        "UnchangedFilesExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.answer.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.answer]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
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
        self.above(children)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.above(children)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let answer = self.answer.execute(partition, context)?;
        let files = self.files();
        let checked = async move {
            let unchanged = check(files).await;
            unchanged.map(|()| answer).map_err(|error| DataFusionError::External(Box::new(error)))
        };
        let stream = stream::once(checked).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }
}
