//! Deliveries: workers that wait are answered in the order in which they asked.

use super::ActiveBufferManager;
use crate::action::Action;
use crate::ids::{ChunkIndex, ScanId, WorkerIndex};
use crate::scan::{Order, Worker};

impl ActiveBufferManager {
    /// Answers the first waiting worker that can be answered.
    pub(super) fn answer_waiting(&mut self) {
        for position in 0..self.waiting.len() {
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
        let pages = self.state.pages(scan.table, chunk, &scan.groups);
        self.state.unneed(id, chunk);
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
        let stood = self.set_worker(id, worker, Worker::Busy { chunk, pinned: true });
        let found = stood == Worker::Waiting { since: self.state.now };
        let report = &mut self.state.scans.get_mut(&id).expect("a waiting scan runs").report;
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
