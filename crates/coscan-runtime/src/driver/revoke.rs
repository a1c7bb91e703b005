//! Chunks are taken back from workers that nobody polls, when others lack space or memory.

use std::time::Duration;

use coscan_core::{ScanId, Time, WorkerIndex};

use super::message::RequestId;
use super::state::State;
use super::workers::Phase;

/// A chunk is taken back at the earliest when its worker was not polled for so long: longer than the processors are
/// busy with other workers. Each time that a worker loses a chunk it has twice as long for the next one, so that it gets
/// on with a slow consumer.
const REVOKE_AFTER: Duration = Duration::from_millis(500);

/// The time doubles at most so often, to half a minute.
const DOUBLINGS_MAX: u32 = 6;

fn after(time: Time, wait: Duration) -> Time {
    Time(time.0.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)))
}

impl State {
    /// When to look for chunks to take back, if a load lacks space.
    pub(super) fn revocation_due(&self, now: Time) -> Option<Time> {
        if self.core.lacks_space() { self.next_revocation(now) } else { None }
    }

    /// When to look for chunks to take back, if others lack the space of those.
    pub(super) fn next_revocation(&self, now: Time) -> Option<Time> {
        let first = self.workers.first_using_pages()?;
        let due = after(first, REVOKE_AFTER);
        // Those that are due and were not taken back are at work, or have longer.
        Some(if due > now { due } else { after(now, REVOKE_AFTER) })
    }

    /// Takes back the chunks of workers that were not polled for long. True if there were any.
    pub(super) fn revoke_unused(&mut self, now: Time) -> bool {
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
        let doublings =
            running.revocations.get(&worker).map_or(0, |&times| times.min(DOUBLINGS_MAX));
        if after(since.max(idle_since), REVOKE_AFTER * 2u32.pow(doublings)) > now {
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
