//! Devices with a head each, the data in stripes across them: one device is a plain disk.

use std::collections::VecDeque;

use coscan_core::{LoadId, Time};

use super::service_queues::{Job, ServiceQueues, TransferQuantum};
use super::{Arrival, Request, transfer_ns};

#[derive(Clone, Debug)]
pub(super) struct Spindles {
    bytes_per_second: u64,
    stripe_bytes: u64,
    /// The most bytes that pass before something urgent may come between.
    quantum_bytes: u64,
    lines: ServiceQueues,
}

impl Spindles {
    /// # Panics
    /// If there is no device, or nothing would ever pass.
    pub(super) fn new(
        devices: u32,
        seek_ns: u64,
        bytes_per_second: u64,
        stripe_bytes: u64,
        quantum_bytes: u64,
    ) -> Self {
        let passes = bytes_per_second > 0 && stripe_bytes > 0 && quantum_bytes > 0;
        assert!(devices > 0 && passes, "a disk has to read");
        let lines = ServiceQueues::new(devices, seek_ns, false);
        Self { bytes_per_second, stripe_bytes, quantum_bytes, lines }
    }

    pub(super) fn submit(&mut self, now: Time, request: &Request) {
        let job = |arm| {
            let address = self.on_arm(arm, request.start);
            Job {
                load: request.load,
                urgent: request.urgent,
                address,
                quanta: VecDeque::new(),
                done_ns: 0,
            }
        };
        let mut jobs: Vec<_> = (0..self.lines.len()).map(job).collect();
        let mut start = request.start;
        for &(page, bytes) in &request.pages {
            let parts = (0..jobs.len()).map(|arm| {
                let (from, to) = (self.on_arm(arm, start), self.on_arm(arm, start + bytes));
                (arm, from, to)
            });
            let parts: Vec<_> = parts.filter(|(_, from, to)| to > from).collect();
            let arrival = Arrival { load: request.load, page };
            let number = self.lines.expect(now, arrival, parts.len());
            for (arm, from, to) in parts {
                self.add_pieces(&mut jobs[arm], from, to, number);
            }
            start += bytes;
        }
        let jobs = jobs.into_iter().enumerate().filter(|(_, job)| !job.quanta.is_empty());
        jobs.for_each(|(arm, job)| self.lines.add(now, arm, job));
    }

    pub(super) fn escalate(&mut self, load: LoadId) {
        self.lines.escalate(load);
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        self.lines.next_at()
    }

    pub(super) fn pop(&mut self, now: Time) -> Option<Arrival> {
        self.lines.pop(now)
    }

    /// Adds the part of a page that lies between two bytes of a device.
    fn add_pieces(&self, job: &mut Job, from: u64, to: u64, page: u64) {
        let mut end = from;
        while end < to {
            end = end.saturating_add(self.quantum_bytes).min(to);
            job.quanta.push_back(TransferQuantum {
                done_ns: transfer_ns(end - job.address, self.bytes_per_second),
                end,
                page: (end == to).then_some(page),
            });
        }
    }

    /// How many of the bytes before `address` lie on a device.
    fn on_arm(&self, arm: usize, address: u64) -> u64 {
        let round = self.stripe_bytes.saturating_mul(self.lines.len() as u64);
        let (rounds, rest) = (address / round, address % round);
        let before = self.stripe_bytes.saturating_mul(arm as u64);
        rounds * self.stripe_bytes + rest.saturating_sub(before).min(self.stripe_bytes)
    }
}
