//! A scan: the chunks of a table that a query still needs, and the state of its workers.
//!
//! [`ScanSpec`] is the request, [`Scan`] the registered scan.

mod chunk_sets;
mod index_keys;
mod rate;
mod remote;
mod size;
mod spec;
mod status;
mod worker;

use crate::decoded::DecodedChunks;
use crate::ids::{
    ChunkIndex, ComputationId, DeviceId, GroupIndex, Index, PageId, ScanId, ScanPosition, TableId,
    Time, WorkerIndex,
};
use crate::set::{HierarchicalBitSet, IndexSet};
use crate::table::Table;

pub(crate) use index_keys::IndexKeys;
pub(crate) use rate::ScanRate;
pub(crate) use spec::indexes;
pub use spec::{Order, PriorityBounds, PriorityClass, RemoteQuery, ScanCounts, ScanSpec};
pub(crate) use worker::{Ticket, Worker};

/// A registered scan.
#[derive(Clone, Debug)]
pub struct Scan {
    pub(crate) id: ScanId,
    pub(crate) slot: ScanPosition,
    pub(crate) table: TableId,
    pub(crate) device: DeviceId,
    pub(crate) groups: IndexSet<GroupIndex>,
    /// The only pages that it reads, in order, if it is sparse [CS04 §4.2].
    pub(crate) selected_pages: Option<Vec<PageId>>,
    /// The query at another server that it reads for.
    pub(crate) remote: Option<RemoteQuery>,
    pub(crate) order: Order,
    pub(crate) weight: u32,
    /// What its query computes of each chunk, if others may compute the same.
    pub(crate) computation: Option<ComputationId>,
    pub(crate) workers: Vec<Worker>,
    /// Bytes of the largest chunk that it was registered for.
    pub(crate) chunk_bytes_max: u64,
    /// Bytes of the selected pages of all chunks that it was registered for, chunk by chunk, if it is sparse.
    pub(crate) selected_bytes: u64,
    /// Chunks still to be handed out.
    pub(crate) needed: HierarchicalBitSet<ChunkIndex>,
    /// Needed chunks of which all pages are in the pool.
    pub(crate) available: HierarchicalBitSet<ChunkIndex>,
    /// Needed chunks with a page that is neither in the pool nor being read.
    pub(crate) cold: HierarchicalBitSet<ChunkIndex>,
    /// The cold chunks whose cold pages are all in the pool of another server; empty if the scan is sparse.
    pub(crate) nearby: HierarchicalBitSet<ChunkIndex>,
    /// Loads for it that read only pages in the pools of other servers.
    pub(crate) nearby_loads: usize,
    /// Nanoseconds that a worker takes for a chunk, smoothed; 0 until the first one is done.
    pub(crate) chunk_ns: u64,
    pub(crate) rate: ScanRate,
    /// When a worker was last handed a chunk.
    pub(crate) handed_at: Option<Time>,
    pub(crate) failed: bool,
    pub(crate) report: ScanCounts,
    /// Available chunks of which some column groups that it reads are decoded.
    pub(crate) decoded: DecodedChunks,
    /// The keys under which it is indexed.
    pub(crate) indexed: Option<IndexKeys>,
}

impl Scan {
    /// A scan that needs no chunks yet: [`State::need`](crate::State::need) adds them.
    pub(crate) fn new(
        id: ScanId,
        (slot, device): (ScanPosition, DeviceId),
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
            remote: None,
            order: spec.order,
            weight: spec.weight,
            computation: spec.computation,
            workers: vec![Worker::Idle; spec.workers],
            chunk_bytes_max: 0,
            selected_bytes: 0,
            needed: HierarchicalBitSet::new(),
            available: HierarchicalBitSet::new(),
            cold: HierarchicalBitSet::new(),
            nearby: HierarchicalBitSet::new(),
            nearby_loads: 0,
            chunk_ns: 0,
            rate: ScanRate::default(),
            handed_at: None,
            failed: false,
            report: ScanCounts::default(),
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
    pub fn slot(&self) -> ScanPosition {
        self.slot
    }

    /// Its weight among the running scans, at least 1.
    #[must_use]
    pub fn weight(&self) -> u32 {
        self.weight
    }

    /// Its table.
    #[must_use]
    pub fn table(&self) -> TableId {
        self.table
    }

    /// The device that its table is read from.
    #[must_use]
    pub fn device(&self) -> DeviceId {
        self.device
    }

    /// Its column groups.
    #[must_use]
    pub fn groups(&self) -> &IndexSet<GroupIndex> {
        &self.groups
    }

    /// Whether it reads selected pages of its chunks instead of whole chunks. Classes of chunks do not count such
    /// scans.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        self.selected_pages.is_some()
    }

    /// Whether it reads a page of a column group of its table, if it needs a chunk that the page is part of.
    #[must_use]
    pub fn reads(&self, group: GroupIndex, page: PageId) -> bool {
        self.groups.contains(group) && self.selects_page(page)
    }

    fn selects_page(&self, page: PageId) -> bool {
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
        slices.copied().filter(|&page| self.selects_page(page))
    }

    /// Whether the order of chunks matters to it.
    #[must_use]
    pub fn order(&self) -> Order {
        self.order
    }

    /// Whether the times of its next uses are known: it takes whole chunks in order.
    #[must_use]
    pub fn goes_in_order(&self) -> bool {
        self.order == Order::InOrder && !self.is_sparse()
    }

    /// The chunks that it has not been handed yet.
    #[must_use]
    pub fn needed(&self) -> &HierarchicalBitSet<ChunkIndex> {
        &self.needed
    }

    /// Needed chunks whose pages are all in the pool.
    #[must_use]
    pub fn available(&self) -> &HierarchicalBitSet<ChunkIndex> {
        &self.available
    }

    /// Needed chunks with pages that are neither in the pool nor being read.
    #[must_use]
    pub fn cold(&self) -> &HierarchicalBitSet<ChunkIndex> {
        &self.cold
    }

    /// Chunks that it could be handed at once: the available ones; in order, the first needed one if it is available.
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

    /// Needed chunks with pages to be read, for a scan in order only as far ahead as it may use them.
    pub fn loadable(&self) -> impl Iterator<Item = ChunkIndex> + '_ {
        let (any, ahead) = match self.order {
            Order::Any => (Some(self.cold.iter()), None),
            Order::InOrder => (None, Some(self.needed.iter().take(self.chunks_ahead()))),
        };
        let ahead = ahead.into_iter().flatten().filter(|&chunk| self.cold.contains(chunk));
        any.into_iter().flatten().chain(ahead)
    }

    /// Nanoseconds that one of its workers takes for a chunk, smoothed; `None` until one is done without a pause.
    #[must_use]
    pub fn chunk_ns(&self) -> Option<u64> {
        (self.chunk_ns > 0).then_some(self.chunk_ns)
    }

    /// Its scan rate in picoseconds for a row, waits included, smoothed; `None` until two chunks were handed out.
    #[must_use]
    pub fn row_ps(&self, now: Time) -> Option<u64> {
        self.rate.row_ps(now)
    }

    /// Counts the time that a worker took for a chunk.
    pub(crate) fn worked(&mut self, ns: u64) {
        let ns = ns.max(1);
        self.chunk_ns = if self.chunk_ns == 0 { ns } else { (self.chunk_ns * 3 + ns) / 4 };
    }

    /// Its progress.
    #[must_use]
    pub fn report(&self) -> ScanCounts {
        self.report
    }

    /// Whether a page that it needs could not be read: it gets nothing any more.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Marks the scan as failed, because a page that it needs could not be read. Its waiting workers end.
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
