//! Deliveries: workers that wait are answered in the order in which they asked, or as a policy that schedules processors
//! prefers, no more of them at a time than the processors can use.

use super::ActiveBufferManager;
use crate::action::Action;
use crate::ids::{ChunkIndex, ScanId, Time, WorkerIndex};
use crate::scan::{Order, Scan, ScanLength, Worker};

impl ActiveBufferManager {
    /// Answers a waiting worker that can be answered, if there is one.
    pub(super) fn answer_waiting(&mut self) {
        if !self.policy.schedules_workers() {
            return self.answer_from(0);
        }
        if self.waiting.is_empty() {
            self.held_back = None;
            return;
        }
        let finished = |&(id, _): &(ScanId, WorkerIndex)| self.state.scans[&id].needed.is_empty();
        if let Some(position) = self.waiting.iter().position(finished) {
            return self.answer_from(position);
        }
        let Some(position) = self.choose_waiting() else {
            self.held_back = None;
            return;
        };
        let active: usize = self.state.scans().map(Scan::active_workers).sum();
        let max = self.config.active_workers_max;
        let id = self.waiting[position].0;
        let cuts_line = || self.is_short(id) && (active / 2 < max || self.state.scans[&id].picks());
        if active < max || self.is_overdue(position) || cuts_line() {
            self.answer_from(position);
        } else if self.held_back.is_none() {
            self.held_back = Some(Time(self.state.now.0.saturating_add(self.config.pause_ns)));
        }
    }

    /// The waiting worker to go on next, among those for whom a chunk is there: one that has lost its patience (I5),
    /// else the one that the policy prefers, of the short ones if there are any.
    fn choose_waiting(&self) -> Option<usize> {
        let deliverable = |id: ScanId| self.state.scans[&id].is_deliverable();
        let mut ready: Vec<_> = (0..self.waiting.len())
            .filter(|&position| deliverable(self.waiting[position].0))
            .collect();
        let first = *ready.first()?;
        if self.is_overdue(first) {
            return Some(first);
        }
        let is_short = |&position: &usize| self.is_short(self.waiting[position].0);
        if ready.iter().any(is_short) {
            ready.retain(is_short);
        }
        let scans: Vec<_> = ready.iter().map(|&position| self.waiting[position].0).collect();
        ready.get(self.policy.prefer_worker(&self.state, &scans)).copied()
    }

    fn is_short(&self, id: ScanId) -> bool {
        self.length_of(id) <= ScanLength::Short
    }

    fn is_overdue(&self, position: usize) -> bool {
        let since = self.state.scans[&self.waiting[position].0].waiting_since();
        since.is_some_and(|since| self.state.is_overdue(since))
    }

    /// Answers the first waiting worker from this position on that can be answered.
    fn answer_from(&mut self, start: usize) {
        for position in start..self.waiting.len() {
            let (id, worker) = self.waiting[position];
            let scan = self.state.scan(id).expect("a waiting scan runs");
            if scan.needed.is_empty() {
                self.waiting.remove(position);
                self.set_worker(id, worker, Worker::Finished);
                self.actions.push_back(Action::Finish { scan: id, worker });
                return;
            }
            if let Some(chunk) = self.policy.choose_delivery(&self.state, id) {
                self.waiting.remove(position);
                self.deliver(id, worker, chunk);
                return;
            }
        }
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
        self.state.unneed(id, &[chunk]);
        let (mut bytes_read, mut bytes_reused) = (0, 0);
        for page in pages {
            self.state.pin(page);
            let bytes = self.state.bytes_of(page);
            if self.state.page(page).read_for == Some(id) {
                self.state.set_read_for(page, None);
                bytes_read += bytes;
            } else {
                bytes_reused += bytes;
            }
        }
        let stood = self.set_worker(
            id,
            worker,
            Worker::Busy { chunk, since: self.state.now, pinned: true, active: true },
        );
        let found = stood == Worker::Waiting { since: self.state.now };
        let scan = self.state.scans.get_mut(&id).expect("a waiting scan runs");
        let rows = self.state.tables[&scan.table].layout.rows(chunk);
        scan.pace.handed(self.state.now, rows.end - rows.start);
        let report = &mut scan.report;
        report.chunks_delivered += 1;
        report.chunks_found += u64::from(found);
        report.bytes_read += bytes_read;
        report.bytes_reused += bytes_reused;
        self.policy.on_delivered(&self.state, id, chunk);
        self.changed = true;
        self.actions.push_back(Action::Deliver { scan: id, worker, chunk });
    }

    /// Says where a worker stands now; returns where it stood.
    fn set_worker(&mut self, scan: ScanId, worker: WorkerIndex, to: Worker) -> Worker {
        let scan = self.state.scans.get_mut(&scan).expect("a waiting scan runs");
        std::mem::replace(scan.worker(worker).expect("a waiting worker exists"), to)
    }
}
