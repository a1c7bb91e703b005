//! The reason why the engine reads a table itself, which EXPLAIN shows with the engine's own scan.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{
    EquivalenceProperties, LexOrdering, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::filter_pushdown::FilterPushdownPropagation;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, SortOrderPushdownResult};
use datafusion_datasource::morsel::Morselizer;
use datafusion_datasource::{PartitionedFile, TableSchema};
use object_store::ObjectStore;

/// Adds to a scan of the engine the reason why it is not shared, which EXPLAIN shows as `not_shared=…`. Other plans are
/// left unchanged.
pub(crate) fn not_shared(plan: Arc<dyn ExecutionPlan>, reason: &str) -> Arc<dyn ExecutionPlan> {
    let config = plan
        .downcast_ref::<DataSourceExec>()
        .and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
    let Some(config) = config.filter(|config| !config.file_source.is::<PlainSource>()) else {
        return plan;
    };
    let mut config = config.clone();
    config.file_source = Arc::new(PlainSource::new(config.file_source, reason.into()));
    DataSourceExec::from_data_source(config)
}

/// A source of the engine with a reason. All other behavior is that of the source.
struct PlainSource {
    source: Arc<dyn FileSource>,
    reason: Arc<str>,
}

impl PlainSource {
    fn new(source: Arc<dyn FileSource>, reason: Arc<str>) -> Self {
        Self { source, reason }
    }

    /// Another source with the same reason.
    fn with(&self, source: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        Arc::new(Self::new(source, Arc::clone(&self.reason)))
    }
}

impl FileSource for PlainSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        self.source.create_file_opener(store, config, partition)
    }

    fn create_morselizer(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        self.source.create_morselizer(store, config, partition)
    }

    fn table_schema(&self) -> &TableSchema {
        self.source.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        self.with(self.source.with_batch_size(batch_size))
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.source.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.source.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.source.metrics()
    }

    fn file_type(&self) -> &str {
        self.source.file_type()
    }

    fn fmt_extra(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt_extra(kind, f)?;
        match kind {
            DisplayFormatType::TreeRender => writeln!(f, "not_shared={}", self.reason),
            _ => write!(f, ", not_shared={}", self.reason),
        }
    }

    fn supports_repartitioning(&self) -> bool {
        self.source.supports_repartitioning()
    }

    /// The engine's sources change the files of the given scan, and leave its source unchanged.
    fn repartitioned(
        &self,
        partitions: usize,
        bytes_min: usize,
        order: Option<LexOrdering>,
        config: &FileScanConfig,
    ) -> Result<Option<FileScanConfig>> {
        self.source.repartitioned(partitions, bytes_min, order, config)
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        options: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let mut pushed = self.source.try_pushdown_filters(filters, options)?;
        pushed.updated_node = pushed.updated_node.map(|source| self.with(source));
        Ok(pushed)
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        equivalence: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        Ok(match self.source.try_pushdown_sort(order, equivalence)? {
            SortOrderPushdownResult::Exact { inner } => {
                SortOrderPushdownResult::Exact { inner: self.with(inner) }
            }
            SortOrderPushdownResult::Inexact { inner } => {
                SortOrderPushdownResult::Inexact { inner: self.with(inner) }
            }
            SortOrderPushdownResult::Unsupported => SortOrderPushdownResult::Unsupported,
        })
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.source.reorder_files(files)
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let pushed = self.source.try_pushdown_projection(projection)?;
        Ok(pushed.map(|source| self.with(source)))
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.source.apply_expressions(visit)
    }
}
