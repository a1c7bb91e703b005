//! The scans of a table that wait for data, or soon will.

use crate::ids::SlotIndex;
use crate::set::IndexSet;

/// The slots of a table's scans that wait for data, or soon will: at each position those that would be starved with so
/// many chunks less.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct StarvationSets(pub(super) [IndexSet<SlotIndex>; 8]);

impl StarvationSets {
    /// Ready chunks that a scan can spare, at most, for it to be in one of the sets.
    pub(crate) const SPARE_MAX: usize = 7;

    /// The slots of scans that are starved with so many chunks less; `None` if they are not kept for as many.
    pub(crate) fn with_less(&self, chunks: usize) -> Option<&IndexSet<SlotIndex>> {
        self.0.get(chunks)
    }

    /// Sets the chunks that a scan can spare before it starves; `None` if it never does, or can spare more than
    /// [`Self::SPARE_MAX`].
    pub(crate) fn set(&mut self, slot: SlotIndex, spare: Option<usize>) {
        for (less, set) in self.0.iter_mut().enumerate() {
            set.set(slot, spare.is_some_and(|spare| spare <= less));
        }
    }
}
