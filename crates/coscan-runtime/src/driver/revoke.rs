//! Chunks and memory are taken back from workers that nobody polls, when others lack space or memory.

use std::time::Duration;

use coscan_core::{MemoryStage, ScanId, Time, WorkerIndex};

use super::message::RequestId;
use super::state::State;
use super::workers::Phase;

/// A worker loses a chunk or memory only if it was not polled for this long: longer than the processors are busy with other
/// workers. After each loss it has twice as long, so that a slow consumer makes progress.
const REVOKE_AFTER: Duration = Duration::from_millis(500);

/// Operators that are refused look for chunks to take back at most once in this time.
const OPERATOR_PAUSE: Duration = Duration::from_millis(10);

/// The time doubles at most so often, to half a minute.
const DOUBLINGS_MAX: u32 = 6;

pub(super) fn after(time: Time, wait: Duration) -> Time {
    Time(time.0.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)))
}

/// The earliest time at which a worker loses what it got at `since`, having lost something `times` times before.
pub(super) fn revocable_at(since: Time, times: u32) -> Time {
    after(since, REVOKE_AFTER * 2u32.pow(times.min(DOUBLINGS_MAX)))
}

impl State {
    /// When to look for what can be taken back, if others lack it.
    pub(super) fn revocation_due(&self, now: Time) -> Option<Time> {
        let lacks_memory = self.lacks_memory();
        let pages =
            (lacks_memory || self.core.lacks_space()).then(|| self.workers.first_using_pages());
        let pages = pages.flatten().map(|first| revocable_at(first, 0));
        let memory = lacks_memory.then(|| self.unfetched_memory_revocable_at()).flatten();
        // What was due when it was last looked for and was not taken back is at work, or has longer.
        let again = after(self.looked_for_unused, REVOKE_AFTER);
        let next = |due: Time| if due > self.looked_for_unused { due.max(now) } else { again };
        pages.into_iter().chain(memory).map(next).min()
    }

    /// Whether someone waits for memory.
    pub(super) fn lacks_memory(&self) -> bool {
        self.core.oldest_memory_request(MemoryStage::Opening).is_some()
    }

    /// Takes back something that others lack. True if there was any.
    pub(super) fn revoke_for_others(&mut self, now: Time) -> bool {
        if self.lacks_memory() || self.core.lacks_space() {
            self.looked_for_unused = now;
        }
        let is_any = self.lacks_memory() && self.revoke_for_memory(now);
        is_any | (self.core.lacks_space() && self.revoke_chunks(now))
    }

    /// Takes back what helps those who miss memory. True if there was any.
    pub(super) fn revoke_for_memory(&mut self, now: Time) -> bool {
        let is_any = self.revoke_unfetched_memory(now);
        // Chunks that are returned do not always make the pool give up more.
        is_any | (self.core.bytes_kept_in_use() > 0 && self.revoke_chunks(now))
    }

    /// The same for an operator, which may ask often: chunks are looked for now and then.
    pub(super) fn revoke_for_operator(&mut self, now: Time) -> bool {
        if now >= after(self.looked_for_unused, OPERATOR_PAUSE) {
            self.looked_for_unused = now;
            self.revoke_for_memory(now)
        } else {
            self.revoke_unfetched_memory(now)
        }
    }

    /// Takes back the chunks of workers that were not polled for long. True if there were any.
    fn revoke_chunks(&mut self, now: Time) -> bool {
        let mut is_any = false;
        let due = Time(now.0.saturating_sub(after(Time(0), REVOKE_AFTER).0));
        for (since, scan, worker) in self.workers.using_pages_since(due) {
            is_any |= self.revoke(since, scan, worker, now);
        }
        is_any
    }

    fn revoke(&mut self, since: Time, scan: ScanId, worker: WorkerIndex, now: Time) -> bool {
        let Some(running) = self.scans.get_mut(&scan) else { return false };
        let Some(idle_since) = running.activity.worker_idle_since(worker, now) else {
            return false;
        };
        let times = running.revocations.get(&worker).copied().unwrap_or(0);
        if revocable_at(since.max(idle_since), times) > now {
            return false;
        }
        let Some((serial, phase)) = self.workers.request_of(scan, worker) else { return false };
        let resources = match phase {
            Phase::Delivered { .. } => None,
            Phase::Opening(held) => match held.revoke() {
                Some(resources) => Some(resources),
                None => return false, // It decodes.
            },
            _ => return false,
        };
        *running.revocations.entry(worker).or_default() += 1;
        self.withdraw(now, scan, worker);
        if let Some(resources) = resources {
            self.effects.evicted.extend(resources.pages.into_iter().map(|(_, bytes)| bytes));
            self.expect_no_longer(resources.untaken);
        }
        self.workers.advance(RequestId { scan, worker, serial }, Phase::Revoked, now);
        true
    }
}
