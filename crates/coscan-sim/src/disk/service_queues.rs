//! Devices that do one thing at a time: what they do, what waits for them, and the pages that come of it.
//!
//! A job is done in quanta. After a quantum something urgent may come between; then the job goes on where it was left.

use std::collections::{BTreeMap, VecDeque};

use coscan_core::{LoadId, Time};

use super::Arrival;
use super::waiting::Waiting;

/// What one device does of a request.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) load: LoadId,
    pub(super) urgent: bool,
    /// The byte of the device that comes next.
    pub(super) address: u64,
    /// What is to be done, the next quantum first.
    pub(super) quanta: VecDeque<TransferQuantum>,
    /// Nanoseconds from its beginning to what comes next.
    pub(super) done_ns: u64,
}

/// A part of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransferQuantum {
    /// Nanoseconds from the beginning of the job to the end of this quantum when nothing comes between.
    pub(super) done_ns: u64,
    /// The byte of the device behind it.
    pub(super) end: u64,
    /// The page of which the last byte on this device is in it, by number.
    pub(super) page: Option<u64>,
}

/// Devices, and the pages that are on their way.
#[derive(Clone, Debug)]
pub(super) struct ServiceQueues {
    lines: Vec<Line>,
    /// By number, and with the devices from which something of a page is still to come.
    expected: BTreeMap<u64, (Arrival, usize)>,
    /// By time and number.
    arrived: BTreeMap<(Time, u64), Arrival>,
    pages: u64,
}

impl ServiceQueues {
    /// So many devices. They move their heads in so many nanoseconds, and change over to what is urgent only between
    /// jobs if those are to stay `whole`.
    pub(super) fn new(count: u32, seek_ns: u64, whole: bool) -> Self {
        let line = Line { seek_ns, whole, head: None, waiting: Waiting::none(), current: None };
        Self {
            lines: vec![line; count as usize],
            expected: BTreeMap::new(),
            arrived: BTreeMap::new(),
            pages: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Expects a page of which parts come from so many devices; returns its number.
    pub(super) fn expect(&mut self, now: Time, arrival: Arrival, parts: usize) -> u64 {
        self.pages += 1;
        if parts == 0 {
            self.arrived.insert((now, self.pages), arrival);
        } else {
            self.expected.insert(self.pages, (arrival, parts));
        }
        self.pages
    }

    /// Gives a device something to do.
    pub(super) fn add(&mut self, now: Time, line: usize, job: Job) {
        let line = &mut self.lines[line];
        let urgent = job.urgent;
        line.waiting.push(job, urgent);
        if line.current.is_none() {
            line.begin(now);
        }
    }

    /// What is left of a load is urgent from now on.
    pub(super) fn escalate(&mut self, load: LoadId) {
        for line in &mut self.lines {
            line.waiting.escalate(|job| job.load == load);
            if let Some((job, _)) = &mut line.current {
                job.urgent |= job.load == load;
            }
        }
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        let arrived = self.arrived.first_key_value().map(|(&(at, _), _)| at);
        self.lines.iter().filter_map(Line::next_at).chain(arrived).min()
    }

    /// Does what is due. Returns a page that is there.
    pub(super) fn pop(&mut self, now: Time) -> Option<Arrival> {
        for line in &mut self.lines {
            while let Some(at) = line.next_at().filter(|&at| at <= now) {
                let Some(page) = line.end_piece(at) else { continue };
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
struct Line {
    seek_ns: u64,
    whole: bool,
    /// The byte that the head stands before; nowhere at first.
    head: Option<u64>,
    waiting: Waiting<Job>,
    /// What it does, and when that would have begun if nothing had come between.
    current: Option<(Job, Time)>,
}

impl Line {
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
    fn end_piece(&mut self, now: Time) -> Option<u64> {
        let (job, _) = self.current.as_mut()?;
        let quantum = job.quanta.pop_front()?;
        self.head = Some(quantum.end);
        let gives_way = !self.whole && !job.urgent && self.waiting.has_urgent();
        if job.quanta.is_empty() {
            self.begin(now);
        } else if gives_way && let Some((job, _)) = self.current.take() {
            self.waiting.put_back(Job { address: quantum.end, done_ns: quantum.done_ns, ..job });
            self.begin(now);
        }
        quantum.page
    }
}
