//! A chunk in the hands of a worker, until it has opened its columns.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use coscan_core::{ChunkIndex, PageIndex, ScanId, WorkerIndex};

use crate::decode_cache::SliceKey;
use crate::driver::Driver;
use crate::placement::Placement;
use crate::processors::Running;

/// A chunk that a worker was handed: its stored pages stay in the pool, and the columns that it will take decoded are
/// kept for it, until this is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) driver: Arc<Driver>,
    pub(crate) placement: Arc<Placement>,
    pub(crate) scan: ScanId,
    pub(crate) worker: WorkerIndex,
    /// Of the table.
    pub(crate) chunk: ChunkIndex,
    /// Sorted by page.
    pub(crate) pages: Vec<(PageIndex, Bytes)>,
    /// Columns that others may take, too, decoded, and that the worker has not taken yet.
    pub(crate) untaken: Vec<usize>,
    /// For whoever takes the chunk from here on: until it is dropped, too, longer scans give way.
    pub(crate) at_work: Option<Running>,
    pub(crate) hold: Hold,
}

/// What becomes of a chunk when its lease is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hold {
    /// It goes back to the scan, whose workers get it again: nothing of it was taken.
    Untouched,
    /// Its pages are free, the worker goes on with what it made of them.
    Opened,
    /// It has gone back.
    Returned,
}

impl Lease {
    /// The worker has all that it needs of the pages.
    pub(crate) fn opened(mut self) {
        self.hold = Hold::Opened;
    }

    /// The stored bytes of a page of this chunk.
    ///
    /// # Panics
    /// If the scan does not need the page.
    pub(crate) fn page(&self, page: PageIndex) -> Bytes {
        let position = self.pages.binary_search_by_key(&page, |(page, _)| *page);
        self.pages[position.expect("a lease holds every page of its chunk")].1.clone()
    }

    /// Whether a column of the table may be decoded for all who want it.
    pub(crate) fn shares(&self, column: usize) -> bool {
        self.placement.shared_column(self.chunk, column).is_some()
    }

    /// A column that may be decoded for all who want it.
    ///
    /// # Panics
    /// If it may not.
    pub(crate) fn key(&self, column: usize) -> SliceKey {
        let (file, chunk) = self.placement.place_of(self.chunk);
        let column = self.placement.shared_column(self.chunk, column);
        SliceKey { file, chunk, column: column.expect("only shared columns have a key") }
    }

    /// The worker has this column, or will decode it for itself.
    pub(crate) fn taken(&mut self, column: usize) {
        if let Some(position) = self.untaken.iter().position(|&untaken| untaken == column) {
            self.untaken.swap_remove(position);
            self.driver.slice_taken(self.key(column));
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        for column in std::mem::take(&mut self.untaken) {
            self.driver.slice_taken(self.key(column));
        }
        self.pages.clear();
        self.driver.leases.fetch_sub(1, Ordering::Relaxed);
        match self.hold {
            Hold::Untouched => self.driver.withdraw(self.scan, self.worker),
            Hold::Opened => self.driver.release(self.scan, self.worker),
            Hold::Returned => {}
        }
    }
}
