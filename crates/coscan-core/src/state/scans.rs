//! The running scans: those that need a chunk, the candidates for loads, and averages over all.

use crate::ids::{ChunkIndex, Index, ScanId, ScanPosition, TableId};
use crate::scan::{PriorityBounds, Scan};
use crate::set::IndexSet;
use crate::state::{CandidateKind, LoadCandidates, State};
use crate::table::Table;

impl State {
    /// A running scan.
    #[must_use]
    pub fn scan(&self, scan: ScanId) -> Option<&Scan> {
        self.scans.get(&scan)
    }

    /// The number of running scans, without interests.
    #[must_use]
    pub fn scan_count(&self) -> usize {
        self.scan_index.running.len()
    }

    /// All running scans, without interests, oldest first.
    pub(crate) fn running_scans(&self) -> impl Iterator<Item = &Scan> {
        self.scan_index.running.iter().filter_map(|&id| self.scan(id))
    }

    /// All running scans and interests, oldest first.
    pub fn scans(&self) -> impl Iterator<Item = &Scan> {
        self.scans.values()
    }

    /// The running scans of a table, oldest first.
    pub fn scans_of(&self, table: TableId) -> impl Iterator<Item = &Scan> + Clone {
        self.table(table).scans.iter().filter_map(|&id| self.scan(id))
    }

    /// Scans that still need a chunk [CS07 §4, `numberInterestedQueries`].
    pub fn interested(
        &self,
        table: TableId,
        chunk: ChunkIndex,
    ) -> impl Iterator<Item = &Scan> + Clone {
        let table = self.table(table);
        self.scans_at(table, &table.classes.class_of(chunk).key().scans)
    }

    /// The running scans of a table that read selected pages only. [`Self::interested`] does not list them.
    pub fn sparse_scans(&self, table: TableId) -> impl Iterator<Item = &Scan> + Clone {
        self.table(table).sparse_scans.iter().filter_map(|&id| self.scan(id))
    }

    /// The scans of selected pages that still need a chunk.
    pub fn sparse_interested(
        &self,
        table: TableId,
        chunk: ChunkIndex,
    ) -> impl Iterator<Item = &Scan> + Clone {
        let table = self.table(table);
        let slots = table.sparse_needs.get(&chunk).into_iter().flat_map(IndexSet::iter);
        slots.filter_map(|slot| self.scan_at(table, slot))
    }

    /// The scans of a table at these slots.
    pub fn scans_at<'a>(
        &'a self,
        table: &'a Table,
        slots: &'a IndexSet<ScanPosition>,
    ) -> impl Iterator<Item = &'a Scan> + Clone {
        slots.iter().filter_map(|slot| self.scan_at(table, slot))
    }

    /// The scan of a table at a slot.
    #[must_use]
    pub fn scan_at(&self, table: &Table, slot: ScanPosition) -> Option<&Scan> {
        table.slots.get(slot.as_usize()).copied().flatten().and_then(|id| self.scan(id))
    }

    /// Scans with too few chunks ready or arriving for which something can be read, kind by kind.
    pub fn load_candidates(&self) -> impl Iterator<Item = (&CandidateKind, &LoadCandidates)> {
        self.scan_index.load_candidates.iter()
    }

    /// The running scans that are tiny by these bounds.
    pub fn tiny_scans(&self, bounds: PriorityBounds) -> impl Iterator<Item = &Scan> {
        let few = (bounds.tiny_chunks_max.saturating_add(1), ScanId(0));
        let of_few =
            self.scan_index.chunks_in_all.range(..few).filter_map(|&(_, id)| self.scan(id));
        of_few.filter(move |scan| scan.size() < bounds.short_below)
    }

    /// Scans with a waiting worker, the one that has waited longest in front.
    pub fn waiting(&self) -> impl Iterator<Item = &Scan> {
        self.scan_index.waiting.iter().filter_map(|&(_, id)| self.scan(id))
    }

    /// The average number of chunks needed by scans that go in order and read whole chunks.
    #[must_use]
    pub fn in_order_needed(&self) -> usize {
        let needed = self.scan_index.in_order_needed;
        (needed.sum / needed.scans.max(1) as u128) as usize
    }

    /// The [size](Scan::size) of the largest running scan.
    #[must_use]
    pub fn largest_size(&self) -> u64 {
        self.scan_index.sizes.last().map_or(0, |&(size, _)| size)
    }

    /// The average nanoseconds for a chunk, over the running scans for which it is known.
    #[must_use]
    pub fn average_chunk_ns(&self) -> Option<f64> {
        self.scan_index.chunk_ns.average()
    }

    /// The number of scans with a worker that waits or has a chunk. The others take no turns: their queries do something else, such
    /// as building the table of a join.
    #[must_use]
    pub fn competing_scans(&self) -> usize {
        self.scan_index.competing
    }

    /// Workers at work on a chunk, not counting those that their queries have paused.
    #[must_use]
    pub fn active_workers(&self) -> usize {
        self.scan_index.active_workers.sum as usize
    }

    /// Active workers that have been at work on one chunk so long that they are not waited for.
    pub(crate) fn overdue_workers(&self) -> usize {
        let active = self.scan_index.active_since.iter();
        let overdue = active.take_while(|(since, _)| self.is_overdue(*since));
        let workers = overdue.filter_map(|&(_, id)| self.scan(id)).flat_map(Scan::active_since);
        workers.filter(|&since| self.is_overdue(since)).count()
    }

    /// Whether no worker has a chunk.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.scan_index.busy_workers.sum == 0
    }

    /// The slots of a table's scans that pass a test.
    #[must_use]
    pub fn slots_where(
        &self,
        table: TableId,
        test: impl Fn(&Scan) -> bool,
    ) -> IndexSet<ScanPosition> {
        self.scans_of(table).filter(|scan| test(scan)).map(Scan::slot).collect()
    }
}
