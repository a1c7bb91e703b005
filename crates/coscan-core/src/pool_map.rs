//! A picture of a table for people: which of its pages are in the pool, and which scans need them, with its chunks in
//! bins.
//!
//! A table may have a million chunks, so a picture is taken step by step. The caller may process commands between two
//! steps; the picture is then not of one moment.

use crate::ids::{ChunkIndex, GroupIndex, Index, ScanPosition, TableId};
use crate::pages::Residency;
use crate::set::IndexSet;
use crate::state::State;
use crate::table::Table;

/// Numbers of scans that [`PoolMap::shared_bytes`] tells apart: 1, 2, 3, 4, and 5 or more [CS11 Figure 6.1].
pub const SHARING_LEVELS: usize = 5;

/// The pages of one column group in one bin of chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MapCell {
    /// Pages neither in the pool nor being read.
    pub cold: u32,
    /// Pages being read.
    pub loading: u32,
    /// Pages in the pool that are not in use.
    pub stored: u32,
    /// Pages in the pool that a worker uses or a load holds.
    pub in_use: u32,
    /// Slices, not pages, of which a column is decoded.
    pub decoded: u32,
    /// Running scans that need the column group of a chunk of the bin.
    pub scans: u32,
}

impl MapCell {
    /// Its pages.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.cold + self.loading + self.stored + self.in_use
    }
}

/// A table as the pool has it: column groups × bins of chunks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolMap {
    /// The table.
    pub table: TableId,
    /// The number of column groups.
    pub groups: usize,
    /// The number of bins, all of about as many chunks.
    pub bins: usize,
    /// The indexes of all chunks lay below this when the picture was begun. Bin `b` has those from
    /// `b * chunk_index_end / bins`, rounded up, on.
    pub chunk_index_end: usize,
    /// The bins of the first column group, then those of the next.
    pub cells: Vec<MapCell>,
    /// Bytes of the pages that running scans need, by how many need them: 1 in front, [`SHARING_LEVELS`] or more last. A
    /// page of two chunks that a scan needs counts as if two scans needed it, in each of them.
    pub shared_bytes: [u64; SHARING_LEVELS],
}

impl PoolMap {
    /// The cell of a column group and a bin.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn cell(&self, group: GroupIndex, bin: usize) -> &MapCell {
        &self.cells[group.as_usize() * self.bins + bin]
    }

    fn first_chunk(&self, bin: usize) -> usize {
        (bin * self.chunk_index_end).div_ceil(self.bins)
    }

    fn bin_of(&self, chunk: usize) -> usize {
        chunk * self.bins / self.chunk_index_end
    }
}

/// A [`PoolMap`] in the making.
#[derive(Clone, Debug)]
pub struct PoolMapBuilder {
    map: PoolMap,
    next: usize,
    /// Scans that need a chunk of the bin of the chunk before `next`.
    scans: IndexSet<ScanPosition>,
}

impl PoolMapBuilder {
    /// Begins a picture of a table in `bins_max` bins at most; `None` if there is no such table.
    #[must_use]
    pub fn new(state: &State, table: TableId, bins_max: usize) -> Option<Self> {
        let registered = state.tables.get(&table)?;
        let chunk_index_end = registered.chunk_index_end();
        let (groups, bins) = (registered.group_count(), bins_max.max(1).min(chunk_index_end));
        let cells = vec![MapCell::default(); groups * bins];
        let shared_bytes = [0; SHARING_LEVELS];
        let map = PoolMap { table, groups, bins, chunk_index_end, cells, shared_bytes };
        Some(Self { map, next: 0, scans: IndexSet::new() })
    }

    /// Looks at the next chunks: at most `slices_max` slices, but at least one chunk. Returns false once it has seen
    /// all, or the table is gone.
    pub fn step(&mut self, state: &State, slices_max: usize) -> bool {
        let Some(table) = state.tables.get(&self.map.table) else { return false };
        let chunks = (slices_max / self.map.groups.max(1)).max(1);
        let end = self.map.chunk_index_end.min(self.next.saturating_add(chunks));
        for position in self.next..end {
            let chunk = ChunkIndex::from_usize(position);
            let bin = self.map.bin_of(position);
            if table.chunks.contains(chunk) {
                self.add_chunk(state, table, chunk, bin);
            }
            if position + 1 == self.map.first_chunk(bin + 1) {
                self.count_scans(state, table, bin);
            }
        }
        self.next = end;
        end < self.map.chunk_index_end
    }

    /// The picture, as far as it was taken.
    #[must_use]
    pub fn into_map(self) -> PoolMap {
        self.map
    }

    fn add_chunk(&mut self, state: &State, table: &Table, chunk: ChunkIndex, bin: usize) {
        let class = table.classes.class_of(chunk);
        self.scans.union_with(&class.key().scans);
        let has_sparse = !table.sparse_scans.is_empty();
        for group in (0..self.map.groups).map(GroupIndex::from_usize) {
            let counts = table.slices[table.slice_position(chunk, group)];
            let cell = &mut self.map.cells[group.as_usize() * self.map.bins + bin];
            cell.cold += counts.cold();
            cell.loading += counts.reading();
            let in_pool = counts.cached(table.slice(chunk, group).len());
            if in_pool > 0 {
                let pages = table.slice(chunk, group).iter().map(|&id| state.page(id));
                let cached = pages.filter(|page| page.residency == Residency::Cached);
                let in_use = cached.filter(|page| page.pins > 0).count();
                let in_use = u32::try_from(in_use).unwrap_or(u32::MAX).min(in_pool);
                cell.in_use += in_use;
                cell.stored += in_pool - in_use;
            }
            if has_sparse || class.needed_groups().contains(group) {
                for page in table.slice(chunk, group).iter().map(|&id| state.page(id)) {
                    if let Some(level) = page.needed_count.checked_sub(1) {
                        let level = (level as usize).min(SHARING_LEVELS - 1);
                        self.map.shared_bytes[level] += page.bytes;
                    }
                }
            }
        }
        for group in table.decoded.groups_of(chunk) {
            self.map.cells[group.as_usize() * self.map.bins + bin].decoded += 1;
        }
    }

    /// Counts the scans of a bin of which all chunks were seen.
    fn count_scans(&mut self, state: &State, table: &Table, bin: usize) {
        let mut scans = std::mem::take(&mut self.scans);
        let first = ChunkIndex::from_usize(self.map.first_chunk(bin));
        let end = ChunkIndex::from_usize(self.map.first_chunk(bin + 1));
        for scan in state.sparse_scans(self.map.table) {
            if scan.needed().iter_from(first).next().is_some_and(|chunk| chunk < end) {
                scans.insert(scan.slot());
            }
        }
        if scans.is_empty() {
            return;
        }
        for (group, readers) in table.classes.readers().iter().enumerate() {
            let scans = readers.intersection_len(&scans);
            self.map.cells[group * self.map.bins + bin].scans =
                u32::try_from(scans).unwrap_or(u32::MAX);
        }
    }
}

impl State {
    /// The picture of a table in at most `bins_max` bins, taken at once; `None` if there is no such table. If the state
    /// is locked meanwhile, take it in steps: see [`PoolMapBuilder`].
    #[must_use]
    pub fn pool_map(&self, table: TableId, bins_max: usize) -> Option<PoolMap> {
        let mut survey = PoolMapBuilder::new(self, table, bins_max)?;
        while survey.step(self, usize::MAX) {}
        Some(survey.into_map())
    }
}
