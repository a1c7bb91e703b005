//! An object store: each request has a latency, then shares the bandwidth with the others.

use std::collections::BTreeMap;

use coscan_core::{LoadId, Time};

use super::waiting::Waiting;
use super::{Arrival, Request};
use crate::processor_sharing::ProcessorSharing;

#[derive(Clone, Debug)]
pub(super) struct ObjectStore {
    latency_ns: u64,
    requests_max: usize,
    /// Requests that wait for others to end.
    queue: Waiting<Request>,
    /// Requests whose first byte has not arrived, by its time of arrival and order of submission.
    beginning: BTreeMap<(Time, u64), Request>,
    /// Requests being transferred: the work is the page being transferred, the pages are the rest of the request.
    passing: ProcessorSharing<Request>,
    sequence: u64,
}

impl ObjectStore {
    /// # Panics
    /// If a bandwidth or the number of requests served at once is 0.
    pub(super) fn new(
        latency_ns: u64,
        bytes_per_second: u64,
        bytes_per_second_per_request: u64,
        requests_max: u32,
    ) -> Self {
        assert!(requests_max > 0, "an object store has to serve requests");
        Self {
            latency_ns,
            requests_max: requests_max as usize,
            queue: Waiting::none(),
            beginning: BTreeMap::new(),
            passing: ProcessorSharing::new(bytes_per_second, bytes_per_second_per_request),
            sequence: 0,
        }
    }

    pub(super) fn submit(&mut self, now: Time, mut request: Request) {
        request.pages.reverse(); // Pages are taken off the end.
        let urgent = request.urgent;
        self.queue.push(request, urgent);
        self.begin_next(now);
    }

    pub(super) fn escalate(&mut self, load: LoadId) {
        self.queue.escalate(|request| request.load == load);
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        let beginning = self.beginning.first_key_value().map(|(&(at, _), _)| at);
        beginning.into_iter().chain(self.passing.next_at()).min()
    }

    pub(super) fn pop(&mut self, now: Time) -> Option<Arrival> {
        while let Some(first) = self.beginning.first_entry()
            && first.key().0 <= now
        {
            let request = first.remove();
            self.pass_page(now, request);
        }
        let mut request = self.passing.pop(now)?;
        let (page, _) = request.pages.pop().expect("a request passes while it has pages");
        let arrival = Arrival { load: request.load, page };
        if request.pages.is_empty() {
            self.begin_next(now);
        } else {
            self.pass_page(now, request);
        }
        Some(arrival)
    }

    fn begin_next(&mut self, now: Time) {
        if self.beginning.len() + self.passing.len() < self.requests_max
            && let Some(request) = self.queue.pop()
        {
            self.sequence += 1;
            let at = Time(now.0 + self.latency_ns);
            self.beginning.insert((at, self.sequence), request);
        }
    }

    fn pass_page(&mut self, now: Time, request: Request) {
        let (_, bytes) = *request.pages.last().expect("a request has pages left");
        self.passing.add(now, bytes, request);
    }
}
