//! Devices that serve one job at a time: the job in service, the queue, and the pages being read.
//!
//! A job is served in quanta. After a quantum an urgent job may preempt it; then it is resumed.

use std::collections::{BTreeMap, VecDeque};

use coscan_core::{LoadId, Time};

use super::Arrival;
use super::waiting::Waiting;

/// The part of a request on one device.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) load: LoadId,
    pub(super) urgent: bool,
    /// The next byte on the device.
    pub(super) address: u64,
    /// The remaining quanta, the next one first.
    pub(super) quanta: VecDeque<TransferQuantum>,
    /// Nanoseconds from its beginning to the next quantum.
    pub(super) done_ns: u64,
}

/// A quantum of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransferQuantum {
    /// Nanoseconds from the beginning of the job to the end of this quantum without preemption.
    pub(super) done_ns: u64,
    /// The byte of the device after it.
    pub(super) end: u64,
    /// The number of the page whose last byte on this device is in it.
    pub(super) page: Option<u64>,
}

/// Devices, and the pages being read.
#[derive(Clone, Debug)]
pub(super) struct ServiceQueues {
    devices: Vec<DeviceQueue>,
    /// Pages by number, with the number of devices that have still to read a part of each.
    expected: BTreeMap<u64, (Arrival, usize)>,
    /// Pages that have arrived, by time and number.
    arrived: BTreeMap<(Time, u64), Arrival>,
    pages: u64,
}

impl ServiceQueues {
    /// `count` devices with seeks of `seek_ns` nanoseconds. If jobs are to stay `whole`, none is preempted.
    pub(super) fn new(count: u32, seek_ns: u64, whole: bool) -> Self {
        let device =
            DeviceQueue { seek_ns, whole, head: None, waiting: Waiting::none(), current: None };
        Self {
            devices: vec![device; count as usize],
            expected: BTreeMap::new(),
            arrived: BTreeMap::new(),
            pages: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.devices.len()
    }

    /// Adds a page that `parts` devices read parts of. Returns its number.
    pub(super) fn expect(&mut self, now: Time, arrival: Arrival, parts: usize) -> u64 {
        self.pages += 1;
        if parts == 0 {
            self.arrived.insert((now, self.pages), arrival);
        } else {
            self.expected.insert(self.pages, (arrival, parts));
        }
        self.pages
    }

    /// Adds a job to the queue of a device.
    pub(super) fn add(&mut self, now: Time, device: usize, job: Job) {
        let device = &mut self.devices[device];
        let urgent = job.urgent;
        device.waiting.push(job, urgent);
        if device.current.is_none() {
            device.begin(now);
        }
    }

    /// Makes the remaining jobs of a load urgent.
    pub(super) fn escalate(&mut self, load: LoadId) {
        for device in &mut self.devices {
            device.waiting.escalate(|job| job.load == load);
            if let Some((job, _)) = &mut device.current {
                job.urgent |= job.load == load;
            }
        }
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        let arrived = self.arrived.first_key_value().map(|(&(at, _), _)| at);
        self.devices.iter().filter_map(DeviceQueue::next_at).chain(arrived).min()
    }

    /// Processes the events that are due. Returns a page that has arrived.
    pub(super) fn pop(&mut self, now: Time) -> Option<Arrival> {
        for device in &mut self.devices {
            while let Some(at) = device.next_at().filter(|&at| at <= now) {
                let Some(page) = device.end_quantum(at) else { continue };
                let (arrival, parts) = self.expected.get_mut(&page).expect("a page comes once");
                *parts -= 1;
                if *parts == 0 {
                    self.arrived.insert((at, page), *arrival);
                    self.expected.remove(&page);
                }
            }
        }
        let first = self.arrived.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

/// A device.
#[derive(Clone, Debug)]
struct DeviceQueue {
    seek_ns: u64,
    whole: bool,
    /// The position of the head; `None` at first.
    head: Option<u64>,
    waiting: Waiting<Job>,
    /// The job in service, and when it would have begun without preemption.
    current: Option<(Job, Time)>,
}

impl DeviceQueue {
    fn begin(&mut self, now: Time) {
        self.current = self.waiting.pop().map(|job| {
            let seek_ns = if self.head == Some(job.address) { 0 } else { self.seek_ns };
            let begun = Time(now.0 + seek_ns - job.done_ns);
            (job, begun)
        });
    }

    fn next_at(&self) -> Option<Time> {
        let (job, begun) = self.current.as_ref()?;
        job.quanta.front().map(|quantum| Time(begun.0 + quantum.done_ns))
    }

    /// Ends the quantum that is due now. Returns the page that ends with it.
    fn end_quantum(&mut self, now: Time) -> Option<u64> {
        let (job, _) = self.current.as_mut()?;
        let quantum = job.quanta.pop_front()?;
        self.head = Some(quantum.end);
        let is_preempted = !self.whole && !job.urgent && self.waiting.has_urgent();
        if job.quanta.is_empty() {
            self.begin(now);
        } else if is_preempted && let Some((job, _)) = self.current.take() {
            self.waiting.put_back(Job { address: quantum.end, done_ns: quantum.done_ns, ..job });
            self.begin(now);
        }
        quantum.page
    }
}
