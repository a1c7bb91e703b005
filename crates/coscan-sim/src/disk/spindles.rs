//! Devices with a head each, the data in stripes across them: one device is a plain disk.

use std::collections::VecDeque;

use coscan_core::{LoadId, Time};

use super::service_queues::{Job, ServiceQueues, TransferQuantum};
use super::{Arrival, Request, transfer_ns};

#[derive(Clone, Debug)]
pub(super) struct Spindles {
    bytes_per_second: u64,
    stripe_bytes: u64,
    /// The most bytes of a quantum, after which an urgent job may preempt a job.
    quantum_bytes: u64,
    devices: ServiceQueues,
}

impl Spindles {
    /// # Panics
    /// If the number of devices, the bandwidth or a size is 0.
    pub(super) fn new(
        device_count: u32,
        seek_ns: u64,
        bytes_per_second: u64,
        stripe_bytes: u64,
        quantum_bytes: u64,
    ) -> Self {
        let passes = bytes_per_second > 0 && stripe_bytes > 0 && quantum_bytes > 0;
        assert!(device_count > 0 && passes, "a disk has to read");
        let devices = ServiceQueues::new(device_count, seek_ns, false);
        Self { bytes_per_second, stripe_bytes, quantum_bytes, devices }
    }

    pub(super) fn submit(&mut self, now: Time, request: &Request) {
        let job = |device| {
            let address = self.bytes_on_device(device, request.start);
            Job {
                load: request.load,
                urgent: request.urgent,
                address,
                quanta: VecDeque::new(),
                done_ns: 0,
            }
        };
        let mut jobs: Vec<_> = (0..self.devices.len()).map(job).collect();
        let mut start = request.start;
        for &(page, bytes) in &request.pages {
            let parts = (0..jobs.len()).map(|device| {
                let (from, to) = (
                    self.bytes_on_device(device, start),
                    self.bytes_on_device(device, start + bytes),
                );
                (device, from, to)
            });
            let parts: Vec<_> = parts.filter(|(_, from, to)| to > from).collect();
            let arrival = Arrival { load: request.load, page };
            let number = self.devices.expect(now, arrival, parts.len());
            for (device, from, to) in parts {
                self.add_quanta(&mut jobs[device], from, to, number);
            }
            start += bytes;
        }
        let jobs = jobs.into_iter().enumerate().filter(|(_, job)| !job.quanta.is_empty());
        jobs.for_each(|(device, job)| self.devices.add(now, device, job));
    }

    pub(super) fn escalate(&mut self, load: LoadId) {
        self.devices.escalate(load);
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        self.devices.next_at()
    }

    pub(super) fn pop(&mut self, now: Time) -> Option<Arrival> {
        self.devices.pop(now)
    }

    /// Adds the part of a page that lies between two addresses of a device.
    fn add_quanta(&self, job: &mut Job, from: u64, to: u64, page: u64) {
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

    /// The number of bytes before `address` that lie on a device.
    fn bytes_on_device(&self, device: usize, address: u64) -> u64 {
        let round = self.stripe_bytes.saturating_mul(self.devices.len() as u64);
        let (rounds, rest) = (address / round, address % round);
        let before = self.stripe_bytes.saturating_mul(device as u64);
        rounds * self.stripe_bytes + rest.saturating_sub(before).min(self.stripe_bytes)
    }
}
