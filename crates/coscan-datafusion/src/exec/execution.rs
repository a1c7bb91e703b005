//! What a shared scan does once it is executed.

use std::sync::Arc;

use coscan_runtime::ScanRequest;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::metrics::BaselineMetrics;
use datafusion::physical_plan::{EmptyRecordBatchStream, ExecutionPlan};
use log::debug;

use super::SharedScanExec;
use crate::first_pages::{self, FirstPagesStream};
use crate::metrics::ScanCounts;
use crate::reading::ReadingPlan;
use crate::row_filter::{self, RowFilter};
use crate::run::Executions;
use crate::shares::Shares;
use crate::source::{is_dynamic, properties};

impl SharedScanExec {
    /// The same in one partition if that does for the rows that are wanted.
    pub(crate) fn in_few_partitions(self) -> Result<Self> {
        if self.first_rows().is_none() {
            return Ok(self);
        }
        let properties = Arc::new(properties(&self.source, &self.projection, 1)?);
        Ok(Self { properties, ..self })
    }

    /// The number of rows that its limit takes, if they are so few that only their pages are read. The first partition
    /// then gives them all.
    pub(super) fn first_rows(&self) -> Option<u64> {
        if !self.evaluated.is_empty() {
            return None; // These rule rows out, whether or not they may rule chunks out.
        }
        let rows = first_pages::rows(&self.source, &self.requirements());
        rows.filter(|&rows| rows <= self.settings.batch_rows as u64)
    }

    /// How many rows it reads: those of the needed chunks, the picked ones of them, or as many as its limit takes.
    pub(crate) fn row_count(&self) -> u64 {
        if let Some(rows) = self.first_rows() {
            return rows;
        }
        let rows = self.needed.rows_in(self.source.table.table(), &self.needed.chunks);
        rows.iter().map(|rows| rows.end - rows.start).sum()
    }

    /// A stream of the first rows of the table if it is the first partition, else of none.
    pub(super) fn execute_first_rows(
        &self,
        partition: usize,
        rows: u64,
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
        };
        let counts = ScanCounts::new(&self.metrics);
        let stream = FirstPagesStream::new(&self.source, request, counts, baseline)?;
        Ok(Box::pin(cooperative(stream)))
    }

    /// What this instance of the plan has given and gives.
    pub(super) fn executions(&self) -> &Arc<Executions> {
        self.executions.get_or_init(|| {
            let table = self.source.table.table();
            let counts = ScanCounts::new(&self.metrics);
            counts.chunks_pruned.add(self.needed.pruned());
            let shares = Shares::new(table.layout(), &self.needed.chunks, self.partition_count());
            let plan = ReadingPlan {
                manager: self.source.manager.clone(),
                table: self.source.table.clone(),
                request: ScanRequest {
                    columns: row_filter::columns_read(&self.projection, &self.evaluated),
                    rows: self.needed.rows_in(table, &self.needed.chunks),
                    order: self.order(),
                    workers: self.partition_count(),
                    weight: self.settings.weight,
                },
                ranks: self.ranks(),
                dynamic_filters: self.dynamic_filters(),
                in_list_max: self.settings.in_list_max,
                counts,
            };
            Arc::new(Executions::new(plan, shares))
        })
    }

    /// What leaves out the rows of what it reads that are not to be given.
    pub(super) fn row_filter(&self, batch_rows: usize) -> Result<Option<RowFilter>> {
        let table_schema = self.source.table.table().schema();
        RowFilter::new(&self.projection, &self.evaluated, table_schema, batch_rows)
    }

    /// The rank of each chunk, if a filter is filled in that those of lower ranks make stricter: that of a top-k.
    fn ranks(&self) -> Option<Vec<usize>> {
        let key = self.first_by.as_ref()?;
        let filters = self.dynamic_filters();
        let mut columns = filters.iter().flat_map(collect_columns);
        if !columns.any(|column| key.columns().any(|it| it == column.index())) {
            return None;
        }
        let ranks = key.ranks(self.source.table.table());
        ranks.inspect_err(|error| debug!("chunks are read in any order: {error}")).ok()
    }

    /// Filters that are filled in while the query runs: none below a limit, which counts rows that they rule out.
    fn dynamic_filters(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        let filters = self.filters.iter().filter(|filter| is_dynamic(filter));
        filters.filter(|_| self.fetch.is_none()).cloned().collect()
    }
}
