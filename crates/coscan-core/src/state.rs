//! All that the buffer manager knows.
//!
//! Policies read it; only the state machine in [`crate::ActiveBufferManager`] changes it, through `transitions`.

mod load_candidates;
mod scan_index;
mod scans;
mod transitions;

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{
    ChunkIndex, DeviceId, GroupIndex, LoadId, PageId, ScanId, SliceId, TableId, Time,
};
use crate::pages::{Page, Pages, Place};
use crate::pool::Pool;
use crate::scan::Scan;
use crate::set::IndexSet;
use crate::table::Table;

pub use load_candidates::{CandidateKind, LoadCandidates};
pub(crate) use scan_index::ScanIndex;

/// Pages of one chunk that are being read.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) table: TableId,
    pub(crate) device: DeviceId,
    pub(crate) chunk: ChunkIndex,
    /// Pages not reported yet.
    pub(crate) unreported: Vec<PageId>,
    /// Pages pinned until the load ends: what it reads, and what its scan needs of the chunk besides. So a load leaves
    /// a whole chunk behind, not half of one [CS07 §6.2, "avoiding data waste"].
    pub(crate) held: Vec<PageId>,
    pub(crate) started: Time,
    pub(crate) urgent: bool,
}

/// What a policy may look at to decide.
#[derive(Clone, Debug)]
pub struct State {
    pub(crate) now: Time,
    pub(crate) pages: Pages,
    pub(crate) tables: BTreeMap<TableId, Table>,
    /// How many tables are read from each device.
    pub(crate) devices: BTreeMap<DeviceId, usize>,
    pub(crate) scans: BTreeMap<ScanId, Scan>,
    pub(crate) pool: Pool,
    pub(crate) loads: BTreeMap<LoadId, Load>,
    /// Average time of a load, smoothed; 0 until the first one ended.
    pub(crate) load_ns: u64,
    /// Nanoseconds after which who waits is served first.
    pub(crate) wait_max_ns: u64,
    pub(crate) scan_index: ScanIndex,
    /// Tables of which what scans need, or what is in the pool, has changed since victims were last chosen.
    pub(crate) changed: BTreeSet<TableId>,
    /// How many times a worker has begun to wait.
    pub(crate) turns: u64,
}

impl State {
    pub(crate) fn new(pool_bytes: u64, wait_max_ns: u64) -> Self {
        Self {
            now: Time::default(),
            pages: Pages::default(),
            tables: BTreeMap::new(),
            devices: BTreeMap::new(),
            scans: BTreeMap::new(),
            pool: Pool::new(pool_bytes),
            loads: BTreeMap::new(),
            load_ns: 0,
            wait_max_ns,
            scan_index: ScanIndex::default(),
            changed: BTreeSet::new(),
            turns: 0,
        }
    }

    /// The time of the last command or event.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Nanoseconds that a load takes on average, smoothed; `None` until the first one ended.
    #[must_use]
    pub fn load_ns(&self) -> Option<u64> {
        (self.load_ns > 0).then_some(self.load_ns)
    }

    /// Whether who waits since then is served first, whatever else a policy prefers.
    #[must_use]
    pub fn is_overdue(&self, since: Time) -> bool {
        self.now.since(since) >= self.wait_max_ns
    }

    /// The most bytes the pool may hold.
    #[must_use]
    pub fn pool_bytes(&self) -> u64 {
        self.pool.limit_bytes
    }

    /// Bytes in the pool and on their way to it.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.pool.held_bytes
    }

    /// A registered table.
    ///
    /// # Panics
    /// If there is none with this id.
    #[must_use]
    pub fn table(&self, table: TableId) -> &Table {
        self.tables.get(&table).expect("a scan's table stays registered")
    }

    /// Whether a table is registered.
    #[must_use]
    pub fn knows(&self, table: TableId) -> bool {
        self.tables.contains_key(&table)
    }

    /// The devices of all tables, each once.
    pub(crate) fn devices(&self) -> impl Iterator<Item = DeviceId> + '_ {
        self.devices.keys().copied()
    }

    /// All tables, oldest first.
    pub fn tables(&self) -> impl Iterator<Item = (TableId, &Table)> {
        self.tables.iter().map(|(&id, table)| (id, table))
    }

    /// Cached pages, least recently used first.
    pub fn cached_pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.pool.cached.iter().map(|&(_, id)| id)
    }

    /// Cached pages that a scan will come to, each once, least recently used first.
    #[must_use]
    pub fn cached_pages_of(&self, scan: &Scan) -> Vec<PageId> {
        let table = self.table(scan.table);
        let has_some = |chunk: &ChunkIndex| !table.classes.class_of(*chunk).key().cached.is_empty();
        let pages = scan.needed.iter().filter(has_some).flat_map(|chunk| scan.pages(table, chunk));
        let used = pages.map(|id| (self.page(id).used_at, id));
        let mut cached: Vec<_> =
            used.filter(|&(_, id)| self.page(id).place == Place::Cached).collect();
        cached.sort_unstable();
        cached.dedup();
        cached.into_iter().map(|(_, id)| id).collect()
    }

    /// Cached pages that no scan will come to, least recently used first.
    pub fn unwanted_pages(&self) -> impl Iterator<Item = PageId> + '_ {
        let mut tables: Vec<_> =
            self.pool.unwanted.values().map(|pages| pages.iter().peekable()).collect();
        std::iter::from_fn(move || {
            let oldest = tables.iter_mut().filter_map(|pages| Some((*pages.peek()?, pages)));
            let (&(_, id), pages) = oldest.min_by_key(|((used_at, _), _)| *used_at)?;
            pages.next();
            Some(id)
        })
    }

    /// Cached pages of a table that no scan will come to, least recently used first, each with its last use (a count of
    /// uses). A page that several tables list counts for the one that listed it first.
    pub fn unwanted_pages_of(&self, table: TableId) -> impl Iterator<Item = (u64, PageId)> + '_ {
        self.pool.unwanted.get(&Some(table)).into_iter().flatten().copied()
    }

    /// Cached pages that no table lists, least recently used first.
    pub fn unlisted_pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.pool.unwanted.get(&None).into_iter().flatten().map(|&(_, id)| id)
    }

    /// Whether a page is neither in the pool nor being read.
    #[must_use]
    pub fn is_cold(&self, id: PageId) -> bool {
        self.page(id).place == Place::Cold
    }

    /// Whether a page may go: in the pool, and nobody uses it (I2).
    #[must_use]
    pub fn is_evictable(&self, id: PageId) -> bool {
        let page = self.page(id);
        page.place == Place::Cached && page.pins == 0
    }

    /// Whether no scan will come to a page.
    #[must_use]
    pub fn is_unwanted(&self, id: PageId) -> bool {
        self.page(id).wanted == 0
    }

    /// Bytes of a page as stored.
    #[must_use]
    pub fn bytes_of(&self, id: PageId) -> u64 {
        self.pages[id].bytes
    }

    /// The distinct pages that some column groups of a chunk need, group by group.
    #[must_use]
    pub fn pages(
        &self,
        table: TableId,
        chunk: ChunkIndex,
        groups: &IndexSet<GroupIndex>,
    ) -> Vec<PageId> {
        let table = self.table(table);
        groups.iter().flat_map(|group| table.slice(chunk, group)).copied().collect()
    }

    /// The distinct pages of a chunk that a scan reads, group by group.
    #[must_use]
    pub fn pages_of(&self, scan: &Scan, chunk: ChunkIndex) -> Vec<PageId> {
        scan.pages(self.table(scan.table), chunk).collect()
    }

    /// Bytes of the pages that some column groups of a chunk need and that are neither in the pool nor being read.
    #[must_use]
    pub fn cold_bytes(
        &self,
        table: TableId,
        chunk: ChunkIndex,
        groups: &IndexSet<GroupIndex>,
    ) -> u64 {
        self.sum_bytes(table, chunk, groups, Place::Cold)
    }

    /// Bytes of the pages that some column groups of a chunk need and that are in the pool.
    #[must_use]
    pub fn cached_bytes(
        &self,
        table: TableId,
        chunk: ChunkIndex,
        groups: &IndexSet<GroupIndex>,
    ) -> u64 {
        self.sum_bytes(table, chunk, groups, Place::Cached)
    }

    fn sum_bytes(
        &self,
        table: TableId,
        chunk: ChunkIndex,
        groups: &IndexSet<GroupIndex>,
        place: Place,
    ) -> u64 {
        let table = self.table(table);
        let pages = groups.iter().flat_map(|group| table.slice(chunk, group));
        let pages = pages.map(|&id| &self.pages[id]).filter(|page| page.place == place);
        pages.map(|page| page.bytes).sum()
    }

    /// Bytes of memory for what is known of the chunks of a table, of the pages that it listed first and of what its
    /// scans need; which pages a chunk has, which says what the table is, is not counted.
    #[must_use]
    pub fn memory_bytes(&self, table: TableId) -> usize {
        let scans = self.scans_of(table).map(Scan::memory_bytes);
        let listed = self.pages.iter().filter(|(_, page)| page.home() == Some(table));
        let pages = listed.count() * size_of::<Page>();
        self.table(table).memory_bytes() + pages + scans.sum::<usize>()
    }

    /// The slices that a page is part of.
    #[must_use]
    pub fn slices_of(&self, id: PageId) -> &[SliceId] {
        self.page(id).slices()
    }

    /// The first table that lists a page, if any does.
    #[must_use]
    pub fn home(&self, id: PageId) -> Option<TableId> {
        self.page(id).home()
    }

    /// The chunks of the table of a scan that a page is part of, if the scan reads it there.
    pub fn chunks_read<'a>(
        &'a self,
        scan: &'a Scan,
        id: PageId,
    ) -> impl Iterator<Item = ChunkIndex> + Clone + 'a {
        let slices = self.slices_of(id).iter().filter(|slice| slice.table == scan.table);
        slices.filter(move |slice| scan.reads(slice.group, id)).map(|slice| slice.chunk)
    }

    /// The scans that need a chunk of which a page is part, and read it there; each once.
    #[must_use]
    pub fn readers(&self, id: PageId) -> Vec<&Scan> {
        let mut readers: Vec<&Scan> = Vec::new();
        for slice in self.slices_of(id) {
            let counted = self.interested(slice.table, slice.chunk);
            let sparse_scans =
                self.sparse_scans(slice.table).filter(|scan| scan.needed().contains(slice.chunk));
            for scan in counted.chain(sparse_scans).filter(|scan| scan.reads(slice.group, id)) {
                if readers.iter().all(|other| other.id != scan.id) {
                    readers.push(scan);
                }
            }
        }
        readers
    }

    pub(crate) fn page(&self, id: PageId) -> &Page {
        &self.pages[id]
    }
}
