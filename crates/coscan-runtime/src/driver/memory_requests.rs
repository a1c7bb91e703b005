//! Requests for memory that core could not meet at once, and their answers until they are fetched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coscan_core::{TicketId, Time};

use crate::memory::AnswerSlot;

/// All requests that are still held.
#[derive(Debug, Default)]
pub(super) struct MemoryRequests {
    pub(super) requests: BTreeMap<TicketId, Request>,
    /// The requests that wait, by the time at which they have waited for too long.
    pub(super) waiting: BTreeSet<(Time, TicketId)>,
    /// The requests that were granted, by the earliest time at which the memory may be taken back.
    pub(super) granted: BTreeSet<(Time, TicketId)>,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) slot: Arc<AnswerSlot>,
    /// The number of times that the same worker was granted memory before and did not fetch it.
    pub(super) times_taken_back: u32,
    pub(super) phase: Phase,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// The request waits, at most until this time.
    Waiting(Time),
    /// Memory was granted, which may be taken back at this time.
    Granted(Time),
    /// The request has waited for too long, or the memory was taken back.
    Over,
}

impl MemoryRequests {
    pub(super) fn insert(&mut self, ticket: TicketId, request: Request) {
        self.note(ticket, request.phase);
        self.requests.insert(ticket, request);
    }

    /// Removes a request. Returns it with the phase that it was in.
    pub(super) fn remove(&mut self, ticket: TicketId) -> Option<(Request, Phase)> {
        let phase = self.change(ticket, Phase::Over)?;
        self.requests.remove(&ticket).map(|request| (request, phase))
    }

    /// Changes the phase of a request. Returns the one before.
    pub(super) fn change(&mut self, ticket: TicketId, phase: Phase) -> Option<Phase> {
        let request = self.requests.get_mut(&ticket)?;
        let before = std::mem::replace(&mut request.phase, phase);
        match before {
            Phase::Waiting(until) => drop(self.waiting.remove(&(until, ticket))),
            Phase::Granted(due) => drop(self.granted.remove(&(due, ticket))),
            Phase::Over => {}
        }
        self.note(ticket, phase);
        Some(before)
    }

    pub(super) fn note(&mut self, ticket: TicketId, phase: Phase) {
        match phase {
            Phase::Waiting(until) => drop(self.waiting.insert((until, ticket))),
            Phase::Granted(due) => drop(self.granted.insert((due, ticket))),
            Phase::Over => {}
        }
    }
}
