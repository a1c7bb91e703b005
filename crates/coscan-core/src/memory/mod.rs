//! Memory: one budget for the pool and for what others hold beside it, and the requests that wait for memory.
//!
//! Memory that is *handed out* belongs to the caller until the caller returns it. The rest of the budget is the pool's, up
//! to its ceiling. The pool shrinks for others at once, down to its floor, except for pages in use or being read. The
//! bytes handed out and the limit of the pool never exceed the budget (I7). What the caller uses beyond what was handed
//! out, the *overdraft*, is not counted here; it is covered as soon as possible
//! ([`cover_overdraft`](crate::ActiveBufferManager::cover_overdraft)).
//!
//! A caller that cannot wait *takes* memory, and may be refused. One that can wait *requests* it, and gets a ticket.
//! Requests are met by stage, then by the priority class of the scan, then by arrival. A request that fits overtakes
//! one that does not, because its scan may have to proceed before there can be enough. But a request that has waited
//! for [`MemoryLimits::overtaking_ns`] is *overdue*: it comes first in its stage, and until it is met, no other of its
//! stage or a later one is. What comes free adds up until it is enough.

mod limits;
mod queue;

pub use limits::MemoryLimits;
pub use queue::MemoryStage;

use crate::audit::{Discrepancy, same};
use crate::error::MissingMemory;
use crate::ids::{TicketId, Time};
use crate::scan::PriorityClass;
use queue::{Request, RequestQueue};

/// A request for memory that is not met yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnmetMemoryRequest {
    /// Its ticket.
    pub ticket: TicketId,
    /// The purpose.
    pub stage: MemoryStage,
    /// The bytes requested.
    pub bytes: u64,
    /// The bytes by which it exceeds what is available now; 0 if it only waits behind an overdue one.
    pub missing_bytes: u64,
}

/// The bytes of the pool as they are, and as they could be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolSize {
    /// Its limit.
    pub(crate) limit_bytes: u64,
    /// The lowest limit that is possible now.
    pub(crate) least_bytes: u64,
}

/// The next step in serving the requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Service {
    /// This ticket is next, and there is enough for it.
    Meet(TicketId),
    /// An overdue request is next and does not fit: the pool gives up what it can towards these bytes.
    SaveUp(u64),
    /// No request fits.
    Wait,
}

/// Memory handed out, and the requests that wait for memory. It decides by numbers alone; the manager moves the pool.
#[derive(Clone, Debug)]
pub(crate) struct Arbitrator {
    limits: MemoryLimits,
    handed_out_bytes: u64,
    queues: [RequestQueue; MemoryStage::ALL.len()],
    next_ticket: u64,
}

impl Arbitrator {
    pub(crate) fn new(limits: MemoryLimits) -> Self {
        Self { limits, handed_out_bytes: 0, queues: Default::default(), next_ticket: 0 }
    }

    pub(crate) fn limits(&self) -> MemoryLimits {
        self.limits
    }

    pub(crate) fn set_limits(&mut self, limits: MemoryLimits) {
        self.limits = limits;
    }

    pub(crate) fn handed_out_bytes(&self) -> u64 {
        self.handed_out_bytes
    }

    // The pool.

    /// The part of the budget that is not handed out: the most that the pool may be.
    pub(crate) fn left_bytes(&self) -> u64 {
        let left = self.limits.budget_bytes.checked_sub(self.handed_out_bytes);
        left.expect("I7: no more is handed out than there is")
    }

    /// The most that could be handed out now.
    pub(crate) fn available_bytes(&self, pool: PoolSize) -> u64 {
        let left = self.left_bytes().checked_sub(self.pool_bytes_min(pool));
        left.expect("I7: the pool and what is handed out share the budget")
    }

    /// The limit below which the pool does not shrink for others.
    pub(crate) fn pool_bytes_min(&self, pool: PoolSize) -> u64 {
        self.limits.floor_bytes().max(pool.least_bytes).min(pool.limit_bytes)
    }

    /// The limit of the pool when these bytes, which are available, are handed out: as it is if possible, otherwise a
    /// little lower than necessary.
    pub(crate) fn pool_bytes_beside(&self, bytes: u64, pool: PoolSize) -> u64 {
        let left_bytes = self.left_bytes() - bytes;
        if left_bytes < pool.limit_bytes {
            self.limits.with_slack(left_bytes)
        } else {
            pool.limit_bytes
        }
    }

    /// The limit that the pool should have: all that is left, but at most `bytes_max` while requests wait.
    pub(crate) fn pool_bytes_target(&self, bytes_max: u64) -> u64 {
        let target_bytes = self.left_bytes().min(self.limits.pool_ceiling_bytes);
        if self.has_requests() { target_bytes.min(bytes_max) } else { target_bytes }
    }

    // Memory handed out.

    pub(crate) fn hand_out(&mut self, bytes: u64) {
        self.handed_out_bytes += bytes;
    }

    /// # Panics
    /// If more returns than was handed out.
    pub(crate) fn take_back(&mut self, bytes: u64) {
        let left = self.handed_out_bytes.checked_sub(bytes);
        self.handed_out_bytes = left.expect("memory that returns was handed out");
    }

    // Requests.

    pub(crate) fn request(
        &mut self,
        now: Time,
        stage: MemoryStage,
        class: PriorityClass,
        bytes: u64,
    ) -> TicketId {
        let ticket = TicketId(self.next_ticket);
        self.next_ticket += 1;
        self.queues[stage as usize].insert(ticket, Request { class, bytes, since: now });
        ticket
    }

    /// Removes a waiting ticket. Returns the bytes that it was for.
    pub(crate) fn remove(&mut self, ticket: TicketId) -> Option<u64> {
        self.queues.iter_mut().find_map(|queue| queue.remove(ticket)).map(|request| request.bytes)
    }

    pub(crate) fn has_requests(&self) -> bool {
        self.queues.iter().any(|queue| queue.oldest().is_some())
    }

    /// The next step in serving the requests that wait.
    pub(crate) fn next_service(&self, now: Time, pool: PoolSize) -> Service {
        let available_bytes = self.available_bytes(pool);
        for stage in MemoryStage::ALL {
            let queue = self.queue(stage);
            if let Some((ticket, overdue)) = self.oldest_overdue(now, stage) {
                return match overdue.bytes <= available_bytes {
                    true => Service::Meet(ticket),
                    false => Service::SaveUp(overdue.bytes),
                };
            }
            if let Some(ticket) = queue.first_within(available_bytes) {
                return Service::Meet(ticket);
            }
        }
        Service::Wait
    }

    /// The bytes missing before any request can be met.
    pub(crate) fn missing(&self, now: Time, pool: PoolSize) -> Option<MissingMemory> {
        let stages = MemoryStage::ALL.into_iter();
        let overdue = stages.filter_map(|stage| self.oldest_overdue(now, stage)).next();
        let smallest = || self.queues.iter().filter_map(RequestQueue::least_bytes).min();
        let bytes = overdue.map(|(_, request)| request.bytes).or_else(smallest)?;
        Some(MissingMemory { bytes: bytes.saturating_sub(self.available_bytes(pool)) })
    }

    /// When the oldest request of this stage or one before it was made.
    pub(crate) fn oldest(&self, stage: MemoryStage) -> Option<Time> {
        let stages = MemoryStage::ALL.into_iter().filter(|&before| before <= stage);
        stages.filter_map(|stage| self.queue(stage).oldest()).map(|(_, oldest)| oldest.since).min()
    }

    /// The requests in the order in which they are met.
    pub(crate) fn unmet(
        &self,
        now: Time,
        pool: PoolSize,
    ) -> impl Iterator<Item = UnmetMemoryRequest> {
        let available_bytes = self.available_bytes(pool);
        MemoryStage::ALL.into_iter().flat_map(move |stage| {
            let is_overdue = move |request: &Request| self.is_overdue(now, request);
            let requests = self.queue(stage).in_order(is_overdue);
            requests.map(move |(ticket, request)| UnmetMemoryRequest {
                ticket,
                stage,
                bytes: request.bytes,
                missing_bytes: request.bytes.saturating_sub(available_bytes),
            })
        })
    }

    /// The request of a stage that has waited longest, if nothing may overtake it any more.
    fn oldest_overdue(&self, now: Time, stage: MemoryStage) -> Option<(TicketId, Request)> {
        self.queue(stage).oldest().filter(|(_, request)| self.is_overdue(now, request))
    }

    fn is_overdue(&self, now: Time, request: &Request) -> bool {
        self.limits.is_overdue(now, request.since)
    }

    pub(crate) fn queue(&self, stage: MemoryStage) -> &RequestQueue {
        &self.queues[stage as usize]
    }

    /// Checks I7, and recounts the orders of the requests.
    pub(crate) fn audit(&self, pool_bytes: u64) -> Result<(), Discrepancy> {
        let most_bytes = self.limits.budget_bytes.saturating_sub(self.handed_out_bytes);
        same(|| "limit of the pool".into(), pool_bytes.min(most_bytes), pool_bytes)?;
        self.queues.iter().try_for_each(RequestQueue::audit)
    }
}
