//! The scan operator.

mod display;
mod division;
mod execution;
mod operator;
mod pushdown;
mod replica_choice;
mod unordered_reason;
mod unshared_reason;

use std::sync::Arc;

use coscan_runtime::core::{ChunkIndex, Order};
use coscan_runtime::{BufferManager, SharedTable};
use datafusion::error::Result;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::PlanProperties;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;

use crate::execution::ranking::SortKey;
use crate::planning::pruning::NeededChunks;
use crate::planning::replica_choice::CopyChoice;
use crate::planning::unshared::ScanRequirements;
use crate::tables::source::{PlanSettings, ScanSource, is_dynamic, properties};
use execution::ExecutionState;
pub(crate) use unordered_reason::UnorderedReason;
pub(crate) use unshared_reason::UnsharedReason;

/// Reads a shared table: the chunks that statistics and Bloom filters do not rule out, in the order in which the
/// scheduler hands them out, or in the table's order if an operator above needs it.
///
/// EXPLAIN shows:
///
/// | field | meaning |
/// |---|---|
/// | `table`, `policy` | the name of the table; the policy of the scheduler |
/// | `version` | the version of the table, if it has numbered versions |
/// | `replica` | for a table with replicas, the one that it reads, or `none`; in parentheses its bytes, and those of the copy that is not read |
/// | `order=any` | chunks come in any order, so that all scans of the table read together; the reason is in parentheses |
/// | `order=table` | chunks come in the order that the table or its files declare, for the operator in `needed_by`, or ORDER BY; `workers` is the number of chunks that are worked on at the same time |
/// | `weight` | the weight of the query, unless it is 1 |
/// | `chunks=3 of 10 (7 pruned)` | chunks to read; chunks of the table; chunks that filters rule out |
/// | `rows` | needed rows of those chunks, if the scan is sparse: only they are decoded |
/// | `deleted_rows` | rows of those chunks that are deleted in this version |
/// | `projection` | columns of the output |
/// | `predicate` | filters that rule chunks out; an operator above removes rows |
/// | `pushed_filters` | filters by which the scan removes rows itself |
/// | `top_k_order` | the order of a top-k above: chunks that may hold its rows are read first |
/// | `may_hold_nan` | columns of floating-point numbers with which filters or a top-k could rule more chunks out, and the number of chunks to read of which it is not known that they hold no NaN there. It is known once all rows of a chunk were decoded |
/// | `results=not shared` | the aggregation above computes all chunks itself; the reason is in parentheses |
/// | `fetch` | the most rows that a partition gives |
/// | `query` | the [id of the query](crate::QueryId) that has executed it, if it has one |
/// | `reads=first_pages` | so few rows are needed that the first pages of each column are read, and no chunks |
///
/// EXPLAIN ANALYZE adds, over all partitions:
///
/// | figure | meaning |
/// |---|---|
/// | `chunks_needed`, `chunks_pruned` | chunks to read, and chunks that filters ruled out, before the query ran |
/// | `chunks_pruned_dynamic_filter` | chunks to read that dynamic filters ruled out while it ran |
/// | `chunks_delivered`, `chunks_found_in_pool` | chunks that the scan got, and those among them found complete in the pool |
/// | `bytes_read`, `bytes_reused` | stored bytes that were read for it, and those that it found in the pool |
/// | `bytes_from_peers` | stored bytes that other servers sent for it, if any did: of `bytes_read`, unless a limit ended the scan before |
/// | `slices_decoded`, `slices_reused` | columns of chunks that it decoded, and those that it got decoded from others |
/// | `time_waiting`, `time_decoding`, `time_reading` | sums over its workers of waiting for chunks and of decoding, and over the loads made for it |
#[derive(Clone, Debug)]
pub struct SharedScanExec {
    source: Arc<ScanSource>,
    settings: PlanSettings,
    /// Columns of the output, as indexes into the table's schema.
    projection: Vec<usize>,
    /// The filters on the table's schema that rule chunks out.
    filters: Vec<Arc<dyn PhysicalExpr>>,
    /// Whether Bloom filters leave each zone of the table. `None` if none were read.
    zones_left: Option<Arc<[bool]>>,
    /// The filters on the table's schema that the scan evaluates. It returns only rows that pass all of them.
    pushed_filters: Vec<Arc<dyn PhysicalExpr>>,
    /// The chunks that are left by the filters known before the query runs.
    needed: Arc<NeededChunks>,
    /// The maximum number of rows that are needed of a partition.
    fetch: Option<usize>,
    /// The order of a top-k above.
    top_k_order: Option<SortKey>,
    /// The operator that needs the rows in the table's order, or ORDER BY. `None` if they are returned in any order.
    ordered_for: Option<Arc<str>>,
    /// The reason why rows are returned in any order, if they are.
    unordered_reason: UnorderedReason,
    /// The reason why an aggregation above does not share the results of chunks, if there is one that does not.
    unshared_reason: Option<UnsharedReason>,
    /// The number of chunks that are worked on at the same time, for a scan in order.
    workers: usize,
    /// Whether the user's query itself repartitions its rows.
    has_user_partitioning: bool,
    /// The reason for the choice of this copy of the table, if there are several.
    copy_choice: Option<CopyChoice>,
    properties: Arc<PlanProperties>,
    state: ExecutionState,
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
        let partitions = settings.partitions_max.min(needed.chunks.len()).max(1);
        let properties = properties(&source, &projection, partitions, Vec::new())?;
        Ok(Self {
            source,
            settings,
            projection,
            filters,
            zones_left,
            pushed_filters: Vec::new(),
            needed: Arc::new(needed),
            fetch: None,
            top_k_order: None,
            ordered_for: None,
            unordered_reason: UnorderedReason::NotNeeded,
            unshared_reason: None,
            workers: 1,
            has_user_partitioning: false,
            copy_choice: None,
            properties: Arc::new(properties),
            state: ExecutionState::default(),
        })
    }

    pub(crate) fn with_limit(self, fetch: Option<usize>) -> Self {
        Self { fetch, ..self }
    }

    /// Sets the reason why the rows come in any order, for EXPLAIN.
    pub(crate) fn in_any_order(&self, unordered_reason: UnorderedReason) -> Self {
        Self { unordered_reason, ..self.clone() }
    }

    /// Sets the reason why an aggregation above does not share the results of chunks, for EXPLAIN.
    pub(crate) fn with_unshared_results(&self, reason: UnsharedReason) -> Self {
        Self { unshared_reason: Some(reason), ..self.clone() }
    }

    /// Sets the number of workers that an operator above has for a scan in order.
    pub(crate) fn with_workers(&self, workers: usize) -> Self {
        Self { workers, ..self.clone() }
    }

    pub(crate) fn with_user_partitioning(&self) -> Self {
        Self { has_user_partitioning: true, ..self.clone() }
    }

    pub(crate) fn has_user_partitioning(&self) -> bool {
        self.has_user_partitioning
    }

    pub(crate) fn requirements(&self) -> ScanRequirements<'_> {
        ScanRequirements {
            projection: &self.projection,
            filters: &self.filters,
            needed: &self.needed,
            fetch: self.fetch,
        }
    }

    /// The source of the rows.
    pub(crate) fn source(&self) -> &Arc<ScanSource> {
        &self.source
    }

    /// The table that is scanned.
    #[must_use]
    pub fn table(&self) -> &SharedTable {
        &self.source.table
    }

    /// Whether its files were listed for this query.
    pub(crate) fn is_listed_by_query(&self) -> bool {
        self.source.listed_by_query
    }

    /// The name by which the query knows the table.
    pub(crate) fn table_name(&self) -> &str {
        self.copy_choice.as_ref().map_or(&self.source.name, CopyChoice::table_name)
    }

    /// The counters of its executions.
    pub(crate) fn counters(&self) -> &ExecutionPlanMetricsSet {
        &self.state.metrics
    }

    /// The manager of its table.
    pub(crate) fn manager(&self) -> &BufferManager {
        &self.source.manager
    }

    /// The columns of the output, as indexes into the table's schema.
    pub(crate) fn projection(&self) -> &[usize] {
        &self.projection
    }

    /// The chunks that it needs, in ascending order.
    pub(crate) fn needed_chunks(&self) -> &[ChunkIndex] {
        &self.needed.chunks
    }

    /// The number of chunks that it needs, and that of all chunks that it could need.
    #[must_use]
    pub fn chunk_counts(&self) -> (usize, usize) {
        (self.needed.chunks.len(), self.needed.total)
    }

    /// The weight of its query.
    pub(crate) fn weight(&self) -> u32 {
        self.settings.weight
    }

    /// The maximum number of partitions that the session requests.
    pub(crate) fn partitions_max(&self) -> usize {
        self.settings.partitions_max
    }

    fn order(&self) -> Order {
        if self.ordered_for.is_none() { Order::Any } else { Order::InOrder }
    }

    /// The orders that its rows have.
    fn orders(&self) -> Vec<LexOrdering> {
        match self.order() {
            Order::Any => Vec::new(),
            Order::InOrder => self.source.table_orders(&self.settings),
        }
    }

    /// Whether it returns all rows of each chunk that it reads, and no filter changes while it runs: then what is computed of
    /// a chunk can be shared.
    pub(crate) fn can_share_results(&self) -> bool {
        self.order() == Order::Any
            && !self.has_user_partitioning
            && self.top_k_order.is_none()
            && self.fetch.is_none()
            && self.pushed_filters.is_empty()
            && self.needed.selected.is_none()
            && !self.filters.iter().any(is_dynamic)
    }

    fn partition_count(&self) -> usize {
        self.properties.partitioning.partition_count()
    }
}
