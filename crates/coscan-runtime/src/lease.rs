//! Leases: a chunk handed to a worker, until its columns are open.

use std::sync::Arc;

use bytes::Bytes;
use coscan_core::{ChunkIndex, PageId};

use crate::decode_cache::SliceKey;
use crate::destructor::InDestructor;
use crate::driver::{Driver, Message, RequestId};
use crate::error::ScanError;

/// The answer to a worker that asked for a chunk: a chunk, no more chunks, or why it cannot go on.
pub(crate) type Answer = Result<Option<Lease>, ScanError>;

/// A chunk that a worker was handed: its stored pages stay in the pool, and the decoded columns that the worker will take
/// stay in the decode cache, until this is dropped. Then the chunk returns to its scan, whose workers get it again: no row
/// of it was taken.
#[derive(Debug)]
pub(crate) struct Lease {
    driver: Arc<Driver>,
    request: RequestId,
    /// Of core.
    chunk: ChunkIndex,
    /// Sorted by page.
    pages: Vec<(PageId, Bytes)>,
    /// Columns that other scans may take decoded, too, and that the worker has not taken yet.
    untaken: Vec<SliceKey>,
    is_opened: bool,
}

impl Lease {
    pub(crate) fn new(
        driver: Arc<Driver>,
        request: RequestId,
        chunk: ChunkIndex,
        pages: Vec<(PageId, Bytes)>,
        untaken: Vec<SliceKey>,
    ) -> Self {
        Self { driver, request, chunk, pages, untaken, is_opened: false }
    }

    /// The chunk of core.
    pub(crate) fn chunk(&self) -> ChunkIndex {
        self.chunk
    }

    /// The worker needs the pages no longer: it goes on with what it has opened.
    pub(crate) fn opened(mut self) {
        debug_assert!(self.untaken.is_empty(), "it has taken all columns that it shares");
        self.is_opened = true;
        self.driver.offer(Message::ChunkOpened(self.request));
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
            if self.driver.decoded().taken(key) {
                self.driver.offer(Message::SliceTaken(key));
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let _destructor = InDestructor::enter();
        if !self.is_opened {
            let untaken = std::mem::take(&mut self.untaken);
            self.driver.post(Message::ChunkReturned { request: self.request, untaken });
        }
    }
}
