//! The pages as policies see them: which are cached, needed or in use, and which scans read them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, btree_set};

use crate::ids::{ChunkIndex, GroupIndex, PageId, SliceId, TableId};
use crate::pages::{Page, Residency};
use crate::scan::Scan;
use crate::set::IndexSet;
use crate::state::State;

/// A byte in the pool of another server costs one in this many from a device. In simulation, with 16 servers and little
/// memory, an equal cost led to half as many reads again from devices.
const NEARBY_DIVISOR: u64 = 8;

impl State {
    /// Cached pages, least recently used first.
    pub fn cached_pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.pool.cached.iter().map(|&(_, id)| id)
    }

    /// Cached pages that a scan reads of these chunks, each once, least recently used first.
    #[must_use]
    pub fn cached_pages_of(&self, scan: &Scan, chunks: &[ChunkIndex]) -> Vec<PageId> {
        let table = self.table(scan.table);
        let is_partly_cached =
            |chunk: &ChunkIndex| !table.classes.class_of(*chunk).key().cached.is_empty();
        let cached = chunks.iter().copied().filter(is_partly_cached);
        let pages = cached.flat_map(|chunk| scan.pages(table, chunk));
        let used = pages.map(|id| (self.page(id).used_at, id));
        let mut cached: Vec<_> =
            used.filter(|&(_, id)| self.page(id).residency == Residency::Cached).collect();
        cached.sort_unstable();
        cached.dedup();
        cached.into_iter().map(|(_, id)| id).collect()
    }

    /// Cached pages that no running scan needs, least recently used first.
    pub fn unneeded_pages(&self) -> impl Iterator<Item = PageId> + '_ {
        let mut tables: Vec<_> = self.pool.unneeded.values().map(BTreeSet::iter).collect();
        let next_of = |(table, pages): (usize, &mut btree_set::Iter<'_, _>)| {
            pages.next().map(|&(used_at, id)| Reverse((used_at, id, table)))
        };
        // The next page of each table, least recently used first.
        let mut next: BinaryHeap<_> = tables.iter_mut().enumerate().filter_map(next_of).collect();
        std::iter::from_fn(move || {
            let Reverse((_, id, table)) = next.pop()?;
            next.extend(next_of((table, &mut tables[table])));
            Some(id)
        })
    }

    /// Cached pages that are in the pool of another server, too, least recently used first.
    pub fn copies(&self) -> impl Iterator<Item = PageId> + '_ {
        self.pool.copies.iter().map(|&(_, id)| id)
    }

    /// Cached pages of a table that no running scan needs, least recently used first, each with its last use (a count of
    /// uses). A page of several tables counts for the one that listed it first.
    pub fn unneeded_pages_of(&self, table: TableId) -> impl Iterator<Item = (u64, PageId)> + '_ {
        self.pool.unneeded.get(&Some(table)).into_iter().flatten().copied()
    }

    /// Cached pages that no table lists, least recently used first.
    pub fn unlisted_pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.pool.unneeded.get(&None).into_iter().flatten().map(|&(_, id)| id)
    }

    /// Whether a page is neither in the pool nor being read.
    #[must_use]
    pub fn is_cold(&self, id: PageId) -> bool {
        self.page(id).residency == Residency::Cold
    }

    /// Whether a page may be evicted: it is in the pool and not in use (I2).
    #[must_use]
    pub fn is_evictable(&self, id: PageId) -> bool {
        let page = self.page(id);
        page.residency == Residency::Cached && page.pins == 0
    }

    /// Whether no running scan needs a page.
    #[must_use]
    pub fn is_unneeded(&self, id: PageId) -> bool {
        self.page(id).needed_count == 0
    }

    /// Bytes of a page as stored.
    #[must_use]
    pub fn bytes_of(&self, id: PageId) -> u64 {
        self.pages[id].bytes
    }

    /// The distinct pages of some column groups of a chunk, group by group.
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

    /// Bytes of the pages of some column groups of a chunk that are neither in the pool nor being read.
    #[must_use]
    pub fn cold_bytes(
        &self,
        table: TableId,
        chunk: ChunkIndex,
        groups: &IndexSet<GroupIndex>,
    ) -> u64 {
        self.sum_bytes(table, chunk, groups, Residency::Cold)
    }

    /// The cost of reading the cold pages of some column groups of a chunk, in bytes read from a device. Bytes in the pool of
    /// another server cost less.
    #[must_use]
    pub fn read_cost(
        &self,
        table: TableId,
        chunk: ChunkIndex,
        groups: &IndexSet<GroupIndex>,
    ) -> u64 {
        let nearby = self.table(table).classes.class_of(chunk).key().nearby.intersection(groups);
        let cold_bytes = self.cold_bytes(table, chunk, groups);
        if nearby.is_empty() {
            return cold_bytes;
        }
        let nearby_bytes = self.cold_bytes(table, chunk, &nearby);
        cold_bytes - nearby_bytes + nearby_bytes / NEARBY_DIVISOR
    }

    /// Bytes of the pages of some column groups of a chunk that are in the pool.
    #[must_use]
    pub fn cached_bytes(
        &self,
        table: TableId,
        chunk: ChunkIndex,
        groups: &IndexSet<GroupIndex>,
    ) -> u64 {
        self.sum_bytes(table, chunk, groups, Residency::Cached)
    }

    fn sum_bytes(
        &self,
        table: TableId,
        chunk: ChunkIndex,
        groups: &IndexSet<GroupIndex>,
        residency: Residency,
    ) -> u64 {
        let table = self.table(table);
        let pages = groups.iter().flat_map(|group| table.slice(chunk, group));
        let pages = pages.map(|&id| &self.pages[id]).filter(|page| page.residency == residency);
        pages.map(|page| page.bytes).sum()
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
        let slices = self.slices_of(id);
        let all = slices.iter().flat_map(|slice| {
            let counted = self.interested(slice.table, slice.chunk);
            let scans = counted.chain(self.sparse_interested(slice.table, slice.chunk));
            scans.filter(|scan| scan.reads(slice.group, id))
        });
        let mut known = BTreeSet::new();
        // A scan reads a slice once.
        all.filter(|scan| slices.len() == 1 || known.insert(scan.id)).collect()
    }

    pub(crate) fn page(&self, id: PageId) -> &Page {
        &self.pages[id]
    }
}
