//! The scan of a plan.

mod display;
mod execution;
mod pushdown;

use std::sync::{Arc, OnceLock};

use coscan_runtime::SharedTable;
use coscan_runtime::core::Order;
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
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{
    ExecutionPlan, PlanProperties, ReplaceChildrenOptions, SortOrderPushdownResult, StatisticsArgs,
};

use crate::direct::ScanRequirements;
use crate::pruning::NeededChunks;
use crate::ranking::SortKey;
use crate::run::Executions;
use crate::source::{PlanSettings, ScanSource, is_dynamic, properties};
use crate::stream::{Output, SharedScanStream};

/// Reads a shared table: chunks that statistics and Bloom filters do not rule out, in the order in which the scheduler hands them out, or
/// in the table's order if it declares one.
#[derive(Debug)]
pub struct SharedScanExec {
    source: Arc<ScanSource>,
    settings: PlanSettings,
    /// Columns of the output, as indexes into the table's schema.
    projection: Vec<usize>,
    /// On the table's schema. They rule chunks out.
    filters: Vec<Arc<dyn PhysicalExpr>>,
    /// The zones of the table that Bloom filters do not rule out, if there are any.
    zones_left: Option<Arc<[bool]>>,
    /// On the table's schema. Of what it reads, it gives the rows that all of these let through.
    evaluated: Vec<Arc<dyn PhysicalExpr>>,
    /// What the filters that are known before the query runs leave.
    needed: Arc<NeededChunks>,
    /// The most rows that anybody wants of a partition.
    fetch: Option<usize>,
    /// What a sort above it sorts by.
    first_by: Option<SortKey>,
    /// Whether a user said how the rows of its query are dealt out.
    has_partitions_asked_for: bool,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    /// Once a partition was executed.
    executions: OnceLock<Arc<Executions>>,
}

impl SharedScanExec {
    pub(crate) fn new(
        source: Arc<ScanSource>,
        projection: Vec<usize>,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        settings: PlanSettings,
        zones_left: Option<Arc<[bool]>>,
    ) -> Result<Self> {
        let filters = if settings.prunes { filters } else { Vec::new() };
        let known: Vec<_> = filters.iter().filter(|filter| !is_dynamic(filter)).cloned().collect();
        let needed = NeededChunks::find(
            source.table.table(),
            &known,
            settings.in_list_max,
            zones_left.as_deref(),
        );
        // In order, one worker: several that are merged above would each have to hold a chunk before any goes on.
        let partitions = match source.orderings.is_empty() {
            true => settings.partitions_max.min(needed.chunks.len()).max(1),
            false => 1,
        };
        let properties = properties(&source, &projection, partitions)?;
        Ok(Self {
            source,
            settings,
            projection,
            filters,
            zones_left,
            evaluated: Vec::new(),
            needed: Arc::new(needed),
            fetch: None,
            first_by: None,
            has_partitions_asked_for: false,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            executions: OnceLock::new(),
        })
    }

    /// The same, not run yet.
    fn fresh(&self) -> Self {
        Self {
            source: Arc::clone(&self.source),
            settings: self.settings,
            projection: self.projection.clone(),
            filters: self.filters.clone(),
            zones_left: self.zones_left.clone(),
            evaluated: self.evaluated.clone(),
            needed: Arc::clone(&self.needed),
            fetch: self.fetch,
            first_by: self.first_by.clone(),
            has_partitions_asked_for: self.has_partitions_asked_for,
            properties: Arc::clone(&self.properties),
            metrics: ExecutionPlanMetricsSet::new(),
            executions: OnceLock::new(),
        }
    }

    pub(crate) fn with_limit(self, fetch: Option<usize>) -> Self {
        Self { fetch, ..self }
    }

    pub(crate) fn with_partitions_asked_for(&self) -> Self {
        Self { has_partitions_asked_for: true, ..self.fresh() }
    }

    pub(crate) fn has_partitions_asked_for(&self) -> bool {
        self.has_partitions_asked_for
    }

    /// What it asks for.
    pub(crate) fn requirements(&self) -> ScanRequirements<'_> {
        ScanRequirements {
            projection: &self.projection,
            filters: &self.filters,
            needed: &self.needed,
            fetch: self.fetch,
        }
    }

    /// The table that it reads.
    #[must_use]
    pub fn table(&self) -> &SharedTable {
        &self.source.table
    }

    /// Whether its files were listed for the query that it is of.
    pub(crate) fn is_listed_by_query(&self) -> bool {
        self.source.listed_by_query
    }

    fn order(&self) -> Order {
        if self.source.orderings.is_empty() { Order::Any } else { Order::InOrder }
    }

    fn partition_count(&self) -> usize {
        self.properties.partitioning.partition_count()
    }
}

impl ExecutionPlan for SharedScanExec {
    fn name(&self) -> &str {
        "SharedScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    /// Dynamic filters are filled in only if their producers find them here.
    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.filters.iter().chain(&self.evaluated), visit)
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

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.fresh()))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition >= self.partition_count() {
            return internal_err!("partition {partition} of {}", self.partition_count());
        }
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        if let Some(rows) = self.first_rows() {
            return self.execute_first_rows(partition, rows, baseline);
        }
        let batch_rows = context.session_config().batch_size();
        let output = Output {
            schema: self.schema(),
            filter: self.row_filter(batch_rows)?,
            fetch: self.fetch,
            batch_rows,
        };
        let execution = self.executions().execute(partition);
        let stream = SharedScanStream::new(execution, output, baseline);
        Ok(Box::pin(cooperative(stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
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
        let gives_all = self.filters.is_empty() && self.evaluated.is_empty();
        let table = match gives_all || table.num_rows == Precision::Exact(0) {
            true => table,
            false => table.to_inexact(),
        };
        Ok(Arc::new(self.output_projection().project_statistics(table, &self.schema())?))
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(self.fresh().with_limit(fetch)))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    /// Takes over projections that only leave out or reorder columns.
    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        Ok(self.with_projection(projection)?.map(|scan| Arc::new(scan) as _))
    }

    /// A top-k reads the chunks first that may hold its rows. Where the table declares another order, it is given up.
    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
    ) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
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
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        self.take_filters(phase, result)
    }
}
