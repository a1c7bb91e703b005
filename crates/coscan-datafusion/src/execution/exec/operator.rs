//! A shared scan as an operator of the engine.

use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::apply_expression_roots;
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{
    ExecutionPlan, PlanProperties, SortOrderPushdownResult, StatisticsArgs,
};

use super::SharedScanExec;
use crate::execution::stream::{Output, SharedScanStream};
use crate::operator::Plan;

impl ExecutionPlan for SharedScanExec {
    fn name(&self) -> &str {
        "SharedScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Plan> {
        Vec::new()
    }

    /// Exposes the dynamic filters. Producers update only those that they find here.
    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.filters.iter().chain(&self.pushed_filters), visit)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Plan>) -> Result<Plan> {
        Ok(self)
    }

    fn reset_state(self: Arc<Self>) -> Result<Plan> {
        Ok(Arc::new(self.as_ref().clone()))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition >= self.partition_count() {
            return internal_err!("partition {partition} of {}", self.partition_count());
        }
        let baseline = self.baseline(partition);
        if let Some(rows) = self.first_rows() {
            return self.execute_first_rows(partition, rows, &context, baseline);
        }
        let batch_rows = context.session_config().batch_size();
        let output = Output {
            schema: self.schema(),
            filter: self.row_filter(batch_rows)?,
            fetch: self.fetch,
            batch_rows,
        };
        let execution = self.executions(&context).execute(partition);
        let stream = SharedScanStream::new(execution, output, baseline);
        Ok(Box::pin(cooperative(stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.state.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        arguments: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let is_whole = arguments.partition().is_none() || self.partition_count() == 1;
        if !is_whole || !self.settings.has_statistics {
            return Ok(Arc::new(Statistics::new_unknown(&self.schema())));
        }
        let table = self.source.statistics.as_ref().clone();
        let gives_all = self.filters.is_empty() && self.pushed_filters.is_empty();
        let table = match gives_all || table.num_rows == Precision::Exact(0) {
            true => table,
            false => table.to_inexact(),
        };
        Ok(Arc::new(self.output_projection().project_statistics(table, &self.schema())?))
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<Plan> {
        Some(Arc::new(self.clone().with_limit(fetch)))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    /// Absorbs projections that only drop or reorder columns.
    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<Plan>> {
        Ok(self.with_projection(projection)?.map(|scan| Arc::new(scan) as _))
    }

    /// Reads the chunks that may hold the rows of a top-k first.
    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
    ) -> Result<SortOrderPushdownResult<Plan>> {
        Ok(match self.with_first_by(order)? {
            Some(scan) => SortOrderPushdownResult::Inexact { inner: Arc::new(scan) },
            None => SortOrderPushdownResult::Unsupported,
        })
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Plan>> {
        self.take_filters(phase, result)
    }
}
