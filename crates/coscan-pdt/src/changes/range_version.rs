//! Identifies the changes of a range of rows.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use super::range::RangeChanges;
use crate::block::BlockChanges;

/// Identifies the changes of a range of stable rows. If two versions of a file have equal ones for a range, a query sees the same
/// rows there. The reverse does not hold: blocks are compared by address, so equal changes made separately differ, as do
/// blocks in which only rows outside the range have changed.
///
/// It does not keep the changes, only the emptied allocations of their blocks, so that no address is used again.
#[derive(Clone)]
pub struct RangeVersion<V: Clone, K: Ord + Clone = ()> {
    /// The changed blocks. While a weak reference exists, no other block gets its address.
    blocks: Arc<[Weak<BlockChanges<V, K>>]>,
}

impl<V: Clone, K: Ord + Clone> RangeChanges<'_, V, K> {
    /// Identifies these changes. Time grows with the changed blocks of the range.
    #[must_use]
    pub fn version(&self) -> RangeVersion<V, K> {
        RangeVersion { blocks: self.blocks().map(|(block, _)| block.downgrade()).collect() }
    }
}

impl<V: Clone, K: Ord + Clone> RangeVersion<V, K> {
    /// The approximate memory in bytes, with the allocations that it keeps.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let counters = 2 * size_of::<usize>();
        let allocation = counters + size_of::<BlockChanges<V, K>>();
        self.blocks.len() * (size_of::<Weak<BlockChanges<V, K>>>() + allocation)
    }

    fn addresses(&self) -> impl Iterator<Item = *const BlockChanges<V, K>> {
        self.blocks.iter().map(Weak::as_ptr)
    }
}

impl<V: Clone, K: Ord + Clone> PartialEq for RangeVersion<V, K> {
    fn eq(&self, other: &Self) -> bool {
        self.addresses().eq(other.addresses())
    }
}

impl<V: Clone, K: Ord + Clone> Eq for RangeVersion<V, K> {}

impl<V: Clone, K: Ord + Clone> Hash for RangeVersion<V, K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.addresses().for_each(|address| address.hash(state));
    }
}

impl<V: Clone, K: Ord + Clone> fmt::Debug for RangeVersion<V, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.addresses()).finish()
    }
}
