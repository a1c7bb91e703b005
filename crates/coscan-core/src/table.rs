//! A registered table: where its pages are, who scans it, and the classes of its chunks.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::classes::Classes;
use crate::ids::{ChunkIndex, GroupIndex, Index, ScanId, SlotIndex};
use crate::layout::Layout;
use crate::pool::{Page, Place};
use crate::scan::Scan;

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
    /// Of those, the ones that pick pages: classes do not count them.
    pub(crate) picking: Vec<ScanId>,
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
    pub(crate) cold: u32,
    pub(crate) reading: u32,
    pub(crate) cached: u32,
}

impl Places {
    pub(crate) fn count(&mut self, place: Place) -> &mut u32 {
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
            picking: Vec::new(),
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

    /// Files a chunk that a picking scan needs by where the pages are that it picks.
    pub(crate) fn refile_picks(&self, scan: &mut Scan, chunk: ChunkIndex) {
        let pages: Vec<_> = scan.pages(&self.layout, chunk).collect();
        scan.refile_by(chunk, pages.into_iter().map(|page| self.pages[page.as_usize()].place));
    }

    /// Its layout.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Bytes of memory for what is known of its chunks and pages, the layout not counted.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.pages.capacity() * size_of::<Page>()
            + self.slices.capacity() * size_of::<Places>()
            + self.classes.memory_bytes()
    }
}
