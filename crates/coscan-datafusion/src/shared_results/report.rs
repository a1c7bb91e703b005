//! What queries share of their results, for those who watch.

use std::sync::atomic::Ordering;

use coscan_runtime::BufferManager;

use super::state::ChunkState;
use super::store::ResultStore;

/// What the aggregations of all queries of a manager share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedResults {
    /// The kinds of aggregations whose results are shared or kept.
    pub fragments: usize,
    /// The memory of the published results, in bytes. It is part of
    /// [`ManagerReport::metadata_bytes`](coscan_runtime::ManagerReport::metadata_bytes).
    pub bytes: u64,
    /// The chunks whose results were published since the manager was made.
    pub chunks_published: u64,
    /// The chunks whose results queries have taken from others, instead of reading and computing them.
    pub chunks_taken: u64,
    /// The chunks whose results were too large to be published, or for which there was no memory.
    pub chunks_refused: u64,
}

impl SharedResults {
    /// What is shared now.
    #[must_use]
    pub fn of(manager: &BufferManager) -> Self {
        let store = ResultStore::of(manager);
        let counts = &store.counts;
        Self {
            fragments: store.fragment_count(),
            bytes: manager.metadata_bytes_of::<ChunkState>(),
            chunks_published: counts.published.load(Ordering::Relaxed),
            chunks_taken: counts.taken.load(Ordering::Relaxed),
            chunks_refused: counts.refused.load(Ordering::Relaxed),
        }
    }
}
