//! The changes of the state: by messages from outside, and by actions of core.

use coscan_core::{Action, ChunkIndex, ScanId, Time, WorkerIndex};

use super::message::{Message, RequestId};
use super::state::State;
use super::walk::Walk;
use super::workers::{NotWaiting, Phase};
use crate::chunks::decode_cache::SliceKey;
use crate::error::ScanError;

impl State {
    pub(super) fn apply(&mut self, message: Message, now: Time) {
        if self.is_broken() {
            return; // What it names is gone.
        }
        match message {
            Message::PagesRead { load, pages } => self.pages_read(load, pages, now),
            Message::LoadDropped { load, pages } => {
                let dropped = |page| (page, Err(ScanError::ShutDown));
                self.pages_read(load, pages.into_iter().map(dropped).collect(), now);
            }
            Message::ChunkOpened(request) => {
                if let Some(Phase::Opening(_)) = self.workers.phase(request) {
                    self.workers.advance(request, Phase::Opened, now);
                    self.core.release_chunk(now, request.scan, request.worker);
                    self.fit_pool_to_ceiling(now);
                    if let Some(running) = self.scans.get_mut(&request.scan) {
                        running.revocations.remove(&request.worker);
                    }
                }
            }
            Message::ChunkReturned { request, untaken } => {
                if let Some(Phase::Opening(_)) = self.workers.phase(request) {
                    self.withdraw(now, request.scan, request.worker);
                }
                self.expect_no_longer(untaken);
            }
            Message::WorkerGone(request) => {
                if self.workers.phase(request).is_some() {
                    self.withdraw(now, request.scan, request.worker);
                }
            }
            Message::ScanDropped(scan) => self.end_scan(scan, now),
            Message::SliceDecoded(key) => self.note_decoded(key),
            Message::SliceTaken(key) => self.drop_unneeded(key),
            Message::TableReleased { table, files } => {
                self.begin_after_ended_scans(Walk::ReleaseTable { table, files }, now);
            }
            Message::PagesBypassed { served, pages } => self.bypassed(served, pages, now),
            Message::PagesTaken { served, pages } => self.pages_taken(served, pages),
            Message::FragmentSent { to, fragment } => self.fragment_sent(to, fragment, now),
            Message::FragmentLost => self.fragment_lost(now),
            Message::MemoryRequestOver(ticket) => self.end_request(ticket, now),
            Message::JointTableReleased(table) => {
                self.registry.release_joint(&self.core, table);
                self.remove_unused(now);
            }
        }
    }

    /// Notes an action of core, to be carried out after the lock is released.
    pub(super) fn act(&mut self, now: Time, action: Action) {
        match action {
            Action::Load { load, scan, table: _, chunk, pages, urgent } => {
                self.begin_load((load, scan), chunk, &pages, urgent, now);
            }
            Action::Escalate { load } => {
                let urgency = self.loads.get(&load).map(|load| load.urgency.clone());
                self.effects.escalated.extend(urgency);
            }
            Action::Evict { page } => {
                self.effects.evicted.extend(self.frames.remove(&page));
                self.tell_evicted(page, now);
            }
            Action::Deliver { scan, worker, chunk } => {
                if !self.is_served(scan) {
                    self.announce_unneeded(scan, [chunk]);
                    self.deliver(scan, worker, chunk, now);
                }
            }
            Action::Finish { scan, worker } => {
                self.answer(scan, worker, Phase::Ended(Ok(())), now);
            }
            Action::Fail { scan, .. } if self.served_has_failed(scan) => {}
            Action::Fail { scan, page } => {
                let error = self.read_errors.get(&page).cloned().unwrap_or(ScanError::Cancelled);
                self.fail(scan, &error);
            }
            Action::NoSpace { scan } => self.served_without_space(scan, now),
            Action::GrantMemory { ticket, bytes } => self.grant_request(ticket, bytes, now),
            Action::Unneeded { table, chunk, group } => self.slice_unneeded((table, chunk, group)),
        }
    }

    fn deliver(&mut self, scan: ScanId, worker: WorkerIndex, chunk: ChunkIndex, now: Time) {
        let Some(running) = self.scans.get_mut(&scan) else { return };
        running.handed.push((chunk, worker));
        running.activity.handed(worker, now);
        let registered = self.core.state().scan(scan).expect("core delivers to running scans");
        let pages = self.core.state().pages_of(registered, chunk).into_iter();
        let bytes = pages.map(|page| self.core.state().bytes_of(page));
        self.totals.bytes_delivered += bytes.sum::<u64>();
        self.totals.chunks_delivered += 1;
        let expected = running.parts.shared(chunk);
        expected.iter().for_each(|&key| self.decoded.expect(key));
        match self.workers.answer(scan, worker, Phase::Delivered { chunk, expected }, now) {
            Ok(waker) => self.effects.woken.extend(waker),
            Err(NotWaiting) => unreachable!("core answers workers that wait"),
        }
    }

    /// Notes that a worker will not take these decoded columns.
    pub(super) fn expect_no_longer(&mut self, slices: Vec<SliceKey>) {
        for key in slices {
            if self.decoded.taken(key) {
                self.drop_unneeded(key);
            }
        }
    }

    fn answer(&mut self, scan: ScanId, worker: WorkerIndex, answer: Phase, now: Time) {
        // Workers that are gone need no answer.
        let waker = self.workers.answer(scan, worker, answer, now).ok().flatten();
        self.effects.woken.extend(waker);
    }

    /// Handles a worker that stops, or returns the chunk that it was handed.
    pub(super) fn withdraw(&mut self, now: Time, scan: ScanId, worker: WorkerIndex) {
        let phase = self.workers.remove(scan, worker);
        self.core.withdraw_worker(now, scan, worker);
        match phase {
            Some(Phase::Waiting { waker }) => self.effects.replaced.extend(waker),
            // The chunk has returned before this, since its columns may be needed again.
            Some(Phase::Delivered { expected, .. }) => self.expect_no_longer(expected),
            _ => {}
        }
        if let Some(returned) = self.take_returned(scan, worker)
            && self.scans[&scan].is_over()
        {
            // No worker will take it.
            self.core.prune_scan(now, scan, vec![returned]);
        }
    }

    /// Takes the chunk that a worker has returned, if it has: the chunk no longer counts as handed to it.
    fn take_returned(&mut self, scan: ScanId, worker: WorkerIndex) -> Option<ChunkIndex> {
        let handed = &mut self.scans.get_mut(&scan)?.handed;
        let needed = self.core.state().scan(scan)?.needed();
        let last = handed.iter().rposition(|(_, to)| *to == worker)?;
        needed.contains(handed[last].0).then(|| handed.remove(last).0)
    }

    /// Tells core which workers are paused: their queries do not poll them.
    pub(super) fn report_pauses(&mut self, now: Time) {
        let Self { workers, scans, core, .. } = self;
        workers.at_work.retain(|&(scan, worker)| {
            let is_active = scans[&scan].activity.active_until(worker, now).is_some();
            if !is_active {
                core.pause_worker(now, scan, worker);
            }
            is_active
        });
    }

    /// Fails a scan for all its workers: those that wait are told now, the others when they ask. Its needs are dropped
    /// in steps.
    pub(super) fn fail(&mut self, scan: ScanId, error: &ScanError) {
        let Some(running) = self.scans.get_mut(&scan) else { return };
        running.failed.get_or_insert_with(|| error.clone());
        self.announce_end(scan);
        let now = self.core.state().now();
        for worker in self.workers.waiting(scan) {
            self.answer(scan, worker, Phase::Ended(Err(error.clone())), now);
            // Core does not know of it, and would continue to answer the worker.
            self.core.withdraw_worker(now, scan, worker);
        }
        self.leave_to_pump(Walk::DropNeeds(scan));
    }

    /// A worker asks for its next chunk. Core answers, unless the answer is there already.
    pub(super) fn ask(&mut self, id: RequestId, now: Time) {
        let RequestId { scan, worker, .. } = id;
        let refusal = match self.scans.get(&scan) {
            None => Some(self.check().err().unwrap_or(ScanError::Cancelled)),
            Some(running) if running.has_ended => Some(ScanError::Cancelled),
            Some(running) => running.failed.clone(),
        };
        // A chunk that an earlier stream of this worker was handed and has not fetched returns.
        if let Some(Phase::Delivered { .. }) = self.workers.phase_of(scan, worker) {
            self.withdraw(now, scan, worker);
        }
        let is_replaced =
            matches!(self.workers.phase_of(scan, worker), Some(Phase::Waiting { .. }));
        // Another stream of this worker that waits is woken.
        self.effects.woken.extend(self.workers.ask(id, now).and_then(Phase::into_waker));
        if let Some(error) = refusal {
            return self.answer(scan, worker, Phase::Ended(Err(error)), now);
        }
        if !is_replaced {
            let asked = self.core.request_chunk(now, scan, worker);
            asked.unwrap_or_else(|error| unreachable!("a running scan's worker may ask: {error}"));
        }
    }
}
