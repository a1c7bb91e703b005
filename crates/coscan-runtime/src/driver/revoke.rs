//! Chunks and memory are taken back from workers that are not polled, when others lack space or memory.

use std::time::Duration;

use coscan_core::{MemoryStage, ScanId, Time, WorkerIndex};

use super::message::RequestId;
use super::state::State;
use super::workers::Phase;

/// The time without a poll after which a worker may lose a chunk or memory: longer than the processors are busy with
/// other workers. It doubles after each loss, so that a slow consumer makes progress.
const REVOKE_AFTER: Duration = Duration::from_millis(500);

/// The least time between two searches for chunks to take back for operators that are refused.
const OPERATOR_PAUSE: Duration = Duration::from_millis(10);

/// The number of times that the time doubles at most, to half a minute.
const DOUBLINGS_MAX: u32 = 6;

pub(super) fn after(time: Time, wait: Duration) -> Time {
    Time(time.0.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)))
}

/// The earliest time at which a worker loses what it got at `since`, having lost something `times` times before.
pub(super) fn revocable_at(since: Time, times: u32) -> Time {
    after(since, REVOKE_AFTER * 2u32.pow(times.min(DOUBLINGS_MAX)))
}

impl State {
    /// The time at which to look for something to take back, if others lack it.
    pub(super) fn revocation_due(&self, now: Time) -> Option<Time> {
        let lacks_memory = self.lacks_memory();
        let pages =
            (lacks_memory || self.core.lacks_space()).then(|| self.workers.first_using_pages());
        let pages = pages.flatten().map(|first| revocable_at(first, 0));
        let memory = lacks_memory.then(|| self.unfetched_memory_revocable_at()).flatten();
        // Workers that were due at the last search and lost nothing are at work, or have longer.
        let again = after(self.looked_for_unused, REVOKE_AFTER);
        let next = |due: Time| if due > self.looked_for_unused { due.max(now) } else { again };
        pages.into_iter().chain(memory).map(next).min()
    }

    /// Whether a request for memory waits.
    pub(super) fn lacks_memory(&self) -> bool {
        self.core.oldest_memory_request(MemoryStage::Opening).is_some()
    }

    /// Takes back something that others lack. Returns whether there was any.
    pub(super) fn revoke_for_others(&mut self, now: Time) -> bool {
        if self.lacks_memory() || self.core.lacks_space() {
            self.looked_for_unused = now;
        }
        let is_any = self.lacks_memory() && self.revoke_for_memory(now);
        is_any | (self.core.lacks_space() && self.revoke_chunks(now))
    }

    /// Takes back something that helps requests that miss memory. Returns whether there was any.
    pub(super) fn revoke_for_memory(&mut self, now: Time) -> bool {
        let is_any = self.revoke_unfetched_memory(now);
        // Returned chunks do not always let the pool shrink further.
        is_any | (self.core.bytes_kept_in_use() > 0 && self.revoke_chunks(now))
    }

    /// Takes back memory for an operator, which may ask often, so chunks are looked for only now and then.
    pub(super) fn revoke_for_operator(&mut self, now: Time) -> bool {
        if now >= after(self.looked_for_unused, OPERATOR_PAUSE) {
            self.looked_for_unused = now;
            self.revoke_for_memory(now)
        } else {
            self.revoke_unfetched_memory(now)
        }
    }

    /// Takes back the chunks of workers that were not polled for long. Returns whether there were any.
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
