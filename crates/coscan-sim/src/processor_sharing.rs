//! Processor sharing: jobs share a capacity equally, such as workers on cores, or requests on a network.
//!
//! While n jobs run, each proceeds at `min(each_max, capacity / n)`. All jobs are served equally, so one number is
//! enough: the service that a job present from the beginning would have received. A job ends when this number has grown
//! by the work of the job since its arrival. Each step takes O(log n).

use std::collections::BTreeMap;

use coscan_core::Time;

const NS_PER_SECOND: u128 = 1_000_000_000;
/// The parts of a unit of work in which service is counted, so that rounding errors are negligible.
const PARTS: u128 = 1 << 20;

/// Jobs that share a capacity. Units of work are core nanoseconds or bytes.
#[derive(Clone, Debug)]
pub(crate) struct ProcessorSharing<T> {
    /// Units per second for all jobs.
    capacity: u128,
    /// The most units per second for one job.
    each_max: u128,
    /// The service, in parts of units, that a job present from the beginning would have received by `now`.
    service: u128,
    now: Time,
    /// The jobs by the service at which they end.
    jobs: BTreeMap<Ticket, T>,
    sequence: u64,
    /// Units · nanoseconds / second done so far.
    done: u128,
}

/// Identifies a job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Ticket {
    end_service: u128,
    sequence: u64,
}

impl<T> ProcessorSharing<T> {
    /// # Panics
    /// If no job could ever end.
    pub(crate) fn new(capacity_per_second: u64, each_max_per_second: u64) -> Self {
        assert!(capacity_per_second > 0 && each_max_per_second > 0, "work has to go on");
        Self {
            capacity: capacity_per_second.into(),
            each_max: each_max_per_second.into(),
            service: 0,
            now: Time::default(),
            jobs: BTreeMap::new(),
            sequence: 0,
            done: 0,
        }
    }

    /// Creates cores, with work in core nanoseconds.
    pub(crate) fn cores(cores: u32) -> Self {
        Self::new(u64::from(cores) * 1_000_000_000, 1_000_000_000)
    }

    /// Adds a job of `units` units of work.
    pub(crate) fn add(&mut self, now: Time, units: u64, job: T) -> Ticket {
        self.pass(now);
        self.sequence += 1;
        let end_service = self.service + u128::from(units) * PARTS;
        let ticket = Ticket { end_service, sequence: self.sequence };
        self.jobs.insert(ticket, job);
        ticket
    }

    /// Removes a job before its end.
    pub(crate) fn remove(&mut self, now: Time, ticket: Ticket) -> Option<T> {
        self.pass(now);
        self.jobs.remove(&ticket)
    }

    /// The time when the next job ends, if none is added or removed before.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let (ticket, _) = self.jobs.first_key_value()?;
        let missing = ticket.end_service.saturating_sub(self.service);
        let ns = (missing * self.jobs.len() as u128 * NS_PER_SECOND).div_ceil(self.rate() * PARTS);
        Some(Time(self.now.0.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX))))
    }

    /// A job that has ended by `now`, which is not after [`Self::next_at`].
    pub(crate) fn pop(&mut self, now: Time) -> Option<T> {
        self.pass(now);
        let first = self.jobs.first_entry()?;
        (first.key().end_service <= self.service).then(|| first.remove())
    }

    /// The number of jobs that run.
    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Units of work done up to the last call.
    pub(crate) fn units_done(&self) -> u64 {
        u64::try_from(self.done / NS_PER_SECOND).unwrap_or(u64::MAX)
    }

    /// Units per second for all jobs together.
    fn rate(&self) -> u128 {
        self.capacity.min(self.each_max * self.jobs.len() as u128)
    }

    fn pass(&mut self, now: Time) {
        let ns = u128::from(now.since(self.now));
        self.now = self.now.max(now);
        if !self.jobs.is_empty() {
            let done = ns * self.rate();
            self.done += done;
            self.service += done * PARTS / (self.jobs.len() as u128 * NS_PER_SECOND);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time when each job ends, in order.
    fn ends(shared: &mut ProcessorSharing<&'static str>) -> Vec<(&'static str, u64)> {
        let mut ends = Vec::new();
        while let Some(at) = shared.next_at() {
            if let Some(job) = shared.pop(at) {
                ends.push((job, at.0));
            }
        }
        ends
    }

    #[test]
    fn a_job_alone_uses_one_core() {
        let mut cores = ProcessorSharing::cores(4);
        cores.add(Time(5), 100, "a");
        assert_eq!(ends(&mut cores), [("a", 105)]);
        assert_eq!(cores.units_done(), 100);
    }

    #[test]
    fn more_jobs_than_cores_slow_each_other_down_equally() {
        let mut cores = ProcessorSharing::cores(2);
        // Three on two cores: 2/3 each. a ends after 90 · 3/2 = 135; then b and c have a core each for the 60 left.
        cores.add(Time(0), 90, "a");
        cores.add(Time(0), 150, "b");
        cores.add(Time(0), 150, "c");
        assert_eq!(ends(&mut cores), [("a", 135), ("b", 195), ("c", 195)]);
        assert_eq!(cores.units_done(), 390);
    }

    #[test]
    fn a_job_that_comes_later_or_leaves_early_changes_the_others_pace() {
        let mut core = ProcessorSharing::cores(1);
        core.add(Time(0), 100, "a");
        // a has 60 left at 40; both continue at half speed until b leaves at 60; then a has 50 left.
        let b = core.add(Time(40), 1_000, "b");
        assert_eq!(core.remove(Time(60), b), Some("b"));
        assert_eq!(ends(&mut core), [("a", 110)]);
        assert_eq!(core.units_done(), 110);
    }

    #[test]
    fn bytes_share_a_network_of_which_one_request_may_use_a_part() {
        // 1000 bytes a second, 400 for one request. Two: 400 each. Three: 333 each.
        let mut network = ProcessorSharing::new(1_000, 400);
        network.add(Time(0), 400, "a");
        network.add(Time(0), 800, "b");
        assert_eq!(ends(&mut network), [("a", 1_000_000_000), ("b", 2_000_000_000)]);
        for job in ["c", "d", "e"] {
            network.add(Time(2_000_000_000), 100, job);
        }
        assert!(ends(&mut network).iter().all(|&(_, at)| at == 2_300_000_000));
    }

    #[test]
    fn no_work_ends_at_once_and_first_come_is_first_served() {
        let mut core = ProcessorSharing::cores(1);
        core.add(Time(7), 0, "a");
        core.add(Time(7), 0, "b");
        assert_eq!(ends(&mut core), [("a", 7), ("b", 7)]);
    }
}
