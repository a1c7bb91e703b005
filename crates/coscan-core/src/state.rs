//! All that the buffer manager knows, and the transitions that keep its counts right.
//!
//! Policies read it; only the state machine in [`crate::ActiveBufferManager`] changes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::classes::Classes;
use crate::ids::{
    ChunkIndex, GroupIndex, Index, LoadId, PageId, PageIndex, ScanId, SlotIndex, TableId, Time,
};
use crate::layout::Layout;
use crate::pool::{Page, Place, Pool};
use crate::scan::Scan;
use crate::set::IndexSet;

/// A registered table.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) layout: Arc<Layout>,
    pub(crate) pages: Vec<Page>,
    /// Where the pages of slice (chunk, group) are, at `chunk * group_count + group`.
    pub(crate) slices: Vec<Places>,
    pub(crate) classes: Classes,
    /// Its running scans, oldest first.
    pub(crate) scans: Vec<ScanId>,
    /// The running scan at each slot.
    pub(crate) slots: Vec<Option<ScanId>>,
    /// The chunk of the load that was started last.
    pub(crate) last_load: Option<ChunkIndex>,
    /// Slices that the caller holds decoded now.
    pub(crate) decoded: BTreeSet<(ChunkIndex, GroupIndex)>,
}

/// Where the pages of a slice are: how many in which place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Places {
    cold: u32,
    reading: u32,
    cached: u32,
}

impl Places {
    fn count(&mut self, place: Place) -> &mut u32 {
        match place {
            Place::Cold => &mut self.cold,
            Place::Reading(_) => &mut self.reading,
            Place::Cached => &mut self.cached,
        }
    }
}

impl Table {
    /// A table of which nothing is there.
    pub(crate) fn new(layout: Arc<Layout>) -> Self {
        let slices = layout.chunks().flat_map(|chunk| {
            let groups = (0..layout.group_count()).map(GroupIndex::from_usize);
            let layout = &layout;
            groups.map(move |group| {
                let cold = u32::try_from(layout.slice(chunk, group).len());
                Places { cold: cold.expect("fewer than 2^32 pages"), ..Places::default() }
            })
        });
        Self {
            pages: vec![Page::COLD; layout.page_count()],
            slices: slices.collect(),
            classes: Classes::new(layout.chunk_count(), layout.group_count()),
            scans: Vec::new(),
            slots: Vec::new(),
            last_load: None,
            decoded: BTreeSet::new(),
            layout,
        }
    }

    /// Its running scans, oldest first.
    #[must_use]
    pub fn scans(&self) -> &[ScanId] {
        &self.scans
    }

    /// Its chunks by who needs them and what of them is there.
    #[must_use]
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// The chunk of the load that was started last.
    #[must_use]
    pub fn last_load(&self) -> Option<ChunkIndex> {
        self.last_load
    }

    /// Gives a new scan a slot.
    pub(crate) fn take_slot(&mut self, scan: ScanId) -> SlotIndex {
        let free = self.slots.iter().position(Option::is_none);
        let position = free.unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[position] = Some(scan);
        SlotIndex::from_usize(position)
    }

    /// Its layout.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// Pages of one chunk that are being read.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) scan: ScanId,
    pub(crate) table: TableId,
    /// Pages not reported yet.
    pub(crate) unreported: Vec<PageIndex>,
    /// Pages pinned until the load ends: what it reads, and what its scan needs of the chunk besides. So a load leaves
    /// a whole chunk behind, not half of one [CS07 §6.2, "avoiding data waste"].
    pub(crate) held: Vec<PageIndex>,
    pub(crate) started: Time,
}

/// What a policy may look at to decide.
#[derive(Clone, Debug)]
pub struct State {
    pub(crate) now: Time,
    pub(crate) tables: BTreeMap<TableId, Table>,
    pub(crate) scans: BTreeMap<ScanId, Scan>,
    pub(crate) pool: Pool,
    pub(crate) loads: BTreeMap<LoadId, Load>,
    /// Average time of a load, smoothed; 0 until the first one ended.
    pub(crate) load_ns: u64,
}

impl State {
    pub(crate) fn new(pool_bytes: u64) -> Self {
        Self {
            now: Time::default(),
            tables: BTreeMap::new(),
            scans: BTreeMap::new(),
            pool: Pool::new(pool_bytes),
            loads: BTreeMap::new(),
            load_ns: 0,
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

    /// All tables, oldest first.
    pub fn tables(&self) -> impl Iterator<Item = (TableId, &Table)> {
        self.tables.iter().map(|(&id, table)| (id, table))
    }

    /// A running scan.
    #[must_use]
    pub fn scan(&self, scan: ScanId) -> Option<&Scan> {
        self.scans.get(&scan)
    }

    /// How many scans run.
    #[must_use]
    pub fn scan_count(&self) -> usize {
        self.scans.len()
    }

    /// All running scans, oldest first.
    pub fn scans(&self) -> impl Iterator<Item = &Scan> {
        self.scans.values()
    }

    /// The running scans of a table, oldest first.
    pub fn scans_of(&self, table: TableId) -> impl Iterator<Item = &Scan> + Clone {
        self.scans.values().filter(move |scan| scan.table == table)
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

    /// The scans of a table at these slots.
    pub fn scans_at<'a>(
        &'a self,
        table: &'a Table,
        slots: &'a IndexSet<SlotIndex>,
    ) -> impl Iterator<Item = &'a Scan> + Clone {
        slots.iter().filter_map(|slot| self.scan_at(table, slot))
    }

    /// The scan of a table at a slot.
    #[must_use]
    pub fn scan_at(&self, table: &Table, slot: SlotIndex) -> Option<&Scan> {
        table.slots.get(slot.as_usize()).copied().flatten().and_then(|id| self.scan(id))
    }

    /// The slots of a table's scans that pass a test.
    #[must_use]
    pub fn slots_where(&self, table: TableId, test: impl Fn(&Scan) -> bool) -> IndexSet<SlotIndex> {
        self.scans_of(table).filter(|scan| test(scan)).map(Scan::slot).collect()
    }

    /// How many scans still need a slice.
    #[must_use]
    pub fn interested_in_slice(
        &self,
        table: TableId,
        chunk: ChunkIndex,
        group: GroupIndex,
    ) -> usize {
        self.interested(table, chunk).filter(|scan| scan.groups.contains(group)).count()
    }

    /// Cached pages, least recently used first.
    pub fn cached_pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.pool.cached.iter().map(|&(_, id)| id)
    }

    /// Cached pages that no scan will come to, least recently used first.
    pub fn unwanted_pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.pool.unwanted.iter().map(|&(_, id)| id)
    }

    /// Whether a page is in the pool.
    #[must_use]
    pub fn is_cached(&self, id: PageId) -> bool {
        self.page(id).place == Place::Cached
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
        self.table(id.table).layout.bytes_of(id.page)
    }

    /// The distinct pages that some column groups of a chunk need, group by group.
    #[must_use]
    pub fn pages(
        &self,
        table: TableId,
        chunk: ChunkIndex,
        groups: &IndexSet<GroupIndex>,
    ) -> Vec<PageId> {
        let layout = self.table(table).layout();
        let slices = groups.iter().flat_map(|group| layout.slice(chunk, group));
        slices.map(|&page| PageId { table, page }).collect()
    }

    /// Bytes of those pages that are neither in the pool nor being read.
    #[must_use]
    pub fn cold_bytes(
        &self,
        table: TableId,
        chunk: ChunkIndex,
        groups: &IndexSet<GroupIndex>,
    ) -> u64 {
        self.sum_bytes(table, chunk, groups, Place::Cold)
    }

    /// Bytes of those pages that are in the pool.
    #[must_use]
    pub fn cached_bytes(
        &self,
        table: TableId,
        chunk: ChunkIndex,
        groups: &IndexSet<GroupIndex>,
    ) -> u64 {
        self.sum_bytes(table, chunk, groups, Place::Cached)
    }

    /// Chunks of which the caller holds something decoded now, in order.
    pub fn decoded_chunks(&self, table: TableId) -> impl Iterator<Item = ChunkIndex> + '_ {
        let mut last = None;
        let chunks = self.table(table).decoded.iter().map(|&(chunk, _)| chunk);
        chunks.filter(move |&chunk| last.replace(chunk) != Some(chunk))
    }

    /// How many of some column groups of a chunk the caller holds decoded now.
    #[must_use]
    pub fn decoded_groups(
        &self,
        table: TableId,
        chunk: ChunkIndex,
        groups: &IndexSet<GroupIndex>,
    ) -> usize {
        let decoded = &self.table(table).decoded;
        groups.iter().filter(|&group| decoded.contains(&(chunk, group))).count()
    }

    fn sum_bytes(
        &self,
        table: TableId,
        chunk: ChunkIndex,
        groups: &IndexSet<GroupIndex>,
        place: Place,
    ) -> u64 {
        let table = self.table(table);
        let pages = groups.iter().flat_map(|group| table.layout.slice(chunk, group));
        let there = pages.filter(|page| table.pages[page.as_usize()].place == place);
        there.map(|&page| table.layout.bytes_of(page)).sum()
    }

    pub(crate) fn page(&self, id: PageId) -> &Page {
        &self.table(id.table).pages[id.page.as_usize()]
    }

    fn page_mut(&mut self, id: PageId) -> (&mut Page, &mut Pool) {
        let table = self.tables.get_mut(&id.table).expect("a page's table stays registered");
        (&mut table.pages[id.page.as_usize()], &mut self.pool)
    }

    /// Moves a page to another place: room, orders and the counts of every scan that needs it follow.
    pub(crate) fn move_page(&mut self, id: PageId, to: Place) {
        let bytes = self.bytes_of(id);
        let (page, pool) = self.page_mut(id);
        let from = std::mem::replace(&mut page.place, to);
        assert!(to != Place::Cold || page.pins == 0, "I2: a page in use is not evicted");
        match (from, to) {
            (Place::Cold, Place::Reading(_)) => pool.take(bytes),
            (Place::Reading(_), Place::Cached) => pool.file(id, page),
            (Place::Reading(_), Place::Cold) => pool.give(bytes),
            (Place::Cached, Place::Cold) => {
                pool.unfile(id, page);
                pool.give(bytes);
                page.read_for = None;
            }
            _ => unreachable!("I2: no page goes from {from:?} to {to:?}"),
        }
        self.recount(id, from, to);
    }

    /// Follows a page with its slices, the classes of its chunks and what the scans that need them have.
    fn recount(&mut self, id: PageId, from: Place, to: Place) {
        let table = self.tables.get_mut(&id.table).expect("a page's table stays registered");
        let group = table.layout.group_of(id.page);
        for &chunk in table.layout.chunks_of(id.page) {
            let slice = chunk.as_usize() * table.layout.group_count() + group.as_usize();
            let places = &mut table.slices[slice];
            let before = *places;
            *places.count(from) -= 1;
            *places.count(to) += 1;
            let any = |places: &Places| (places.cold > 0, places.reading > 0, places.cached > 0);
            if any(places) == any(&before) {
                continue;
            }
            let (cold, reading, cached) = any(places);
            table.classes.change(chunk, |key| {
                key.cold.set(group, cold);
                key.reading.set(group, reading);
                key.cached.set(group, cached);
            });
            let key = table.classes.class_of(chunk).key();
            for slot in key.scans.iter() {
                let scan = table.slots[slot.as_usize()].and_then(|id| self.scans.get_mut(&id));
                let scan = scan.expect("a class lists running scans");
                if scan.groups.contains(group) {
                    scan.refile(chunk, key);
                }
            }
        }
    }

    /// Files chunks that a new scan needs, and says that their pages are wanted.
    pub(crate) fn need(&mut self, scan: ScanId, chunks: &IndexSet<ChunkIndex>) {
        let scan = self.scans.get_mut(&scan).expect("the scan was just registered");
        let table = self.tables.get_mut(&scan.table).expect("a scan's table stays registered");
        let slot = scan.slot;
        table.classes.set_groups(slot, &scan.groups);
        table.classes.change_all(chunks.iter(), |key| {
            key.scans.insert(slot);
        });
        for chunk in chunks.iter() {
            scan.needed.insert(chunk);
            scan.refile(chunk, table.classes.class_of(chunk).key());
            for page in scan.groups.iter().flat_map(|group| table.layout.slice(chunk, group)) {
                let id = PageId { table: scan.table, page: *page };
                let page = &mut table.pages[page.as_usize()];
                page.wanted += 1;
                self.pool.refile(id, page);
            }
        }
    }

    /// Takes chunks off what a scan needs; their pages are wanted by one less.
    pub(crate) fn unneed(&mut self, scan: ScanId, chunks: &[ChunkIndex]) {
        let scan = self.scans.get_mut(&scan).expect("the scan runs");
        let table = self.tables.get_mut(&scan.table).expect("a scan's table stays registered");
        let slot = scan.slot;
        table.classes.change_all(chunks.iter().copied(), |key| {
            key.scans.remove(slot);
        });
        for &chunk in chunks {
            scan.forget(chunk);
            for page in scan.groups.iter().flat_map(|group| table.layout.slice(chunk, group)) {
                let id = PageId { table: scan.table, page: *page };
                let page = &mut table.pages[page.as_usize()];
                page.wanted = page.wanted.checked_sub(1).expect("a needed page was wanted");
                self.pool.refile(id, page);
            }
        }
    }

    pub(crate) fn pin(&mut self, id: PageId) {
        let (page, _) = self.page_mut(id);
        assert_ne!(page.place, Place::Cold, "I2: only a page in the pool, or on its way, is held");
        page.pins += 1;
    }

    pub(crate) fn unpin(&mut self, id: PageId) {
        let (page, pool) = self.page_mut(id);
        page.pins = page.pins.checked_sub(1).expect("I2: a page released was in use");
        pool.file(id, page);
    }

    /// A page that could not be read: no load can hold it.
    pub(crate) fn give_up_holds(&mut self, id: PageId) {
        let (page, pins) = (id.page, self.page(id).pins);
        for load in self.loads.values_mut().filter(|load| load.table == id.table) {
            load.held.retain(|&held| held != page);
        }
        for _ in 0..pins {
            self.unpin(id); // Only loads hold a page that is not in the pool.
        }
    }

    /// Takes a load off: what it held may go, and the time it took enters the average.
    pub(crate) fn end_load(&mut self, load: LoadId) {
        let record = self.loads.remove(&load).expect("only a load under way ends");
        for page in record.held {
            self.unpin(PageId { table: record.table, page });
        }
        let load_ns = self.now.since(record.started).max(1);
        self.load_ns = if self.load_ns == 0 { load_ns } else { (self.load_ns * 7 + load_ns) / 8 };
    }

    /// Remembers for whom a page is read, or takes that back.
    pub(crate) fn set_read_for(&mut self, id: PageId, scan: Option<ScanId>) -> Option<ScanId> {
        std::mem::replace(&mut self.page_mut(id).0.read_for, scan)
    }
}
