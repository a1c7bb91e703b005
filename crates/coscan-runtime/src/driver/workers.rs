//! The workers of all scans: their requests, and the answers to these.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::task::Waker;

use coscan_core::{ChunkIndex, ScanId, Time, WorkerIndex};

use super::message::RequestId;
use crate::chunks::decode_cache::SliceKey;
use crate::chunks::lease::HeldChunk;
use crate::error::ScanError;

/// A worker's latest request.
#[derive(Debug)]
struct Request {
    serial: u64,
    /// The time when this phase began.
    since: Time,
    phase: Phase,
}

/// The phase of a request.
#[derive(Debug)]
pub(super) enum Phase {
    /// Core has not decided yet.
    Waiting { waker: Option<Waker> },
    /// Core has handed the worker this chunk, whose pages are in use from then on. The worker fetches it when it is
    /// polled. Until then it expects these decoded columns of it.
    Delivered { chunk: ChunkIndex, expected: Vec<SliceKey> },
    /// The worker opens its chunk.
    Opening(Arc<HeldChunk>),
    /// The chunk was taken back from a worker that did not use it. The worker asks again when it is polled.
    Revoked,
    /// The worker has opened its chunk, whose pages are no longer in use.
    Opened,
    /// There are no more chunks, for a reason if it is an error. The worker fetches this when it is polled.
    Ended(Result<(), ScanError>),
}

impl Phase {
    pub(super) fn into_waker(self) -> Option<Waker> {
        match self {
            Self::Waiting { waker } => waker,
            _ => None,
        }
    }

    fn uses_pages(&self) -> bool {
        matches!(self, Self::Delivered { .. } | Self::Opening(_))
    }
}

/// The latest requests of all workers of all scans.
#[derive(Debug, Default)]
pub(super) struct Workers {
    requests: BTreeMap<(ScanId, WorkerIndex), Request>,
    /// Workers that core counts as at work: they were handed a chunk, and neither ask, nor pause, nor have stopped.
    pub(super) at_work: BTreeSet<(ScanId, WorkerIndex)>,
    /// Workers whose chunks' pages are in use, by the time since which they are.
    using_pages: BTreeSet<(Time, ScanId, WorkerIndex)>,
}

impl Workers {
    /// The number of chunks whose pages are in use.
    pub(super) fn chunks_in_use(&self) -> usize {
        self.using_pages.len()
    }

    /// The time since which the first of them have been in use.
    pub(super) fn first_using_pages(&self) -> Option<Time> {
        self.using_pages.first().map(|&(since, ..)| since)
    }

    /// Workers that have held the pages of a chunk since this time or before, with the time since which they have.
    pub(super) fn using_pages_since(&self, time: Time) -> Vec<(Time, ScanId, WorkerIndex)> {
        self.using_pages.iter().copied().take_while(|(since, ..)| *since <= time).collect()
    }

    /// The phase of the worker's latest request, whichever request that is.
    pub(super) fn phase_of(&self, scan: ScanId, worker: WorkerIndex) -> Option<&Phase> {
        self.requests.get(&(scan, worker)).map(|request| &request.phase)
    }

    /// The serial number and phase of the worker's latest request, whichever request that is.
    pub(super) fn request_of(&self, scan: ScanId, worker: WorkerIndex) -> Option<(u64, &Phase)> {
        self.requests.get(&(scan, worker)).map(|request| (request.serial, &request.phase))
    }

    /// The phase of a request; `None` if a later one has replaced it, or the scan has ended.
    pub(super) fn phase(&self, id: RequestId) -> Option<&Phase> {
        let request = self.requests.get(&(id.scan, id.worker))?;
        (request.serial == id.serial).then_some(&request.phase)
    }

    /// The place for the waker of a request that waits.
    pub(super) fn waker(&mut self, id: RequestId) -> Option<&mut Option<Waker>> {
        match self.requests.get_mut(&(id.scan, id.worker)) {
            Some(Request { serial, phase: Phase::Waiting { waker }, .. })
                if *serial == id.serial =>
            {
                Some(waker)
            }
            _ => None,
        }
    }

    /// The waker of a worker, if it waits.
    pub(super) fn take_waker(&mut self, scan: ScanId, worker: WorkerIndex) -> Option<Waker> {
        match &mut self.requests.get_mut(&(scan, worker))?.phase {
            Phase::Waiting { waker } => waker.take(),
            _ => None,
        }
    }

    /// Notes a new request of a worker. Returns the phase of the request that it replaces.
    pub(super) fn ask(&mut self, id: RequestId, now: Time) -> Option<Phase> {
        let replaced = self.advance(id, Phase::Waiting { waker: None }, now);
        self.at_work.remove(&(id.scan, id.worker));
        replaced
    }

    /// Answers the latest request of a worker, if it waits. Returns its waker, if it has one.
    pub(super) fn answer(
        &mut self,
        scan: ScanId,
        worker: WorkerIndex,
        phase: Phase,
        now: Time,
    ) -> Result<Option<Waker>, NotWaiting> {
        let serial = match self.requests.get(&(scan, worker)) {
            Some(Request { serial, phase: Phase::Waiting { .. }, .. }) => *serial,
            _ => return Err(NotWaiting),
        };
        if let Phase::Delivered { .. } = phase {
            self.at_work.insert((scan, worker));
        }
        let before = self.advance(RequestId { scan, worker, serial }, phase, now);
        Ok(before.and_then(Phase::into_waker))
    }

    /// Moves a request to its next phase. Returns the one before.
    pub(super) fn advance(&mut self, id: RequestId, phase: Phase, now: Time) -> Option<Phase> {
        let (key, uses_pages) = ((id.scan, id.worker), phase.uses_pages());
        let before = self.requests.insert(key, Request { serial: id.serial, since: now, phase });
        let before = self.note_removed(key, before);
        if uses_pages {
            self.using_pages.insert((now, id.scan, id.worker));
        }
        before
    }

    /// Forgets a worker that has gone. Returns the phase of its request.
    pub(super) fn remove(&mut self, scan: ScanId, worker: WorkerIndex) -> Option<Phase> {
        self.at_work.remove(&(scan, worker));
        let before = self.requests.remove(&(scan, worker));
        self.note_removed((scan, worker), before)
    }

    fn note_removed(
        &mut self,
        (scan, worker): (ScanId, WorkerIndex),
        request: Option<Request>,
    ) -> Option<Phase> {
        let Request { since, phase, .. } = request?;
        self.using_pages.remove(&(since, scan, worker));
        Some(phase)
    }

    /// The workers of a scan that wait for an answer.
    pub(super) fn waiting(&self, scan: ScanId) -> Vec<WorkerIndex> {
        let of_scan = self.requests.range(workers_of(scan));
        let waiting = of_scan.filter(|(_, request)| matches!(request.phase, Phase::Waiting { .. }));
        waiting.map(|(&(_, worker), _)| worker).collect()
    }

    /// The workers of a scan that have asked.
    pub(super) fn of(&self, scan: ScanId) -> Vec<WorkerIndex> {
        self.requests.range(workers_of(scan)).map(|(&(_, worker), _)| worker).collect()
    }

    /// Forgets all workers. Returns the wakers of those that wait.
    pub(super) fn clear(&mut self) -> Vec<Waker> {
        let Self { requests, .. } = std::mem::take(self);
        requests.into_values().filter_map(|request| request.phase.into_waker()).collect()
    }
}

/// The answer is not waited for.
pub(super) struct NotWaiting;

/// All workers that a scan may have.
fn workers_of(scan: ScanId) -> RangeInclusive<(ScanId, WorkerIndex)> {
    (scan, WorkerIndex(0))..=(scan, WorkerIndex(u32::MAX))
}
