//! Requests for memory of one stage, in the orders in which they are looked for.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::audit::{Discrepancy, same};
use crate::ids::{TicketId, Time};
use crate::scan::PriorityClass;

/// The purpose of a request for memory. Requests of earlier stages are met first, since others may wait for the memory
/// that their workers hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryStage {
    /// The next batch of an open chunk: the worker holds memory already.
    Working,
    /// Opening a chunk: the worker holds none.
    Opening,
}

impl MemoryStage {
    /// All stages, in the order in which they are met.
    pub const ALL: [Self; 2] = [Self::Working, Self::Opening];
}

/// A request that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// The priority class that its scan had when the request was made.
    pub(crate) class: PriorityClass,
    pub(crate) bytes: u64,
    pub(crate) since: Time,
}

/// The requests of a stage.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestQueue {
    /// The requests in order of arrival, since tickets count up.
    requests: BTreeMap<TicketId, Request>,
    /// The requests by priority class, then in order of arrival.
    by_class: BTreeSet<(PriorityClass, TicketId)>,
    by_bytes: BTreeSet<(u64, TicketId)>,
}

impl RequestQueue {
    pub(super) fn insert(&mut self, ticket: TicketId, request: Request) {
        self.requests.insert(ticket, request);
        self.by_class.insert((request.class, ticket));
        self.by_bytes.insert((request.bytes, ticket));
    }

    pub(super) fn remove(&mut self, ticket: TicketId) -> Option<Request> {
        let request = self.requests.remove(&ticket)?;
        self.by_class.remove(&(request.class, ticket));
        self.by_bytes.remove(&(request.bytes, ticket));
        Some(request)
    }

    /// The request that has waited longest.
    pub(super) fn oldest(&self) -> Option<(TicketId, Request)> {
        self.requests.first_key_value().map(|(&ticket, &request)| (ticket, request))
    }

    /// The bytes of the smallest request.
    pub(super) fn least_bytes(&self) -> Option<u64> {
        self.by_bytes.first().map(|&(bytes, _)| bytes)
    }

    /// The first request for at most these bytes.
    pub(super) fn first_within(&self, bytes: u64) -> Option<TicketId> {
        // Usually no request fits. Then nothing is walked over.
        self.least_bytes().filter(|&least_bytes| least_bytes <= bytes)?;
        let mut tickets = self.by_class.iter().map(|&(_, ticket)| ticket);
        tickets.find(|ticket| self.requests[ticket].bytes <= bytes)
    }

    /// All requests: those that are overdue by arrival, then the others by class. `is_overdue` holds for the oldest ones.
    pub(super) fn in_order(
        &self,
        is_overdue: impl Fn(&Request) -> bool + Copy,
    ) -> impl Iterator<Item = (TicketId, Request)> {
        let overdue = self.requests.iter().take_while(move |(_, request)| is_overdue(request));
        let others = self.by_class.iter().map(|(_, ticket)| (ticket, &self.requests[ticket]));
        let others = others.filter(move |(_, request)| !is_overdue(request));
        overdue.chain(others).map(|(&ticket, &request)| (ticket, request))
    }

    /// Recounts the orders.
    pub(crate) fn audit(&self) -> Result<(), Discrepancy> {
        let by_class = self.requests.iter().map(|(&ticket, request)| (request.class, ticket));
        let by_bytes = self.requests.iter().map(|(&ticket, request)| (request.bytes, ticket));
        same(|| "requests by class".into(), &by_class.collect(), &self.by_class)?;
        same(|| "requests by bytes".into(), &by_bytes.collect(), &self.by_bytes)?;
        let arrivals = self.requests.values().map(|request| request.since);
        same(|| "requests in order of arrival".into(), arrivals.is_sorted(), true)
    }
}
