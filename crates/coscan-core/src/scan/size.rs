//! The size of a scan, which decides its priority class.

use super::Scan;
use crate::ids::PageId;
use crate::set::HierarchicalBitSet;

/// A sparse scan is a lookup if its pages have no more bytes than this many of its chunks, which is what a tiny scan of
/// whole chunks reads at most.
const LOOKUP_BYTES_IN_CHUNKS_MAX: u64 = 2;

/// The most chunks of a lookup. Each takes a request, however few bytes of it are read.
const LOOKUP_CHUNKS_MAX: u64 = 64;

impl Scan {
    /// Whether it reads so few selected pages that it is tiny, whatever else runs.
    #[must_use]
    pub fn is_lookup(&self) -> bool {
        if self.is_remote() {
            return false; // Its query may read many.
        }
        let bytes_max = self.chunk_bytes_max.saturating_mul(LOOKUP_BYTES_IN_CHUNKS_MAX);
        self.is_sparse()
            && self.selected_bytes <= bytes_max
            && self.report.chunks_needed <= LOOKUP_CHUNKS_MAX
    }

    /// The bytes that its query reads in all, which decide its priority class: those of its pages if it is sparse, otherwise those
    /// of its chunks if all are as wide as the widest. 0 for a lookup.
    #[must_use]
    pub fn size(&self) -> u64 {
        let elsewhere = self.remote.map_or(0, |query| query.bytes_in_all);
        let own = match self.is_sparse() {
            true if self.is_lookup() => 0,
            true => self.selected_bytes,
            false => self.report.chunks_needed.saturating_mul(self.chunk_bytes_max),
        };
        own.saturating_add(elsewhere)
    }

    /// The chunks that its query reads in all, or reads pages of. 0 for a lookup.
    #[must_use]
    pub fn chunks_in_all(&self) -> u64 {
        let elsewhere = self.remote.map_or(0, |query| query.chunks_in_all);
        if self.is_lookup() { 0 } else { self.report.chunks_needed.saturating_add(elsewhere) }
    }

    /// Bytes of memory for its needs.
    pub(crate) fn memory_bytes(&self) -> usize {
        let chunks = [&self.needed, &self.available, &self.cold, &self.nearby].into_iter();
        let pages = self.selected_pages.as_ref().map_or(0, Vec::capacity);
        chunks.map(HierarchicalBitSet::memory_bytes).sum::<usize>() + pages * size_of::<PageId>()
    }
}
