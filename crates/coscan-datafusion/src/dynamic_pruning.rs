//! Dynamic filters narrow a scan while it runs: a top-k that has seen better rows, a join that knows its keys.

use std::sync::Arc;
use std::time::{Duration, Instant};

use coscan_runtime::Scan;
use coscan_runtime::core::{ChunkIndex, Index};
use coscan_storage::table::ParquetTable;
use datafusion::physical_expr::expressions::DynamicFilterTracking;
use datafusion::physical_expr::{PhysicalExpr, conjunction};

use crate::pruning::may_match;

/// After the filters were judged, nothing is judged again for this many times as long: narrowing never takes more than
/// a small part of the time of a scan.
const REST: u32 = 20;

/// The dynamic filters of a scan, and the chunks that they have not ruled out yet.
#[derive(Debug)]
pub(crate) struct DynamicPruning {
    filters: Vec<Arc<dyn PhysicalExpr>>,
    tracking: DynamicFilterTracking,
    in_list_max: usize,
    /// Chunks that the scan was to read, less those given up.
    wanted: Vec<ChunkIndex>,
    /// A filter has changed since it was judged.
    has_changed: bool,
    rests_until: Instant,
}

impl DynamicPruning {
    /// Starts to watch filters.
    pub(crate) fn new(filters: Vec<Arc<dyn PhysicalExpr>>, in_list_max: usize) -> Self {
        let tracking = DynamicFilterTracking::classify(&conjunction(filters.iter().cloned()));
        Self {
            filters,
            tracking,
            in_list_max,
            wanted: Vec::new(),
            has_changed: false,
            rests_until: Instant::now(),
        }
    }

    /// The scan is to read these chunks, too. Returns those that the filters leave as they are now.
    pub(crate) fn add(
        &mut self,
        table: &ParquetTable,
        mut chunks: Vec<ChunkIndex>,
    ) -> Vec<ChunkIndex> {
        if let Some(keep) = may_match(table, &self.filters, self.in_list_max) {
            chunks.retain(|chunk| keep[chunk.as_usize()]);
        }
        self.wanted.extend(&chunks);
        chunks
    }

    /// Gives up chunks of the scan if a filter has changed; returns how many.
    pub(crate) fn prune(&mut self, scan: &Scan) -> usize {
        self.has_changed |= self.tracking.watcher().is_some_and(|tracker| tracker.changed());
        if !self.has_changed || Instant::now() < self.rests_until {
            return 0;
        }
        let unwanted = self.judge(scan.table());
        if unwanted.is_empty() { 0 } else { scan.prune(&unwanted) }
    }

    /// Takes the chunks off that the filters rule out now, and returns them.
    fn judge(&mut self, table: &ParquetTable) -> Vec<ChunkIndex> {
        let started = Instant::now();
        self.has_changed = false;
        let mut unwanted = Vec::new();
        if let Some(keep) = may_match(table, &self.filters, self.in_list_max) {
            self.wanted.retain(|&chunk| {
                let is_wanted = keep[chunk.as_usize()];
                if !is_wanted {
                    unwanted.push(chunk);
                }
                is_wanted
            });
        }
        self.rests_until = Instant::now() + rest(started.elapsed());
        unwanted
    }
}

fn rest(judging: Duration) -> Duration {
    judging * REST
}
