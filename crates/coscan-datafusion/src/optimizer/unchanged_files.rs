//! Queries that statistics answer read no file. When such a query runs, it checks that the files have not changed since
//! their statistics were read.

use std::sync::Arc;

use coscan_storage::table::{ParquetFile, ParquetTable, ReadError};
use datafusion::common::DataFusionError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::aggregate_statistics::AggregateStatistics;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt, stream};

use crate::execution::exec::SharedScanExec;
use crate::operator::{Operator, OperatorExec, Plan, only_input};
use crate::optimizer::rule::{Changed, Rule, change_down};

/// The maximum number of concurrent requests to stores.
const CHECKS_AT_A_TIME: usize = 32;

/// Puts [`UnchangedFiles`] above answers from statistics. It must run before the engine's rule, and changes the schema
/// like that one, which makes columns nullable.
pub(crate) const UNCHANGED_FILES: Rule = Rule {
    name: "coscan_unchanged_files",
    change: |plan, config| change_down(plan, |plan| checked(plan, config)),
    keeps_schema: false,
};

/// The answer to an aggregation from statistics, if there is one, below a check of its files.
fn checked(plan: &Plan, config: &ConfigOptions) -> Changed {
    if !plan.is::<AggregateExec>() {
        return Ok(None);
    }
    let tables = tables_of(plan)?;
    if tables.is_empty() {
        return Ok(None);
    }
    let answer = AggregateStatistics::new().optimize(Arc::clone(plan), config)?;
    if !answer.children().first().is_some_and(|child| child.is::<PlaceholderRowExec>()) {
        return Ok(None);
    }
    Ok(Some(Arc::new(OperatorExec::above(UnchangedFiles { tables }, vec![answer])?)))
}

/// The shared tables that a plan reads, except those whose files were listed for this query.
fn tables_of(plan: &Plan) -> Result<Vec<Arc<ParquetTable>>> {
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
#[derive(Clone, Debug)]
struct UnchangedFiles {
    tables: Vec<Arc<ParquetTable>>,
}

impl UnchangedFiles {
    /// The files to check.
    fn files(&self) -> Vec<Arc<ParquetFile>> {
        self.tables.iter().flat_map(|table| table.stored_files()).cloned().collect()
    }
}

async fn check(files: Vec<Arc<ParquetFile>>) -> Result<(), ReadError> {
    let checks = stream::iter(files).map(|file| async move { file.file().check().await });
    checks.buffer_unordered(CHECKS_AT_A_TIME).try_collect().await
}

impl Operator for UnchangedFiles {
    const NAME: &'static str = "UnchangedFilesExec";
    const KEEPS_ORDER: bool = true;

    fn properties(&self, inputs: &[Plan]) -> Result<Arc<PlanProperties>> {
        Ok(Arc::clone(only_input(inputs)?.properties()))
    }

    fn fields(&self, _: &[Plan]) -> Vec<String> {
        vec![format!("files={}", self.files().len())]
    }

    fn execute(
        plan: &OperatorExec<Self>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let answer = only_input(&plan.inputs)?.execute(partition, context)?;
        let files = plan.operator.files();
        let checked = async move {
            let unchanged = check(files).await;
            unchanged.map(|()| answer).map_err(|error| DataFusionError::External(Box::new(error)))
        };
        let stream = stream::once(checked).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(plan.schema(), stream)))
    }
}
