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
        let ready = self.ready();
        let Some(&first) = ready.first() else {
            self.held_back = None;
            return;
        };
        if self.is_overdue(first) {
            return self.answer_from(first);
        }
        let short: Vec<_> =
            ready.iter().copied().filter(|&it| self.is_short(self.waiting[it].0)).collect();
        let active: usize = self.state.scans().map(Scan::active_workers).sum();
        let max = self.config.active_workers_max;
        let cuts_line = |&position: &usize| {
            active / 2 < max || self.state.scans[&self.waiting[position].0].picks()
        };
        let next = match short.is_empty() {
            true => Some(ready).filter(|_| active < max).map(|ready| self.preferred(&ready)),
            false => Some(self.preferred(&short)).filter(|it| active < max || cuts_line(it)),
        };
        if let Some(position) = next {
            self.answer_from(position);
        } else if self.held_back.is_none() {
            self.held_back = Some(Time(self.state.now.0.saturating_add(self.config.pause_ns)));
        }
    }

    /// The waiting workers for whom a chunk is there.
    fn ready(&self) -> Vec<usize> {
        let deliverable = |&position: &usize| {
            let (id, _) = self.waiting[position];
            self.state.scans[&id].is_deliverable()
        };
        (0..self.waiting.len()).filter(deliverable).collect()
    }

    /// Which of some waiting workers the policy prefers.
    fn preferred(&self, positions: &[usize]) -> usize {
        let scans: Vec<_> = positions.iter().map(|&position| self.waiting[position].0).collect();
        positions[self.policy.prefer_worker(&self.state, &scans)]
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
        let rows = self.state.tables[&scan.table].rows(chunk);
        scan.pace.handed(self.state.now, rows);
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
