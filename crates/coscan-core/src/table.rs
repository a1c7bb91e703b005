//! A registered table: its chunks and where their pages are, who scans it, and the classes of its chunks.

use std::collections::BTreeSet;

use crate::chunks::{ChunkSpec, Chunks};
use crate::classes::{ClassKey, Classes};
use crate::decoded::DecodedSlices;
use crate::ids::{ChunkIndex, DeviceId, GroupIndex, Index, PageId, ScanId, SlotIndex};
use crate::pages::Place;
use crate::set::IndexSet;

/// A registered table.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) device: DeviceId,
    pub(crate) chunks: Chunks,
    /// Where the pages of slice (chunk, group) are, at `chunk * group_count + group`.
    pub(crate) slices: Vec<Places>,
    pub(crate) classes: Classes,
    /// Its running scans, oldest first.
    pub(crate) scans: BTreeSet<ScanId>,
    /// Of those, the ones that read selected pages only: classes do not count them.
    pub(crate) sparse_scans: BTreeSet<ScanId>,
    /// The slots of the scans that go in order and read whole chunks.
    pub(crate) in_order: IndexSet<SlotIndex>,
    pub(crate) starved: Starved,
    /// For each column group, the slots of the scans that read it.
    pub(crate) readers: Vec<IndexSet<SlotIndex>>,
    /// The running scan at each slot.
    pub(crate) slots: Vec<Option<ScanId>>,
    free_slots: BTreeSet<SlotIndex>,
    /// The chunk of the load that was started last.
    pub(crate) last_load: Option<ChunkIndex>,
    pub(crate) decoded: DecodedSlices,
}

/// The slots of a table's starved scans.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Starved {
    pub(crate) slots: IndexSet<SlotIndex>,
    /// Those that would be with one chunk less, too.
    pub(crate) or_almost: IndexSet<SlotIndex>,
}

/// Where the pages of a slice are: how many in which place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Places {
    pub(crate) cold: u32,
    pub(crate) reading: u32,
    pub(crate) cached: u32,
}

impl Places {
    pub(crate) fn of(places: impl Iterator<Item = Place>) -> Self {
        let mut counted = Self::default();
        places.for_each(|place| *counted.count(place) += 1);
        counted
    }

    pub(crate) fn count(&mut self, place: Place) -> &mut u32 {
        match place {
            Place::Cold => &mut self.cold,
            Place::Reading(_) => &mut self.reading,
            Place::Cached => &mut self.cached,
        }
    }

    /// Makes a column group cold, being read or cached in the key of a chunk, whichever of them there is.
    pub(crate) fn enter(self, key: &mut ClassKey, group: GroupIndex) {
        key.cold.set(group, self.cold > 0);
        key.reading.set(group, self.reading > 0);
        key.cached.set(group, self.cached > 0);
    }
}

impl Table {
    /// A table without chunks.
    pub(crate) fn new(group_count: usize, device: DeviceId) -> Self {
        Self {
            device,
            chunks: Chunks::new(group_count),
            slices: Vec::new(),
            classes: Classes::default(),
            scans: BTreeSet::new(),
            sparse_scans: BTreeSet::new(),
            in_order: IndexSet::new(),
            starved: Starved::default(),
            readers: vec![IndexSet::new(); group_count],
            slots: Vec::new(),
            free_slots: BTreeSet::new(),
            last_load: None,
            decoded: DecodedSlices::default(),
        }
    }

    /// Adds a chunk, the pages of which are at these places, slice by slice.
    pub(crate) fn add_chunk(&mut self, chunk: &ChunkSpec, places: &[Places]) -> ChunkIndex {
        let index = self.chunks.add(chunk);
        let mut key = ClassKey::default();
        self.slices.resize(self.chunks.index_end() * self.group_count(), Places::default());
        for (group, places) in (0..self.group_count()).map(GroupIndex::from_usize).zip(places) {
            places.enter(&mut key, group);
            let slice = self.slice_position(index, group);
            self.slices[slice] = *places;
        }
        self.classes.add(index, &key);
        index
    }

    /// Takes a chunk out that no scan needs.
    pub(crate) fn remove_chunk(&mut self, chunk: ChunkIndex) {
        self.chunks.remove(chunk);
        self.classes.remove(chunk);
        self.decoded.forget(chunk);
    }

    pub(crate) fn slice_position(&self, chunk: ChunkIndex, group: GroupIndex) -> usize {
        chunk.as_usize() * self.group_count() + group.as_usize()
    }

    /// Its running scans, oldest first.
    #[must_use]
    pub fn scans(&self) -> &BTreeSet<ScanId> {
        &self.scans
    }

    /// Where it is read from.
    #[must_use]
    pub fn device(&self) -> DeviceId {
        self.device
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

    /// The pages that one column group of a chunk needs.
    #[must_use]
    pub fn slice(&self, chunk: ChunkIndex, group: GroupIndex) -> &[PageId] {
        self.chunks.slice(chunk, group)
    }

    /// The slots of its starved scans.
    #[must_use]
    pub fn starved(&self) -> &IndexSet<SlotIndex> {
        &self.starved.slots
    }

    /// The slots of its scans that are starved, or would be with one chunk less.
    #[must_use]
    pub fn almost_starved(&self) -> &IndexSet<SlotIndex> {
        &self.starved.or_almost
    }

    /// The slots of its scans that go in order and read whole chunks.
    #[must_use]
    pub fn in_order(&self) -> &IndexSet<SlotIndex> {
        &self.in_order
    }

    /// The slots of its scans that read any of these column groups.
    #[must_use]
    pub fn readers_of(&self, groups: &IndexSet<GroupIndex>) -> IndexSet<SlotIndex> {
        let mut readers = IndexSet::new();
        groups.iter().for_each(|group| readers.union_with(&self.readers[group.as_usize()]));
        readers
    }

    /// Gives a new scan the lowest slot that is free.
    pub(crate) fn take_slot(&mut self, scan: ScanId) -> SlotIndex {
        let slot = self.free_slots.pop_first().unwrap_or_else(|| {
            self.slots.push(None);
            SlotIndex::from_usize(self.slots.len() - 1)
        });
        self.slots[slot.as_usize()] = Some(scan);
        slot
    }

    pub(crate) fn free_slot(&mut self, slot: SlotIndex) {
        self.slots[slot.as_usize()] = None;
        self.free_slots.insert(slot);
    }

    /// Bytes of memory for what is known of its chunks; which pages they have is not counted.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.slices.capacity() * size_of::<Places>() + self.classes.memory_bytes()
    }
}
