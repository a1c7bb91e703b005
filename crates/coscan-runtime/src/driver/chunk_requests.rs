//! A worker asks for a chunk, and fetches the answer when it is polled.
//!
//! Until then the answer waits in the state: a worker that is not polled holds no memory, only the pages of its chunk.
//! Those may be [taken back](super::revoke).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use coscan_core::{ChunkIndex, ScanId, Time, WorkerIndex};

use super::handle::Driver;
use super::message::RequestId;
use super::state::State;
use super::workers::Phase;
use crate::chunks::lease::{Answer, ChunkResources, HeldChunk, Lease};
use crate::error::ScanError;

/// The answer to a request. The request is made when this is first polled.
pub(crate) struct ChunkRequest {
    driver: Arc<Driver>,
    id: RequestId,
    is_made: bool,
}

/// A chunk as the state gives it to its worker.
type Fetched = (ChunkIndex, Arc<HeldChunk>);

impl Driver {
    /// A request of a worker for its next chunk. It replaces the one before.
    pub(crate) fn request_chunk(
        self: &Arc<Self>,
        scan: ScanId,
        worker: WorkerIndex,
    ) -> ChunkRequest {
        let serial = self.requests_made.fetch_add(1, Ordering::Relaxed);
        let id = RequestId { scan, worker, serial };
        ChunkRequest { driver: Arc::clone(self), id, is_made: false }
    }
}

impl ChunkRequest {
    pub(crate) fn id(&self) -> RequestId {
        self.id
    }
}

impl Future for ChunkRequest {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let (id, is_made) = (self.id, std::mem::replace(&mut self.is_made, true));
        let ask = |state: &mut State, now| {
            if !is_made || matches!(state.workers.phase(id), Some(Phase::Revoked)) {
                state.ask(id, now);
            }
            now
        };
        let waker = context.waker().clone(); // Others' code: not under the lock.
        let fetched = self.driver.call_then(ask, |state, now| state.fetch(id, waker, now));
        let lease = |(chunk, held)| Lease::new(Arc::clone(&self.driver), id, chunk, held);
        fetched.map(|answer| answer.map(|fetched| fetched.map(lease)))
    }
}

impl State {
    /// The answer to a request, if core has decided. Otherwise `waker` is woken when it has.
    fn fetch(
        &mut self,
        id: RequestId,
        waker: Waker,
        now: Time,
    ) -> Poll<Result<Option<Fetched>, ScanError>> {
        if let Some(kept) = self.workers.waker(id) {
            self.effects.replaced.extend(kept.replace(waker));
            return Poll::Pending;
        }
        self.effects.replaced.push(waker);
        match self.workers.phase(id) {
            Some(Phase::Delivered { .. }) => Poll::Ready(Ok(self.hand_over(id, now))),
            Some(Phase::Ended(ended)) => {
                let ended = ended.clone();
                self.workers.remove(id.scan, id.worker);
                Poll::Ready(ended.map(|()| None))
            }
            // The scan has ended, or another stream of this worker has replaced the request.
            _ => Poll::Ready(Err(self.check().err().unwrap_or(ScanError::Cancelled))),
        }
    }

    /// The chunk that a worker was handed, with what it needs to open it.
    fn hand_over(&mut self, id: RequestId, now: Time) -> Option<Fetched> {
        let Some(Phase::Delivered { chunk, expected }) = self.workers.phase(id) else {
            return None;
        };
        let (chunk, untaken) = (*chunk, expected.clone());
        let state = self.core.state();
        let registered = state.scan(id.scan).expect("core delivers to running scans");
        let running = &self.scans[&id.scan];
        let pages = state.pages_of(registered, chunk).into_iter();
        let mut pages: Vec<_> = pages.map(|page| (page, self.frames[&page].clone())).collect();
        pages.sort_unstable_by_key(|(page, _)| *page);
        let chunk_ns = registered.chunk_ns().map(|ns| ns as f64);
        let chunk_ns = chunk_ns.or_else(|| state.average_chunk_ns()).unwrap_or(1.0);
        running.activity.set_priority(self.core.priority_of(id.scan));
        running.activity.set_work_left_ns((registered.needed().len() as f64 * chunk_ns) as u64);
        let held = HeldChunk::new(ChunkResources { pages, untaken });
        self.workers.advance(id, Phase::Opening(Arc::clone(&held)), now);
        Some((chunk, held))
    }
}
