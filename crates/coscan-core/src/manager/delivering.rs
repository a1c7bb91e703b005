//! Deliveries: waiting workers are answered first come, first served. A policy that schedules processors chooses among
//! them instead, and no more are at work than the processors can use.

use super::ActiveBufferManager;
use crate::action::Action;
use crate::ids::{ChunkIndex, ScanId, Time, WorkerIndex};
use crate::scan::{IndexKeys, Order, Worker};

/// Ready scans that a decision looks at in each order: the bound on its cost.
const CANDIDATES_MAX: usize = 32;

impl ActiveBufferManager {
    /// Answers a waiting worker that can be answered, if there is one.
    pub(super) fn answer_waiting(&mut self) {
        if !self.policy.schedules_workers() {
            return self.answer_in_turn();
        }
        if let Some(&(_, first)) = self.state.scan_index.at_once.first() {
            self.answer(first);
            return;
        }
        let Some(&(_, first)) = self.state.scan_index.ready.by_ticket.first() else {
            self.recheck_held_back = None;
            return;
        };
        let (active, max) = (self.state.active_workers(), self.config.active_workers_max);
        let next = if self.is_overdue(first) {
            // I5: workers that may never finish their chunks do not count.
            Some(first).filter(|_| (active - self.state.overdue_workers()) / 2 < max)
        } else if let Some(short) = self.preferred(&self.ready_short()) {
            let may_bypass = || active / 2 < max || self.state.scans[&short].is_lookup();
            Some(short).filter(|_| active < max || may_bypass())
        } else if active < max {
            self.preferred(&self.ready())
        } else {
            None
        };
        if let Some(scan) = next {
            self.answer(scan);
        } else if self.recheck_held_back.is_none() {
            self.recheck_held_back =
                Some(Time(self.state.now.0.saturating_add(self.config.recheck_interval_ns)));
        }
    }

    /// Answers the first waiting worker that can be answered.
    fn answer_in_turn(&mut self) {
        let scan_index = &self.state.scan_index;
        let queue: Vec<_> =
            scan_index.at_once.union(&scan_index.ready.by_ticket).copied().collect();
        for (_, scan) in queue {
            if self.answer(scan) {
                return;
            }
        }
    }

    /// Scans with a waiting worker and a chunk for it: those that have waited longest, those that need least, and those with the
    /// largest part of a chunk decoded.
    fn ready(&self) -> Vec<ScanId> {
        let ready = &self.state.scan_index.ready;
        let waited = ready.by_ticket.iter().map(|&(_, id)| id).take(CANDIDATES_MAX);
        let needing = ready.by_left.iter().map(|&(_, id)| id).take(CANDIDATES_MAX);
        let decoded = ready.by_decoded.iter().map(|&(_, id)| id).take(CANDIDATES_MAX);
        self.in_turn(waited.chain(needing).chain(decoded))
    }

    /// The smallest ready scans that are short.
    fn ready_short(&self) -> Vec<ScanId> {
        let bounds = self.policy.priority_bounds(&self.state);
        let short = self.state.scan_index.ready.by_size.range(..(bounds.short_below, ScanId(0)));
        self.in_turn(short.map(|&(_, id)| id).take(CANDIDATES_MAX))
    }

    /// These scans in the order in which they began to wait, each once.
    fn in_turn(&self, scans: impl Iterator<Item = ScanId>) -> Vec<ScanId> {
        let ticket = |id| self.state.scans[&id].indexed.and_then(IndexKeys::ticket);
        let mut queue: Vec<_> = scans.filter_map(|id| Some((ticket(id)?, id))).collect();
        queue.sort_unstable();
        queue.dedup();
        queue.into_iter().map(|(_, id)| id).collect()
    }

    /// The scan that the policy prefers.
    fn preferred(&self, scans: &[ScanId]) -> Option<ScanId> {
        match scans {
            [] | [_] => scans.first().copied(),
            _ => Some(scans[self.policy.prefer_worker(&self.state, scans)]),
        }
    }

    fn is_overdue(&self, scan: ScanId) -> bool {
        let since = self.state.scans[&scan].waiting_since();
        since.is_some_and(|since| self.state.is_overdue(since))
    }

    /// Answers the worker of a scan that has waited longest, if it can be answered.
    fn answer(&mut self, id: ScanId) -> bool {
        let scan = self.state.scan(id).expect("a waiting scan runs");
        let (.., worker) = scan.longest_waiting().expect("an answered scan waits");
        if scan.needed.is_empty() {
            self.state.change_scan(id, |scan| {
                *scan.worker(worker).expect("a waiting worker exists") = Worker::Finished;
            });
            self.actions.push_back(Action::Finish { scan: id, worker });
            return true;
        }
        let chunk = self.policy.choose_delivery(&self.state, id);
        chunk.inspect(|&chunk| self.deliver(id, worker, chunk)).is_some()
    }

    fn deliver(&mut self, id: ScanId, worker: WorkerIndex, chunk: ChunkIndex) {
        let scan = self.state.scan(id).expect("a waiting scan runs");
        assert!(scan.needed.contains(chunk), "I1: a scan is handed only what it still needs");
        assert!(
            scan.available.contains(chunk),
            "I2: a chunk is handed out when all its pages are in the pool"
        );
        assert!(
            scan.order == Order::Any || scan.needed.first() == Some(chunk),
            "I6: a scan in order is handed its first needed chunk"
        );
        let pages = self.state.pages_of(scan, chunk);
        self.state.remove_need(id, &[chunk]);
        for page in pages {
            self.state.pin(page);
        }
        let now = self.state.now;
        let rows = self.state.tables[&self.state.scans[&id].table].rows(chunk);
        self.state.change_scan(id, |scan| {
            let active = !scan.is_remote();
            let worker = scan.worker(worker).expect("a waiting worker exists");
            let found = matches!(*worker, Worker::Waiting { since, .. } if since == now);
            *worker = Worker::Busy { chunk, since: now, found, pinned: true, active };
            scan.rate.delivered(now, rows);
            scan.handed_at = Some(now);
            scan.report.chunks_delivered += 1;
        });
        self.state.begin_work(id, chunk);
        self.policy.on_delivered(&self.state, id, chunk);
        self.changed = true;
        self.actions.push_back(Action::Deliver { scan: id, worker, chunk });
    }

    /// Counts a chunk as kept by its worker: it does not return to the needs of the scan any more.
    pub(super) fn count_kept(&mut self, id: ScanId, chunk: ChunkIndex, found: bool) {
        let (mut bytes_read, mut bytes_reused) = (0, 0);
        for page in self.state.pages_of(&self.state.scans[&id], chunk) {
            let bytes = self.state.bytes_of(page);
            if self.state.page(page).read_for == Some(id) {
                self.state.set_read_for(page, None);
                bytes_read += bytes;
            } else {
                bytes_reused += bytes;
            }
        }
        let report = &mut self.state.scans.get_mut(&id).expect("its worker exists").report;
        report.chunks_found += u64::from(found);
        report.bytes_read += bytes_read;
        report.bytes_reused += bytes_reused;
    }
}
