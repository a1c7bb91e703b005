//! Leases: a chunk handed to a worker, until its columns are open.

use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use coscan_core::{ChunkIndex, PageId};

use crate::chunks::decode_cache::SliceKey;
use crate::driver::{Driver, Message, RequestId};
use crate::error::ScanError;
use crate::sync::destructor::InDestructor;

/// The answer to a worker that asked for a chunk: a chunk, no more chunks, or the reason why it cannot proceed.
pub(crate) type Answer = Result<Option<Lease>, ScanError>;

/// A chunk that a worker was handed. Its stored pages stay in the pool, and the decoded columns that the worker will
/// take stay in the decode cache, until this is dropped. Then the chunk returns to its scan, whose workers get it
/// again, since no row of it was taken.
///
/// While the worker [waits](Self::wait), all this may be taken back from it, since the time of its next poll is
/// unknown.
#[derive(Debug)]
pub(crate) struct Lease {
    driver: Arc<Driver>,
    request: RequestId,
    /// The chunk of core.
    chunk: ChunkIndex,
    held: Arc<HeldChunk>,
    is_opened: bool,
}

/// The chunk was taken back from a worker that waited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Revoked;

/// The content of a lease. The state holds it, too, to take it back.
#[derive(Debug)]
pub(crate) struct HeldChunk(Mutex<Held>);

#[derive(Debug)]
struct Held {
    use_: Use,
    resources: ChunkResources,
}

/// Whether the worker runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    Running,
    Waiting,
    Revoked,
}

/// The resources that a chunk in use holds.
#[derive(Debug, Default)]
pub(crate) struct ChunkResources {
    /// The bytes of its pages, sorted by page.
    pub(crate) pages: Vec<(PageId, Bytes)>,
    /// Columns that other scans may take decoded, too, and that the worker has not taken yet.
    pub(crate) untaken: Vec<SliceKey>,
}

impl HeldChunk {
    pub(crate) fn new(resources: ChunkResources) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Held { use_: Use::Running, resources })))
    }

    /// Takes everything back if the worker waits. The caller drops it, not under a lock.
    pub(crate) fn revoke(&self) -> Option<ChunkResources> {
        let mut held = self.lock();
        (held.use_ == Use::Waiting).then(|| {
            held.use_ = Use::Revoked;
            take(&mut held.resources)
        })
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    pub(crate) fn new(
        driver: Arc<Driver>,
        request: RequestId,
        chunk: ChunkIndex,
        held: Arc<HeldChunk>,
    ) -> Self {
        Self { driver, request, chunk, held, is_opened: false }
    }

    /// The chunk of core.
    pub(crate) fn chunk(&self) -> ChunkIndex {
        self.chunk
    }

    /// Notes that the worker no longer needs the pages and continues with what it has opened.
    pub(crate) fn opened(mut self) {
        debug_assert!(
            self.held.lock().resources.untaken.is_empty(),
            "it has taken all columns that it shares"
        );
        self.is_opened = true;
        self.driver.offer(Message::ChunkOpened(self.request));
    }

    /// Waits for `until`. Meanwhile the chunk may be taken back.
    ///
    /// # Errors
    /// If the chunk was taken back.
    pub(crate) async fn wait(&self, until: impl Future<Output = ()>) -> Result<(), Revoked> {
        self.held.lock().use_ = Use::Waiting;
        until.await;
        let mut held = self.held.lock();
        if held.use_ == Use::Revoked {
            return Err(Revoked);
        }
        held.use_ = Use::Running;
        Ok(())
    }

    /// The stored bytes of a page of this chunk.
    ///
    /// # Panics
    /// If the scan does not need the page.
    pub(crate) fn page(&self, page: PageId) -> Bytes {
        let pages = &self.held.lock().resources.pages;
        let position = pages.binary_search_by_key(&page, |(page, _)| *page);
        pages[position.expect("a lease holds every page of its chunk")].1.clone()
    }

    /// Notes that the worker has this column, or will decode it for itself.
    pub(crate) fn taken(&self, key: SliceKey) {
        let is_taken = {
            let untaken = &mut self.held.lock().resources.untaken;
            let position = untaken.iter().position(|&untaken| untaken == key);
            position.map(|position| untaken.swap_remove(position)).is_some()
        };
        if is_taken && self.driver.decoded().taken(key) {
            self.driver.offer(Message::SliceTaken(key));
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let _destructor = InDestructor::enter();
        let resources = take(&mut self.held.lock().resources);
        if !self.is_opened {
            let untaken = resources.untaken;
            self.driver.post(Message::ChunkReturned { request: self.request, untaken });
        }
    }
}
