//! A scan: what a query still needs of a table, and how its workers stand.
//!
//! [`ScanSpec`] is the wish, [`Scan`] the registered need.

mod chunk_sets;
mod index_keys;
mod rate;
mod spec;
mod status;
mod worker;

use crate::decoded::DecodedChunks;
use crate::ids::{
    ChunkIndex, DeviceId, GroupIndex, Index, PageId, ScanId, SlotIndex, TableId, Time, WorkerIndex,
};
use crate::set::{HierarchicalBitSet, IndexSet};
use crate::table::Table;

pub(crate) use index_keys::IndexKeys;
pub(crate) use rate::ScanRate;
pub(crate) use spec::indexes;
pub use spec::{Order, PriorityBounds, PriorityClass, ScanReport, ScanSpec};
pub(crate) use worker::{Turn, Worker};

/// A registered scan.
#[derive(Clone, Debug)]
pub struct Scan {
    pub(crate) id: ScanId,
    pub(crate) slot: SlotIndex,
    pub(crate) table: TableId,
    pub(crate) device: DeviceId,
    pub(crate) groups: IndexSet<GroupIndex>,
    /// The only pages that it reads, in order, if it selected_pages [CS04 §4.2].
    pub(crate) selected_pages: Option<Vec<PageId>>,
    pub(crate) order: Order,
    pub(crate) weight: u32,
    pub(crate) workers: Vec<Worker>,
    /// Bytes of the largest chunk that it was registered for.
    pub(crate) chunk_bytes_max: u64,
    /// Chunks still to be handed out, whole or failed.
    pub(crate) needed: HierarchicalBitSet<ChunkIndex>,
    /// Needed chunks with no page missing from the pool.
    pub(crate) available: HierarchicalBitSet<ChunkIndex>,
    /// Needed chunks with a page that has to be asked for: neither in the pool nor being read.
    pub(crate) cold: HierarchicalBitSet<ChunkIndex>,
    /// Time that a worker takes for a chunk, smoothed; 0 until one was done.
    pub(crate) chunk_ns: u64,
    /// How fast it goes through its rows.
    pub(crate) rate: ScanRate,
    pub(crate) failed: bool,
    pub(crate) report: ScanReport,
    /// Needed chunks that are there, of which something that it reads is decoded.
    pub(crate) decoded: DecodedChunks,
    /// How it stood when that was last indexed.
    pub(crate) indexed: Option<IndexKeys>,
}

impl Scan {
    /// A scan of these chunks that needs none of them yet: [`State::need`](crate::State::need) files them.
    pub(crate) fn new(
        id: ScanId,
        (slot, device): (SlotIndex, DeviceId),
        spec: &ScanSpec,
        groups: IndexSet<GroupIndex>,
        selected_pages: Option<Vec<PageId>>,
    ) -> Self {
        Self {
            id,
            slot,
            table: spec.table,
            device,
            groups,
            selected_pages,
            order: spec.order,
            weight: spec.weight,
            workers: vec![Worker::Idle; spec.workers],
            chunk_bytes_max: 0,
            needed: HierarchicalBitSet::new(),
            available: HierarchicalBitSet::new(),
            cold: HierarchicalBitSet::new(),
            chunk_ns: 0,
            rate: ScanRate::default(),
            failed: false,
            report: ScanReport::default(),
            decoded: DecodedChunks::default(),
            indexed: None,
        }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> ScanId {
        self.id
    }

    /// Its place in sets of scans of its table.
    #[must_use]
    pub fn slot(&self) -> SlotIndex {
        self.slot
    }

    /// How much it counts beside others, at least 1.
    #[must_use]
    pub fn weight(&self) -> u32 {
        self.weight
    }

    /// Its table.
    #[must_use]
    pub fn table(&self) -> TableId {
        self.table
    }

    /// Where its table is read from.
    #[must_use]
    pub fn device(&self) -> DeviceId {
        self.device
    }

    /// Its column groups.
    #[must_use]
    pub fn groups(&self) -> &IndexSet<GroupIndex> {
        &self.groups
    }

    /// Whether it reads single pages of its chunks instead of whole ones. No class of chunks counts such a scan.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        self.selected_pages.is_some()
    }

    /// Whether it reads a page of a column group of its table, if it needs a chunk that the page is part of.
    #[must_use]
    pub fn reads(&self, group: GroupIndex, page: PageId) -> bool {
        self.groups.contains(group) && self.picks_page(page)
    }

    fn picks_page(&self, page: PageId) -> bool {
        self.selected_pages
            .as_ref()
            .is_none_or(|selected_pages| selected_pages.binary_search(&page).is_ok())
    }

    /// The distinct pages of a chunk of its table that it reads, group by group.
    pub fn pages<'a>(
        &'a self,
        table: &'a Table,
        chunk: ChunkIndex,
    ) -> impl Iterator<Item = PageId> + 'a {
        let slices = self.groups.iter().flat_map(move |group| table.slice(chunk, group));
        slices.copied().filter(|&page| self.picks_page(page))
    }

    /// Whether the order of chunks matters to it.
    #[must_use]
    pub fn order(&self) -> Order {
        self.order
    }

    /// Whether it is known when it comes to a page: it goes in order, and reads whole chunks.
    #[must_use]
    pub fn goes_in_order(&self) -> bool {
        self.order == Order::InOrder && !self.is_sparse()
    }

    /// How much it reads in all, in bytes, if all its chunks are as wide as the widest: what it is short or long by. 0 if
    /// it reads selected pages only.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.chunks_in_all().saturating_mul(self.chunk_bytes_max)
    }

    /// The chunks that it reads in all. 0 if it reads selected pages only.
    #[must_use]
    pub fn chunks_in_all(&self) -> u64 {
        if self.is_sparse() { 0 } else { self.report.chunks_needed }
    }

    /// Chunks that it has still to receive.
    #[must_use]
    pub fn needed(&self) -> &HierarchicalBitSet<ChunkIndex> {
        &self.needed
    }

    /// Needed chunks whose pages are all in the pool.
    #[must_use]
    pub fn available(&self) -> &HierarchicalBitSet<ChunkIndex> {
        &self.available
    }

    /// Needed chunks with pages that nobody has asked for yet.
    #[must_use]
    pub fn cold(&self) -> &HierarchicalBitSet<ChunkIndex> {
        &self.cold
    }

    /// Chunks it could be handed at once: needed, all pages in the pool. In order, only the first needed one counts.
    pub fn deliverable(&self) -> impl Iterator<Item = ChunkIndex> + '_ {
        let (any, first) = match self.order {
            Order::Any => (Some(self.available.iter()), None),
            Order::InOrder => {
                (None, self.needed.first().filter(|&first| self.could_be_handed(first)))
            }
        };
        any.into_iter().flatten().chain(first)
    }

    /// Whether it could be handed this chunk at once, see [`deliverable`](Self::deliverable).
    #[must_use]
    pub fn could_be_handed(&self, chunk: ChunkIndex) -> bool {
        let is_next = || self.order == Order::Any || self.needed.first() == Some(chunk);
        self.is_available(chunk) && is_next()
    }

    /// Whether it could be handed a chunk at once.
    #[must_use]
    pub fn is_deliverable(&self) -> bool {
        match self.order {
            Order::Any => !self.available.is_empty(),
            Order::InOrder => self.deliverable().next().is_some(),
        }
    }

    /// Whether all pages of a needed chunk are in the pool.
    #[must_use]
    pub fn is_available(&self, chunk: ChunkIndex) -> bool {
        self.available.contains(chunk)
    }

    /// Whether all pages of a needed chunk are in the pool or being read.
    #[must_use]
    pub fn is_covered(&self, chunk: ChunkIndex) -> bool {
        self.needed.contains(chunk) && !self.cold.contains(chunk)
    }

    /// Needed chunks with pages that nobody has asked for yet, as far ahead as the scan may use them.
    pub fn loadable(&self) -> impl Iterator<Item = ChunkIndex> + '_ {
        let (any, ahead) = match self.order {
            Order::Any => (Some(self.cold.iter()), None),
            Order::InOrder => (None, Some(self.needed.iter().take(self.chunks_ahead()))),
        };
        let ahead = ahead.into_iter().flatten().filter(|&chunk| self.cold.contains(chunk));
        any.into_iter().flatten().chain(ahead)
    }

    /// Nanoseconds that one of its workers takes for a chunk, smoothed; `None` until one was done without a pause.
    #[must_use]
    pub fn chunk_ns(&self) -> Option<u64> {
        (self.chunk_ns > 0).then_some(self.chunk_ns)
    }

    /// Picoseconds from row to row, waits included, smoothed; `None` until two chunks were handed out.
    #[must_use]
    pub fn row_ps(&self, now: Time) -> Option<u64> {
        self.rate.row_ps(now)
    }

    /// A worker has done a chunk in this time.
    pub(crate) fn worked(&mut self, ns: u64) {
        let ns = ns.max(1);
        self.chunk_ns = if self.chunk_ns == 0 { ns } else { (self.chunk_ns * 3 + ns) / 4 };
    }

    /// What it has got so far.
    #[must_use]
    pub fn report(&self) -> ScanReport {
        self.report
    }

    /// Bytes of memory for what it needs.
    pub(crate) fn memory_bytes(&self) -> usize {
        [&self.needed, &self.available, &self.cold]
            .into_iter()
            .map(HierarchicalBitSet::memory_bytes)
            .sum()
    }

    /// It cannot go on: nobody waits for it any more.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
        for worker in &mut self.workers {
            if matches!(worker, Worker::Waiting { .. }) {
                *worker = Worker::Finished;
            }
        }
    }

    pub(crate) fn worker(&mut self, worker: WorkerIndex) -> Option<&mut Worker> {
        self.workers.get_mut(worker.as_usize())
    }
}
