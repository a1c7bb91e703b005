//! Pruning by dynamic filters while a scan runs. Such a filter gets stricter when a top-k has seen better rows, and is
//! complete when a join has read its keys.

use std::sync::Arc;
use std::time::Instant;

use coscan_runtime::Scan;
use coscan_runtime::core::ChunkIndex;
use coscan_storage::table::ParquetTable;
use datafusion::physical_expr::expressions::DynamicFilterTracking;
use datafusion::physical_expr::{PhysicalExpr, conjunction};

use crate::planning::pruning::may_match;

/// The pause after an evaluation of the filters, as a multiple of the time that it took. Pruning thus takes only a
/// small part of the time of a scan.
const REST: u32 = 20;

/// The dynamic filters of a scan, and the chunks that they have not ruled out.
#[derive(Debug)]
pub(crate) struct DynamicPruner {
    filters: Vec<Arc<dyn PhysicalExpr>>,
    tracking: DynamicFilterTracking,
    in_list_max: usize,
    /// The chunks of the scan that were not ruled out.
    left: Vec<ChunkIndex>,
    /// Whether a filter has changed since the last evaluation.
    has_changed: bool,
    rests_until: Instant,
}

impl DynamicPruner {
    /// Watches filters from now on.
    pub(crate) fn new(filters: Vec<Arc<dyn PhysicalExpr>>, in_list_max: usize) -> Self {
        let tracking = DynamicFilterTracking::classify(&conjunction(filters.iter().cloned()));
        Self {
            filters,
            tracking,
            in_list_max,
            left: Vec::new(),
            has_changed: false,
            rests_until: Instant::now(),
        }
    }

    /// Adds chunks to the scan. Returns the chunks that the filters leave in their current state.
    pub(crate) fn add(&mut self, table: &ParquetTable, chunks: Vec<ChunkIndex>) -> Vec<ChunkIndex> {
        let (left, _) = self.split(table, chunks);
        self.left.extend(&left);
        left
    }

    /// Drops the chunks of the scan that the filters rule out now, if a filter has changed. Returns the number of
    /// dropped chunks.
    pub(crate) fn prune(&mut self, scan: &Scan) -> usize {
        self.has_changed |= self.tracking.watcher().is_some_and(|tracker| tracker.changed());
        if !self.has_changed || Instant::now() < self.rests_until {
            return 0;
        }
        let ruled_out = self.take_ruled_out(scan.table());
        if ruled_out.is_empty() { 0 } else { scan.prune(&ruled_out).len() }
    }

    /// Removes and returns the chunks that the filters rule out now.
    fn take_ruled_out(&mut self, table: &ParquetTable) -> Vec<ChunkIndex> {
        let started = Instant::now();
        self.has_changed = false;
        let left = std::mem::take(&mut self.left);
        let (left, ruled_out) = self.split(table, left);
        self.left = left;
        self.rests_until = Instant::now() + started.elapsed() * REST;
        ruled_out
    }

    /// Splits chunks into those that the filters leave now and those that they rule out.
    fn split(
        &self,
        table: &ParquetTable,
        chunks: Vec<ChunkIndex>,
    ) -> (Vec<ChunkIndex>, Vec<ChunkIndex>) {
        let Some(keep) = may_match(table, &self.filters, self.in_list_max, &chunks) else {
            return (chunks, Vec::new());
        };
        let mut keep = keep.into_iter();
        chunks.into_iter().partition(|_| keep.next().unwrap_or(true))
    }
}
