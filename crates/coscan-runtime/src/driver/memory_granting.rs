//! Requests of workers for memory of core. The answer is fetched when the worker is polled.

use std::sync::Arc;

use coscan_core::{MemoryStage, MissingMemory, ScanId, TicketId, Time};

use super::handle::Driver;
use super::memory_requests::{Phase, Request};
use super::message::Message;
use super::revoke::{after, revocable_at};
use super::state::State;
use crate::error::ScanError;
use crate::memory::{Answer, AnswerSlot, Reservation};
use crate::sync::destructor::InDestructor;

/// The most times that the pump reclaims memory for waiting requests before it does something else.
const RECLAIM_ATTEMPTS_MAX: usize = 16;

/// A request for memory, which is withdrawn when this is dropped.
pub(super) struct MemoryRequest {
    driver: Arc<Driver>,
    ticket: TicketId,
    slot: Arc<AnswerSlot>,
}

impl Driver {
    /// Requests memory to decode. It is [taken back](super::revoke) if it is not fetched for long.
    ///
    /// # Errors
    /// [`ScanError::Exhausted`] if it is more than there can ever be; the reason why no scan can run.
    pub(super) fn request_memory(
        self: &Arc<Self>,
        stage: MemoryStage,
        scan: ScanId,
        bytes: u64,
        times_taken_back: u32,
    ) -> Result<MemoryRequest, ScanError> {
        let slot = Arc::<AnswerSlot>::default();
        let ask = |state: &mut State, now| {
            state.check()?;
            state.collect_credit(now);
            let requested = state.core.request_memory(now, stage, Some(scan), bytes);
            let ticket = requested.map_err(|MissingMemory { .. }| self.exhausted(bytes))?;
            let phase = Phase::Waiting(after(now, self.options.memory_timeout));
            let request = Request { slot: Arc::clone(&slot), times_taken_back, phase };
            state.memory_requests.insert(ticket, request);
            Ok::<_, ScanError>(ticket)
        };
        let ticket = self.call_then(ask, |state, ticket| {
            if state.lacks_memory() {
                // The pump also looks for memory outside of core.
                state.credit.mark_wanted();
                state.effects.rings = true;
            }
            ticket
        })?;
        Ok(MemoryRequest { driver: Arc::clone(self), ticket, slot })
    }

    /// Reclaims memory outside of core for waiting requests, as far as that helps.
    pub(super) fn reclaim_for_requests(self: &Arc<Self>) {
        let mut refused_bytes = u64::MAX;
        for _ in 0..RECLAIM_ATTEMPTS_MAX {
            let collect = |state: &mut State, now| {
                // Otherwise the memory is for workers that wait to share a column.
                if state.lacks_memory() {
                    state.collect_credit(now);
                }
            };
            let missing = self.call_then(collect, |state, ()| state.next_missing(refused_bytes));
            let Some(missing) = missing else { return };
            if !self.reclaim(missing) {
                refused_bytes = missing.bytes; // There is not more either.
            }
        }
    }
}

impl State {
    /// The bytes that are missing to the next request, or to the one that misses least, if they are fewer than
    /// `refused_bytes`.
    fn next_missing(&self, refused_bytes: u64) -> Option<MissingMemory> {
        let helps = |missing: &MissingMemory| missing.bytes > 0 && missing.bytes < refused_bytes;
        let next = self.core.unmet_memory_requests().next();
        let next = next.map(|unmet| MissingMemory { bytes: unmet.missing_bytes });
        next.filter(helps).or_else(|| self.core.missing_memory().filter(helps))
    }

    /// Notes that core has met a request.
    pub(super) fn grant_request(&mut self, ticket: TicketId, bytes: u64, now: Time) {
        let memory = Reservation::granted(&self.credit, bytes);
        let request = self.memory_requests.requests.get(&ticket);
        let request = request.expect("a request that ends is withdrawn in core");
        let due = revocable_at(now, request.times_taken_back);
        self.effects.woken.extend(request.slot.fill(Answer::Granted(memory)));
        self.memory_requests.change(ticket, Phase::Granted(due));
    }

    /// Ends a request that is no longer waited for.
    pub(super) fn end_request(&mut self, ticket: TicketId, now: Time) {
        let Some((request, phase)) = self.memory_requests.remove(ticket) else { return };
        match phase {
            Phase::Waiting(_) => self.core.withdraw_memory_request(now, ticket),
            Phase::Granted(_) => {
                let unfetched = request.slot.take_back();
                self.return_memory(unfetched.map_or(0, Reservation::into_bytes), now);
            }
            Phase::Over => {}
        }
        self.effects.slots.push(request.slot);
    }

    /// The time at which the next request has waited for too long.
    pub(super) fn request_timeout(&self) -> Option<Time> {
        self.memory_requests.waiting.first().map(|&(until, _)| until)
    }

    /// Ends requests that have waited for too long, even if their workers are not polled, so that others are next.
    pub(super) fn time_out_requests(&mut self, now: Time) {
        while let Some(&(until, ticket)) = self.memory_requests.waiting.first()
            && until <= now
        {
            self.memory_requests.change(ticket, Phase::Over);
            self.core.withdraw_memory_request(now, ticket);
            let slot = &self.memory_requests.requests[&ticket].slot;
            self.effects.woken.extend(slot.fill(Answer::TimedOut));
        }
    }

    /// Takes back memory that was granted and not fetched for long. Returns whether there was any.
    pub(super) fn revoke_unfetched_memory(&mut self, now: Time) -> bool {
        let mut bytes = 0;
        while let Some(&(due, ticket)) = self.memory_requests.granted.first()
            && due <= now
        {
            self.memory_requests.change(ticket, Phase::Over);
            // If it was fetched meanwhile, the message that reports so is in flight.
            let memory = self.memory_requests.requests[&ticket].slot.take_back();
            bytes += memory.map_or(0, Reservation::into_bytes);
        }
        self.return_memory(bytes, now);
        bytes > 0
    }

    /// The earliest time at which memory that was granted and not fetched may be taken back.
    pub(super) fn unfetched_memory_revocable_at(&self) -> Option<Time> {
        self.memory_requests.granted.first().map(|&(due, _)| due)
    }

    /// Closes all requests, because none will be met any more.
    pub(super) fn close_requests(&mut self) {
        let now = self.core.state().now();
        for (ticket, request) in std::mem::take(&mut self.memory_requests).requests {
            self.core.withdraw_memory_request(now, ticket);
            self.effects.woken.extend(request.slot.close());
            self.effects.slots.push(request.slot);
        }
    }
}

impl MemoryRequest {
    /// Waits for the answer.
    pub(super) async fn answered(&self) -> Answer {
        std::future::poll_fn(|context| self.slot.poll_fetch(context)).await
    }
}

impl Drop for MemoryRequest {
    fn drop(&mut self) {
        let _destructor = InDestructor::enter();
        self.driver.post(Message::MemoryRequestOver(self.ticket));
    }
}
