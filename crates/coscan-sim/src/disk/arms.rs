//! Devices with a head each, the data in stripes across them: one device is a plain disk.

use std::collections::BTreeMap;

use coscan_core::Time;

use super::{Arrival, Request, transfer_ns};

#[derive(Clone, Debug)]
pub(super) struct Arms {
    seek_ns: u64,
    bytes_per_second: u64,
    stripe_bytes: u64,
    arms: Vec<Arm>,
    /// By time, then by order of submission.
    arrivals: BTreeMap<(Time, u64), Arrival>,
    sequence: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Arm {
    free_at: Time,
    /// The byte of the device that the head stands before; nowhere at first.
    head: Option<u64>,
}

/// What one device does of a request.
struct Part {
    /// First byte of the device.
    from: u64,
    /// When that byte starts to pass.
    starts: Time,
}

impl Arms {
    /// # Panics
    /// If there is no device, or nothing would ever pass.
    pub(super) fn new(
        devices: u32,
        seek_ns: u64,
        bytes_per_second: u64,
        stripe_bytes: u64,
    ) -> Self {
        assert!(devices > 0 && bytes_per_second > 0 && stripe_bytes > 0, "a disk has to read");
        Self {
            seek_ns,
            bytes_per_second,
            stripe_bytes,
            arms: vec![Arm::default(); devices as usize],
            arrivals: BTreeMap::new(),
            sequence: 0,
        }
    }

    pub(super) fn submit(&mut self, now: Time, request: &Request) {
        let end = request.start + request.bytes();
        let parts: Vec<_> =
            (0..self.arms.len()).map(|arm| self.begin(now, arm, request.start, end)).collect();
        let mut start = request.start;
        for &(page, bytes) in &request.pages {
            let ends = parts.iter().enumerate().filter_map(|(arm, part)| {
                let (from, to) = (self.on_arm(arm, start), self.on_arm(arm, start + bytes));
                let ns = transfer_ns(to - part.from, self.bytes_per_second);
                (to > from).then_some(Time(part.starts.0 + ns))
            });
            let at = ends.max().unwrap_or(now);
            start += bytes;
            self.sequence += 1;
            let arrival = Arrival { load: request.load, page };
            self.arrivals.insert((at, self.sequence), arrival);
        }
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        self.arrivals.first_key_value().map(|(&(at, _), _)| at)
    }

    pub(super) fn pop(&mut self, now: Time) -> Option<Arrival> {
        let first = self.arrivals.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// Queues a device's part of the bytes from `start` to `end`.
    fn begin(&mut self, now: Time, arm: usize, start: u64, end: u64) -> Part {
        let (from, to) = (self.on_arm(arm, start), self.on_arm(arm, end));
        let device = &mut self.arms[arm];
        let begin = device.free_at.max(now);
        let seek_ns = if device.head == Some(from) { 0 } else { self.seek_ns };
        let starts = Time(begin.0 + seek_ns);
        if to > from {
            let ns = transfer_ns(to - from, self.bytes_per_second);
            *device = Arm { free_at: Time(starts.0 + ns), head: Some(to) };
        }
        Part { from, starts }
    }

    /// How many of the bytes before `address` lie on a device.
    fn on_arm(&self, arm: usize, address: u64) -> u64 {
        let round = self.stripe_bytes.saturating_mul(self.arms.len() as u64);
        let (rounds, rest) = (address / round, address % round);
        let before = self.stripe_bytes.saturating_mul(arm as u64);
        rounds * self.stripe_bytes + rest.saturating_sub(before).min(self.stripe_bytes)
    }
}
