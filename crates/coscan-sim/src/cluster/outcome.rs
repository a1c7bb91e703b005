//! The outcome of a run of a cluster.

use std::collections::BTreeMap;

use coscan_core::{PageIndex, Time};

use super::Run;
use crate::outcome::Outcome;
use crate::simulation::Simulation;

/// The outcome of a run of a cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterOutcome {
    /// Nanoseconds until the last query ended.
    pub total_ns: u64,
    /// Bytes read from the store, by all machines.
    pub store_bytes: u64,
    /// Requests to the store.
    pub store_requests: u64,
    /// The times when each page of each table was requested from the store, by all machines, in order.
    pub page_reads: BTreeMap<(usize, PageIndex), Vec<Time>>,
    /// Bytes sent from machine to machine.
    pub peer_bytes: u64,
    /// The number of messages without pages, by kind.
    pub messages: BTreeMap<&'static str, u64>,
    /// Loads of which some pages came from the store and some from other machines.
    pub mixed_loads: u64,
    /// The machines that run at the end.
    pub machines: Vec<Outcome>,
}

impl ClusterOutcome {
    /// The most times that any page was requested from the store within this time.
    #[must_use]
    pub fn page_reads_max(&self, within_ns: u64) -> usize {
        let most = |reads: &Vec<Time>| {
            let within = |(first, at): (usize, &Time)| {
                reads[first..].partition_point(|read| read.since(*at) < within_ns)
            };
            reads.iter().enumerate().map(within).max().unwrap_or(0)
        };
        self.page_reads.values().map(most).max().unwrap_or(0)
    }
}

impl Run<'_> {
    pub(super) fn outcome(mut self) -> ClusterOutcome {
        let crashed =
            self.crashed.iter().map(|machine| (machine.store_bytes(), machine.store_requests()));
        let running = self.machines.iter().flatten();
        let running = running.map(|machine| (machine.store_bytes(), machine.store_requests()));
        let (store_bytes, store_requests) =
            crashed.chain(running).fold((0, 0), |(bytes, requests), (more_bytes, more)| {
                (bytes + more_bytes, requests + more)
            });
        let mut page_reads = BTreeMap::<_, Vec<_>>::new();
        let all = self.crashed.iter().chain(self.machines.iter().flatten());
        for &(file, page, at) in all.flat_map(Simulation::page_reads) {
            page_reads.entry((file.0 as usize, page)).or_default().push(at);
        }
        page_reads.values_mut().for_each(|reads| reads.sort_unstable());
        let mixed_loads = self.machines.iter().flatten().map(Simulation::mixed_loads).sum();
        let machines: Vec<_> =
            self.machines.iter_mut().flatten().map(Simulation::outcome).collect();
        ClusterOutcome {
            total_ns: machines.iter().map(|outcome| outcome.total_ns).max().unwrap_or(0),
            store_bytes,
            store_requests,
            page_reads,
            peer_bytes: self.peer_bytes,
            messages: self.messages,
            mixed_loads,
            machines,
        }
    }
}
