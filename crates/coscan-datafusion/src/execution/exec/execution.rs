//! The execution of a shared scan.

use std::sync::{Arc, OnceLock};

use coscan_runtime::core::ChunkIndex;
use coscan_runtime::{ScanLabel, ScanRequest};
use datafusion::common::{ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::{EmptyRecordBatchStream, ExecutionPlan};
use log::debug;

use super::SharedScanExec;
use crate::execution::chunk_reader::ChunkReader;
use crate::execution::chunk_scan::ChunkScanPlan;
use crate::execution::executions::Executions;
use crate::execution::first_pages::{self, FirstPagesStream};
use crate::execution::metrics::ScanCounts;
use crate::execution::row_filter::{self, RowFilter};
use crate::execution::shares::Shares;
use crate::query_id::QueryId;
use crate::shared_results::{Computations, QueryFragment, ResultSharing};
use crate::tables::source::{is_dynamic, properties};

/// The state of an executed plan. A copy of the plan starts without it.
#[derive(Debug, Default)]
pub(super) struct ExecutionState {
    pub(super) metrics: ExecutionPlanMetricsSet,
    /// Set when the first partition is executed.
    pub(super) executions: OnceLock<Arc<Executions>>,
    /// The same for executions that share results. They cannot be mixed with others.
    pub(super) sharing_executions: OnceLock<Arc<Executions>>,
    /// The id of the query that has executed it, if the query has one.
    pub(super) query: OnceLock<Arc<str>>,
}

impl Clone for ExecutionState {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl SharedScanExec {
    /// Changes the scan to one partition if the first pages have all the rows that are needed.
    pub(crate) fn in_few_partitions(self) -> Result<Self> {
        if self.first_rows().is_none() {
            return Ok(self);
        }
        let properties = Arc::new(properties(&self.source, &self.projection, 1, self.orders())?);
        Ok(Self { properties, ..self })
    }

    /// The limit in rows, if it is so small that only the first pages are read. The first partition then returns all
    /// rows.
    pub(super) fn first_rows(&self) -> Option<u64> {
        if !self.pushed_filters.is_empty() {
            return None; // The first rows may not pass.
        }
        let rows = first_pages::rows(&self.source, &self.requirements());
        rows.filter(|&rows| rows <= self.settings.batch_rows as u64)
    }

    /// The number of rows that the scan reads: those of the needed chunks, the selected ones if it is sparse, or its
    /// limit.
    pub(crate) fn row_count(&self) -> u64 {
        if let Some(rows) = self.first_rows() {
            return rows;
        }
        let rows = self.needed.rows_in(self.source.table.table(), &self.needed.chunks);
        rows.iter().map(|rows| rows.end - rows.start).sum()
    }

    /// The number of full batches that its rows make.
    pub(crate) fn batch_count(&self) -> usize {
        let batches = self.row_count() / self.settings.batch_rows.max(1) as u64;
        usize::try_from(batches).unwrap_or(usize::MAX)
    }

    /// The first rows of the table as a stream of the first partition. Other partitions are empty.
    pub(super) fn execute_first_rows(
        &self,
        partition: usize,
        rows: u64,
        context: &TaskContext,
        baseline: BaselineMetrics,
    ) -> Result<SendableRecordBatchStream> {
        if partition > 0 {
            return Ok(Box::pin(EmptyRecordBatchStream::new(self.schema())));
        }
        let request = ScanRequest {
            columns: self.projection.clone(),
            rows: std::iter::once(0..rows).collect(),
            order: self.order(),
            workers: 1,
            weight: self.settings.weight,
            computation: None,
            label: self.label(context),
        };
        let counts = ScanCounts::new(&self.state.metrics);
        let stream = FirstPagesStream::new(&self.source, request, counts, baseline)?;
        Ok(Box::pin(cooperative(stream)))
    }

    /// The request of the scan, for `workers` workers.
    pub(crate) fn request(&self, workers: usize, context: &TaskContext) -> ScanRequest {
        ScanRequest {
            columns: row_filter::columns_read(&self.projection, &self.pushed_filters),
            rows: self.needed.rows_in(self.source.table.table(), &self.needed.chunks),
            order: self.order(),
            workers,
            weight: self.settings.weight,
            computation: None,
            label: self.label(context),
        }
    }

    /// The number of rows that the scan gives of a chunk.
    pub(crate) fn rows_of(&self, chunk: ChunkIndex) -> u64 {
        let table = self.source.table.table();
        let rows = self.needed.rows_in(table, &[chunk]);
        rows.into_iter().map(|rows| table.visible_rows(rows)).sum()
    }

    /// The metrics of an execution of all partitions.
    pub(crate) fn counts(&self) -> ScanCounts {
        let counts = ScanCounts::new(&self.state.metrics);
        counts.chunks_pruned.add(self.needed.pruned());
        counts
    }

    /// The metrics of the rows of a partition.
    pub(crate) fn baseline(&self, partition: usize) -> BaselineMetrics {
        BaselineMetrics::new(&self.state.metrics, partition)
    }

    /// Executes a partition chunk by chunk, without a limit. The metrics count its rows.
    pub(crate) fn execute_chunks(
        &self,
        partition: usize,
        context: &TaskContext,
    ) -> Result<(ChunkReader, BaselineMetrics)> {
        if self.fetch.is_some() || !self.pushed_filters.is_empty() {
            return internal_err!("chunks are read without a limit, and whole");
        }
        let baseline = self.baseline(partition);
        let execution = self.executions(context).execute(partition);
        Ok((ChunkReader::new(execution), baseline))
    }

    /// The label of the scan: its query, or else its session, and its table.
    pub(crate) fn label(&self, context: &TaskContext) -> ScanLabel {
        let query = QueryId::of(context);
        let query = query.inspect(|query| drop(self.state.query.set(Arc::clone(query))));
        ScanLabel {
            query: Some(query.unwrap_or_else(|| context.session_id().into())),
            table: Some(self.source.name.as_str().into()),
        }
    }

    /// Executes a partition chunk by chunk, with the states of chunks that other queries have computed. The metrics count
    /// its rows.
    pub(crate) fn execute_sharing(
        &self,
        partition: usize,
        (fragment, keeps): (&QueryFragment, bool),
        context: &TaskContext,
    ) -> (ChunkReader, BaselineMetrics) {
        let executions = self.state.sharing_executions.get_or_init(|| {
            let table = self.source.table.table();
            let sharing = ResultSharing {
                manager: self.source.manager.clone(),
                computations: Arc::new(Computations::new(
                    &self.source.manager,
                    table,
                    fragment,
                    &self.needed.chunks,
                    self.settings.prunes,
                )),
                keeps,
            };
            self.new_executions(context, Some(sharing))
        });
        (ChunkReader::new(executions.execute(partition)), self.baseline(partition))
    }

    /// The executions of this instance of the plan.
    pub(super) fn executions(&self, context: &TaskContext) -> &Arc<Executions> {
        self.state.executions.get_or_init(|| self.new_executions(context, None))
    }

    fn new_executions(
        &self,
        context: &TaskContext,
        sharing: Option<ResultSharing>,
    ) -> Arc<Executions> {
        let table = self.source.table.table();
        let shares = Shares::new(table.layout(), &self.needed.chunks, self.partition_count());
        let plan = ChunkScanPlan {
            manager: self.source.manager.clone(),
            table: self.source.table.clone(),
            request: self.request(self.partition_count(), context),
            ranks: self.ranks(),
            dynamic_filters: self.dynamic_filters(),
            in_list_max: self.settings.in_list_max,
            sharing,
            counts: self.counts(),
        };
        Arc::new(Executions::new(plan, shares))
    }

    /// The filter that removes the rows that do not pass the filters which the scan evaluates.
    pub(super) fn row_filter(&self, batch_rows: usize) -> Result<Option<RowFilter>> {
        let table_schema = self.source.table.table().schema();
        RowFilter::new(&self.projection, &self.pushed_filters, table_schema, batch_rows)
    }

    /// The rank of each chunk, if a dynamic filter gets stricter as chunks of low ranks are read. The filter of a top-k
    /// does.
    fn ranks(&self) -> Option<Vec<usize>> {
        let key = self.top_k_order.as_ref()?;
        let filters = self.dynamic_filters();
        let mut columns = filters.iter().flat_map(collect_columns);
        if !columns.any(|column| key.columns().any(|index| index == column.index())) {
            return None;
        }
        let ranks = key.ranks(self.source.table.table());
        ranks.inspect_err(|error| debug!("chunks are read in any order: {error}")).ok()
    }

    /// The least and the greatest value of a column of the table, according to statistics. Changed rows may have others.
    pub(crate) fn value_range(&self, column: usize) -> Option<(&ScalarValue, &ScalarValue)> {
        let statistics = self.source.statistics.column_statistics.get(column)?;
        Some((statistics.min_value.get_value()?, statistics.max_value.get_value()?))
    }

    /// The filters that change while the query runs. There are none below a limit, which counts the rows that they
    /// would rule out.
    pub(crate) fn dynamic_filters(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        let filters = self.filters.iter().filter(|filter| is_dynamic(filter));
        filters.filter(|_| self.fetch.is_none()).cloned().collect()
    }
}
