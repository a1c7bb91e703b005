//! Leases: a chunk handed to a worker, until its columns are open.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use coscan_core::{ChunkIndex, PageId, ScanId, WorkerIndex};

use crate::cpu_scheduler::Runnable;
use crate::decode_cache::SliceKey;
use crate::error::ScanError;

/// The answer to a worker that asked for a chunk: a chunk, no more chunks, or why it cannot go on.
pub(crate) type Answer = Result<Option<Lease>, ScanError>;

/// Hands out leases and takes back what they hold.
pub(crate) trait LeaseOwner: fmt::Debug + Send + Sync {
    /// The worker has taken a decoded column of its chunk, or will not.
    fn slice_taken(&self, key: SliceKey);

    /// The lease has ended: its chunk goes where `on_drop` says.
    fn lease_ended(self: Arc<Self>, scan: ScanId, worker: WorkerIndex, on_drop: OnDrop);
}

/// A chunk that a worker was handed: its stored pages stay in the pool, and the decoded columns that the worker will take
/// stay in the decode cache, until this is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) owner: Arc<dyn LeaseOwner>,
    pub(crate) scan: ScanId,
    pub(crate) worker: WorkerIndex,
    /// Of core.
    pub(crate) chunk: ChunkIndex,
    /// Sorted by page.
    pub(crate) pages: Vec<(PageId, Bytes)>,
    /// Columns that other scans may take decoded, too, and that the worker has not taken yet.
    pub(crate) untaken: Vec<SliceKey>,
    /// Outlives the lease if the worker takes it: longer scans give way until it is dropped.
    pub(crate) runnable: Option<Runnable>,
    pub(crate) on_drop: OnDrop,
}

/// The fate of the chunk when its lease is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnDrop {
    /// It returns to the scan, whose workers get it again: no row of it was taken.
    Return,
    /// Its pages are released: the worker goes on with what it has opened.
    Release,
    /// It was returned before.
    Nothing,
}

impl Lease {
    /// The worker needs the pages no longer.
    pub(crate) fn opened(mut self) {
        self.on_drop = OnDrop::Release;
    }

    /// The bytes of all its pages.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.pages.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// The stored bytes of a page of this chunk.
    ///
    /// # Panics
    /// If the scan does not need the page.
    pub(crate) fn page(&self, page: PageId) -> Bytes {
        let position = self.pages.binary_search_by_key(&page, |(page, _)| *page);
        self.pages[position.expect("a lease holds every page of its chunk")].1.clone()
    }

    /// The worker has this column, or will decode it for itself.
    pub(crate) fn taken(&mut self, key: SliceKey) {
        if let Some(position) = self.untaken.iter().position(|&untaken| untaken == key) {
            self.untaken.swap_remove(position);
            self.owner.slice_taken(key);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        for key in std::mem::take(&mut self.untaken) {
            self.owner.slice_taken(key);
        }
        self.pages.clear();
        Arc::clone(&self.owner).lease_ended(self.scan, self.worker, self.on_drop);
    }
}
