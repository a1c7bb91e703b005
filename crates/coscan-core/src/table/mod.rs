//! A registered table: its chunks, the residency of their pages, its scans, and the classes of its chunks.

mod residency;
mod starved_scans;

use std::collections::{BTreeMap, BTreeSet};

use crate::chunks::{ChunkSpec, Chunks};
use crate::classes::{ClassKey, Classes};
use crate::decoded::DecodedSlices;
use crate::ids::{ChunkIndex, DeviceId, GroupIndex, Index, PageId, ScanId, ScanPosition};
use crate::set::IndexSet;

pub(crate) use residency::{Kinds, ResidencyCounts};
pub(crate) use starved_scans::StarvationSets;

/// A registered table.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) device: DeviceId,
    pub(crate) chunks: Chunks,
    /// The pages of slice (chunk, group) by residency, at `chunk * group_count + group`.
    pub(crate) slices: Vec<ResidencyCounts>,
    pub(crate) classes: Classes,
    /// Its running scans, oldest first.
    pub(crate) scans: BTreeSet<ScanId>,
    /// The running scans that read selected pages only. Classes do not count them.
    pub(crate) sparse_scans: BTreeSet<ScanId>,
    /// The slots of the scans that go in order and read whole chunks.
    pub(crate) in_order: IndexSet<ScanPosition>,
    /// The slots of the scans that decode nothing here, because they are for other servers.
    pub(crate) for_others: IndexSet<ScanPosition>,
    pub(crate) starvation: StarvationSets,
    /// For each chunk that scans of selected pages need, their slots. No set is empty.
    pub(crate) sparse_needs: BTreeMap<ChunkIndex, IndexSet<ScanPosition>>,
    /// The running scan at each slot.
    pub(crate) slots: Vec<Option<ScanId>>,
    free_slots: BTreeSet<ScanPosition>,
    /// The chunk of the last load that was started.
    pub(crate) last_load: Option<ChunkIndex>,
    pub(crate) decoded: DecodedSlices,
}

impl Table {
    /// A table without chunks.
    pub(crate) fn new(group_count: usize, device: DeviceId) -> Self {
        Self {
            device,
            chunks: Chunks::new(group_count),
            slices: Vec::new(),
            classes: Classes::new(group_count),
            scans: BTreeSet::new(),
            sparse_scans: BTreeSet::new(),
            in_order: IndexSet::new(),
            for_others: IndexSet::new(),
            starvation: StarvationSets::default(),
            sparse_needs: BTreeMap::new(),
            slots: Vec::new(),
            free_slots: BTreeSet::new(),
            last_load: None,
            decoded: DecodedSlices::default(),
        }
    }

    /// Adds a chunk with these counts of pages, slice by slice.
    pub(crate) fn add_chunk(
        &mut self,
        chunk: &ChunkSpec,
        counts: &[ResidencyCounts],
    ) -> ChunkIndex {
        let index = self.chunks.add(chunk);
        let mut key = ClassKey::default();
        self.slices
            .resize(self.chunks.index_end() * self.group_count(), ResidencyCounts::default());
        for (group, counts) in (0..self.group_count()).map(GroupIndex::from_usize).zip(counts) {
            let page_count = chunk.slices[group.as_usize()].len();
            counts.kinds(page_count).write_to(&mut key, group);
            let slice = self.slice_position(index, group);
            self.slices[slice] = *counts;
        }
        self.classes.add(index, &key);
        index
    }

    /// Removes a chunk that no scan needs.
    pub(crate) fn remove_chunk(&mut self, chunk: ChunkIndex) {
        self.chunks.remove(chunk);
        self.classes.remove(chunk);
        let end = self.chunks.index_end();
        self.slices.truncate(end * self.group_count());
        self.classes.truncate(end);
    }

    pub(crate) fn slice_position(&self, chunk: ChunkIndex, group: GroupIndex) -> usize {
        chunk.as_usize() * self.group_count() + group.as_usize()
    }

    /// Its running scans, oldest first.
    #[must_use]
    pub fn scans(&self) -> &BTreeSet<ScanId> {
        &self.scans
    }

    /// The device that it is read from.
    #[must_use]
    pub fn device(&self) -> DeviceId {
        self.device
    }

    /// The classes of its chunks.
    #[must_use]
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// The chunk of the last load that was started.
    #[must_use]
    pub fn last_load(&self) -> Option<ChunkIndex> {
        self.last_load
    }

    /// The number of column groups.
    #[must_use]
    pub fn group_count(&self) -> usize {
        self.chunks.group_count()
    }

    /// The number of chunks.
    #[must_use]
    pub fn chunk_count(&self) -> usize {
        self.chunks.count()
    }

    /// The indexes of all chunks lie below this.
    #[must_use]
    pub fn chunk_index_end(&self) -> usize {
        self.chunks.index_end()
    }

    /// All chunks by their index.
    pub fn chunks(&self) -> impl Iterator<Item = ChunkIndex> + '_ {
        self.chunks.iter()
    }

    /// The number of rows of a chunk.
    #[must_use]
    pub fn rows(&self, chunk: ChunkIndex) -> u64 {
        self.chunks.rows(chunk)
    }

    /// The number of rows of all chunks.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.chunks.row_count()
    }

    /// The pages of one column group of a chunk.
    #[must_use]
    pub fn slice(&self, chunk: ChunkIndex, group: GroupIndex) -> &[PageId] {
        self.chunks.slice(chunk, group)
    }

    /// The slots of its starved scans.
    #[must_use]
    pub fn starved(&self) -> &IndexSet<ScanPosition> {
        self.starvation.starved()
    }

    /// The slots of its scans that are starved, or would be with one chunk less.
    #[must_use]
    pub fn almost_starved(&self) -> &IndexSet<ScanPosition> {
        self.starvation.almost_starved()
    }

    /// The slots of its scans that go in order and read whole chunks.
    #[must_use]
    pub fn in_order(&self) -> &IndexSet<ScanPosition> {
        &self.in_order
    }

    /// The slots of its scans that read any of these column groups.
    #[must_use]
    pub fn readers_of(&self, groups: &IndexSet<GroupIndex>) -> IndexSet<ScanPosition> {
        let mut readers = IndexSet::new();
        let of_group = self.classes.readers();
        groups.iter().for_each(|group| readers.union_with(&of_group[group.as_usize()]));
        readers
    }

    /// The scans for which a chunk of their class becomes available, cold or nearby, or no longer is, because its pages
    /// of a column group changed from `before` to `now`. All other scans still miss, or read, another group.
    pub(crate) fn affected(
        &self,
        chunk: ChunkIndex,
        group: GroupIndex,
        before: Kinds,
        now: Kinds,
    ) -> IndexSet<ScanPosition> {
        let key = self.classes.class_of(chunk).key();
        let of_group = self.classes.readers();
        let without = |groups: &[&IndexSet<GroupIndex>]| {
            let mut scans = key.scans.intersection(&of_group[group.as_usize()]);
            let others = groups.iter().flat_map(|groups| groups.iter());
            others
                .filter(|&other| other != group)
                .for_each(|other| scans.subtract(&of_group[other.as_usize()]));
            scans
        };
        let mut affected = IndexSet::new();
        let has_nearby = before.nearby || !key.nearby.is_empty();
        if before.nearby != now.nearby || before.cold != now.cold && has_nearby {
            affected.union_with(&without(&[]));
        }
        if before.cold != now.cold {
            affected.union_with(&without(&[&key.cold]));
        }
        if before.has_missing() != now.has_missing() {
            affected.union_with(&without(&[&key.cold, &key.reading]));
        }
        affected
    }

    /// The number of scans that need a slice, see [`State::slice_interest`](crate::State::slice_interest).
    pub(crate) fn slice_interest(&self, chunk: ChunkIndex, group: GroupIndex) -> usize {
        let readers = self.classes.readers().get(group.as_usize());
        let Some(readers) = readers.filter(|_| self.chunks.contains(chunk)) else { return 0 };
        let scans = &self.classes.class_of(chunk).key().scans;
        if self.for_others.is_empty() {
            return scans.intersection_len(readers);
        }
        let mut decoding = scans.intersection(readers);
        decoding.subtract(&self.for_others);
        decoding.len()
    }

    /// Notes that a scan of selected pages does not need a chunk any more.
    pub(crate) fn remove_sparse_need(&mut self, chunk: ChunkIndex, slot: ScanPosition) {
        if let Some(scans) = self.sparse_needs.get_mut(&chunk) {
            scans.remove(slot);
            if scans.is_empty() {
                self.sparse_needs.remove(&chunk);
            }
        }
    }

    /// Gives a new scan the lowest slot that is free.
    pub(crate) fn take_slot(&mut self, scan: ScanId) -> ScanPosition {
        let slot = self.free_slots.pop_first().unwrap_or_else(|| {
            self.slots.push(None);
            ScanPosition::from_usize(self.slots.len() - 1)
        });
        self.slots[slot.as_usize()] = Some(scan);
        slot
    }

    pub(crate) fn free_slot(&mut self, slot: ScanPosition) {
        self.slots[slot.as_usize()] = None;
        self.free_slots.insert(slot);
    }

    /// The approximate bytes of memory for a chunk.
    pub(crate) fn memory_bytes_for(chunk: &ChunkSpec) -> usize {
        let counts = chunk.slices.len() * size_of::<ResidencyCounts>();
        Chunks::memory_bytes_for(chunk) + Classes::CHUNK_MEMORY_BYTES + counts
    }

    /// Bytes of memory for the state of its chunks, not for their lists of pages.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.slices.capacity() * size_of::<ResidencyCounts>() + self.classes.memory_bytes()
    }
}
