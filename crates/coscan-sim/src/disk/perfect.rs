//! The papers' disk: every load takes as long.

use std::collections::VecDeque;

use coscan_core::Time;

use super::{Arrival, Request};

#[derive(Clone, Debug)]
pub(super) struct Perfect {
    ns_per_chunk: u64,
    free_at: Time,
    arrivals: VecDeque<(Time, Arrival)>,
}

impl Perfect {
    pub(super) fn new(ns_per_chunk: u64) -> Self {
        Self { ns_per_chunk, free_at: Time::default(), arrivals: VecDeque::new() }
    }

    /// Takes on a load, all its requests at once: its pages share the time by their bytes.
    pub(super) fn submit(&mut self, now: Time, load: &[Request]) {
        let start = self.free_at.max(now);
        let bytes = u128::from(load.iter().map(Request::bytes).sum::<u64>()).max(1);
        let mut passed = 0;
        for request in load {
            for &(page, page_bytes) in &request.pages {
                passed += u128::from(page_bytes);
                let ns = (passed * u128::from(self.ns_per_chunk)).div_ceil(bytes);
                let at = Time(start.0 + u64::try_from(ns).expect("a part of a load's time"));
                self.arrivals.push_back((at, Arrival { load: request.load, page }));
            }
        }
        self.free_at = Time(start.0 + self.ns_per_chunk);
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        self.arrivals.front().map(|&(at, _)| at)
    }

    pub(super) fn pop(&mut self, now: Time) -> Option<Arrival> {
        self.arrivals.pop_front_if(|(at, _)| *at <= now).map(|(_, arrival)| arrival)
    }
}
