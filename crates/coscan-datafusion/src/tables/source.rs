//! The source of a table's plans, the settings of a session, and the plan properties that depend on both.

use std::sync::Arc;

use coscan_runtime::{BufferManager, SharedTable};
use coscan_storage::table::{FileChanges, TableChanges};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::Statistics;
use datafusion::datasource::physical_plan::FileGroup;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::DynamicFilterTracking;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::{Partitioning, PlanProperties};
use datafusion::prelude::SessionConfig;

use crate::error::from_table;
use crate::settings::SessionSettings;
use crate::tables::statistics;

/// A table as read by all its plans.
#[derive(Clone, Debug)]
pub(crate) struct ScanSource {
    pub(crate) manager: BufferManager,
    pub(crate) table: SharedTable,
    /// The name in EXPLAIN.
    pub(crate) name: String,
    /// All files, with the statistics of each.
    pub(crate) files: Arc<FileGroup>,
    /// The statistics of the whole table, with one column for each field of its schema.
    pub(crate) statistics: Arc<Statistics>,
    /// The declared orders of the table's rows.
    pub(crate) orderings: Vec<LexOrdering>,
    /// The order that the files declare, if the table declares none.
    pub(crate) stored_order: Option<LexOrdering>,
    /// The most bytes of a selective scan that is left to the engine.
    pub(crate) direct_bytes_max: u64,
    /// The number of its snapshot, if the table counts them.
    pub(crate) version: Option<u64>,
    /// Whether its files were listed for this query, as the engine does for its own tables.
    pub(crate) listed_by_query: bool,
}

impl ScanSource {
    /// The same source after changes of the table. It reads nothing, in a time that does not grow with the rows.
    ///
    /// # Errors
    /// If a row is changed that its file does not have.
    pub(crate) fn with_changes(&self, changes: TableChanges, version: u64) -> Result<Self> {
        let table = self.table.with_changes(changes).map_err(from_table)?;
        let statistics = match table.table().is_changed() {
            true => Arc::new(statistics::of_changed(&self.statistics, table.table())),
            false => Arc::clone(&self.statistics),
        };
        // Changed values and inserted rows may be anywhere.
        let changes = table.table().changes();
        let is_only_deleted = |changes: &Arc<FileChanges>| {
            let counts = changes.counts();
            counts.patched == 0 && counts.inserted == 0
        };
        let keeps_order =
            changes.inserted.is_none() && changes.files.iter().flatten().all(is_only_deleted);
        let orderings = self.orderings.iter().filter(|_| keeps_order).cloned().collect();
        let stored_order = self.stored_order.clone().filter(|_| keeps_order);
        let version = Some(version);
        Ok(Self { table, statistics, orderings, stored_order, version, ..self.clone() })
    }

    /// The number of columns that statements see: all but that of row numbers.
    pub(crate) fn column_count(&self) -> usize {
        let table = self.table.table();
        table.row_number_column().unwrap_or(table.schema().fields().len())
    }

    /// The columns that statements see.
    pub(crate) fn schema(&self) -> SchemaRef {
        let (schema, columns) = (self.table.table().schema(), self.column_count());
        match columns < schema.fields().len() {
            true => Arc::new(Schema::new(schema.fields()[..columns].to_vec())),
            false => Arc::clone(schema),
        }
    }

    /// The orders of the rows of a scan in the table's order. Orders that the files declare count as statistics.
    pub(crate) fn table_orders(&self, settings: &PlanSettings) -> Vec<LexOrdering> {
        let stored = self.stored_order.iter().filter(|_| settings.has_statistics);
        self.orderings.iter().chain(stored).cloned().collect()
    }
}

/// The name in EXPLAIN of a table without a name: the last part of its location, without the extension.
pub(crate) fn short_name(location: &str) -> String {
    let trimmed = location.trim_end_matches('/');
    let last = trimmed.rsplit('/').next().unwrap_or(trimmed);
    last.strip_suffix(".parquet").unwrap_or(last).to_owned()
}

/// The settings of a session that plans depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanSettings {
    /// The maximum number of partitions of a scan.
    pub(crate) partitions_max: usize,
    /// Whether filters rule chunks out.
    pub(crate) prunes: bool,
    /// Whether Bloom filters rule chunks out.
    pub(crate) reads_bloom_filters: bool,
    /// The longest IN list that prunes chunks.
    pub(crate) in_list_max: usize,
    /// Whether scans evaluate filters, so that no operator above does.
    pub(crate) evaluates: bool,
    /// Whether the optimizer gets statistics.
    pub(crate) has_statistics: bool,
    /// The maximum number of rows of a batch.
    pub(crate) batch_rows: usize,
    /// The weight of the session's queries.
    pub(crate) weight: u32,
}

impl PlanSettings {
    pub(crate) fn of_session(config: &SessionConfig) -> Self {
        Self {
            partitions_max: config.target_partitions(),
            prunes: config.options().execution.parquet.pruning,
            reads_bloom_filters: config.options().execution.parquet.pruning
                && config.options().execution.parquet.bloom_filter_on_read,
            in_list_max: config.options().execution.parquet.max_in_list_size,
            evaluates: config.options().execution.parquet.pushdown_filters,
            has_statistics: config.collect_statistics(),
            batch_rows: config.batch_size(),
            weight: SessionSettings::of(config).weight,
        }
    }
}

/// Whether a filter may still change while the query runs.
pub(crate) fn is_dynamic(filter: &Arc<dyn PhysicalExpr>) -> bool {
    DynamicFilterTracking::classify(filter).contains_dynamic_filter()
}

/// The plan properties of a scan of some columns whose rows have these orders.
pub(crate) fn properties(
    source: &ScanSource,
    projection: &[usize],
    partitions: usize,
    orders: Vec<LexOrdering>,
) -> Result<PlanProperties> {
    let schema = source.table.table().schema();
    let table = EquivalenceProperties::new_with_orderings(Arc::clone(schema), orders);
    let output = ProjectionExprs::from_indices(projection, schema);
    let output_schema = Arc::new(schema.project(projection)?);
    let output = table.project(&output.projection_mapping(schema)?, output_schema);
    // Loads run in the background, but batches are made on request, which is lazy.
    let partitioning = Partitioning::UnknownPartitioning(partitions);
    let (emission, bounded) = (EmissionType::Incremental, Boundedness::Bounded);
    Ok(PlanProperties::new(output, partitioning, emission, bounded)
        .with_scheduling_type(SchedulingType::Cooperative))
}
