//! The scans of a table that wait for data, or soon will, and the chunks that scans in order use next.

use std::collections::BTreeMap;

use crate::ids::{ChunkIndex, ScanPosition};
use crate::set::IndexSet;

/// The scans of a table that may starve if it loses pages, by their slots.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct StarvationSets {
    /// The scans that would be starved with fewer chunks, at the position of that number.
    with_less: [IndexSet<ScanPosition>; 8],
    /// The scans that use each chunk next, of those that go in order and read whole chunks. They depend on no other
    /// chunk.
    next: BTreeMap<ChunkIndex, IndexSet<ScanPosition>>,
    /// The chunks of `next`, by scan.
    next_of: BTreeMap<ScanPosition, Vec<ChunkIndex>>,
}

impl StarvationSets {
    /// The most ready chunks that a scan in one of the sets can spare.
    pub(crate) const SPARE_MAX: usize = 7;

    /// The slots of scans that are starved with `chunks` fewer; `None` if no set is kept for that number.
    pub(crate) fn with_less(&self, chunks: usize) -> Option<&IndexSet<ScanPosition>> {
        self.with_less.get(chunks)
    }

    /// The slots of scans that are starved.
    pub(super) fn starved(&self) -> &IndexSet<ScanPosition> {
        &self.with_less[0]
    }

    /// The slots of scans that are starved, or would be with one chunk less.
    pub(super) fn almost_starved(&self) -> &IndexSet<ScanPosition> {
        &self.with_less[1]
    }

    /// The slots of scans in order that use a chunk next.
    pub(crate) fn next(&self, chunk: ChunkIndex) -> Option<&IndexSet<ScanPosition>> {
        self.next.get(&chunk)
    }

    /// Sets the chunks that a scan can spare before it starves; `None` if it never does, or can spare more than
    /// [`Self::SPARE_MAX`].
    pub(crate) fn set_spare(&mut self, slot: ScanPosition, spare: Option<usize>) {
        for (less, set) in self.with_less.iter_mut().enumerate() {
            set.set(slot, spare.is_some_and(|spare| spare <= less));
        }
    }

    /// Sets the chunks that a scan in order uses next.
    pub(crate) fn set_next<I: Iterator<Item = ChunkIndex>>(
        &mut self,
        slot: ScanPosition,
        next: impl Fn() -> I,
    ) {
        let known = self.next_of.get(&slot).map_or(&[][..], Vec::as_slice);
        if !next().eq(known.iter().copied()) {
            self.move_next(slot, next().collect());
        }
    }

    /// Forgets a scan.
    pub(crate) fn remove(&mut self, slot: ScanPosition) {
        self.set_spare(slot, None);
        self.move_next(slot, Vec::new());
    }

    fn move_next(&mut self, slot: ScanPosition, to: Vec<ChunkIndex>) {
        for chunk in self.next_of.remove(&slot).into_iter().flatten() {
            let slots = self.next.get_mut(&chunk).expect("both ways are kept");
            slots.remove(slot);
            if slots.is_empty() {
                self.next.remove(&chunk);
            }
        }
        for &chunk in &to {
            self.next.entry(chunk).or_default().insert(slot);
        }
        if !to.is_empty() {
            self.next_of.insert(slot, to);
        }
    }
}
