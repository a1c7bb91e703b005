//! A disk at work: loads go in, pages come out one by one.

mod object_store;
mod perfect;
mod service_queues;
mod spindles;
mod waiting;

use std::sync::Arc;

use coscan_core::{Index, Layout, LoadId, PageIndex, TableId, Time};

use crate::machine::Disk;
use object_store::ObjectStore;
use perfect::Perfect;
use spindles::Spindles;

/// A page that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    pub(crate) load: LoadId,
    pub(crate) page: PageIndex,
}

/// Neighbouring pages of a load, read in one go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    pub(crate) load: LoadId,
    /// Whether it is served before requests that are not urgent.
    pub(crate) urgent: bool,
    /// The address of its first byte.
    pub(crate) start: u64,
    /// Its pages with their bytes, in the order in which they lie.
    pub(crate) pages: Vec<(PageIndex, u64)>,
}

impl Request {
    fn bytes(&self) -> u64 {
        self.pages.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// A disk at work.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    device: Device,
    /// The address of each page of each table. Tables lie one behind another, pages in the order of the layout.
    starts: Vec<Vec<u64>>,
    layouts: Vec<Arc<Layout>>,
    now: Time,
    pages_under_way: usize,
    /// Requests so far.
    pub(crate) requests: u64,
    /// Nanoseconds so far during which some page was being read.
    pub(crate) busy_ns: u64,
}

#[derive(Clone, Debug)]
enum Device {
    Perfect(Perfect),
    Spindles(Spindles),
    ObjectStore(ObjectStore),
}

impl Reader {
    pub(crate) fn new(disk: Disk, quantum_bytes: u64, layouts: Vec<Arc<Layout>>) -> Self {
        let device = match disk {
            Disk::Perfect { ns_per_chunk } => Device::Perfect(Perfect::new(ns_per_chunk)),
            Disk::SeekTransfer { seek_ns, bytes_per_second } => Device::Spindles(Spindles::new(
                1,
                seek_ns,
                bytes_per_second,
                u64::MAX,
                quantum_bytes,
            )),
            Disk::Raid { devices, seek_ns, bytes_per_second, stripe_bytes } => {
                let spindles =
                    Spindles::new(devices, seek_ns, bytes_per_second, stripe_bytes, quantum_bytes);
                Device::Spindles(spindles)
            }
            Disk::ObjectStore {
                latency_ns,
                bytes_per_second_per_request,
                bytes_per_second,
                requests_max,
            } => Device::ObjectStore(ObjectStore::new(
                latency_ns,
                bytes_per_second,
                bytes_per_second_per_request,
                requests_max,
            )),
        };
        let mut end = 0u64;
        let mut place = |bytes: u64| {
            end += bytes;
            end - bytes
        };
        let starts = layouts.iter().map(|layout| {
            let pages = (0..layout.page_count()).map(PageIndex::from_usize);
            pages.map(|page| place(layout.bytes_of(page))).collect()
        });
        let starts = starts.collect();
        let (now, requests, busy_ns) = (Time::default(), 0, 0);
        Self { device, starts, layouts, now, pages_under_way: 0, requests, busy_ns }
    }

    /// Submits a load. Urgent requests are served before all others, as soon as the quantum in service has passed.
    pub(crate) fn submit(
        &mut self,
        now: Time,
        load: LoadId,
        urgent: bool,
        table: TableId,
        pages: &[PageIndex],
    ) {
        self.pass(now);
        self.pages_under_way += pages.len();
        let requests = self.coalesce(load, urgent, table, pages);
        self.requests += requests.len() as u64;
        match &mut self.device {
            Device::Perfect(perfect) => perfect.submit(now, &requests),
            Device::Spindles(spindles) => {
                requests.iter().for_each(|request| spindles.submit(now, request))
            }
            Device::ObjectStore(store) => {
                requests.into_iter().for_each(|request| store.submit(now, request));
            }
        }
    }

    /// Makes a load in flight urgent.
    pub(crate) fn escalate(&mut self, load: LoadId) {
        match &mut self.device {
            Device::Perfect(perfect) => perfect.escalate(load),
            Device::Spindles(spindles) => spindles.escalate(load),
            Device::ObjectStore(store) => store.escalate(load),
        }
    }

    /// The time of the next event.
    pub(crate) fn next_at(&self) -> Option<Time> {
        match &self.device {
            Device::Perfect(perfect) => perfect.next_at(),
            Device::Spindles(spindles) => spindles.next_at(),
            Device::ObjectStore(store) => store.next_at(),
        }
    }

    /// Processes the events that are due, up to the first page that arrives.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Arrival> {
        self.pass(now);
        let arrival = match &mut self.device {
            Device::Perfect(perfect) => perfect.pop(now),
            Device::Spindles(spindles) => spindles.pop(now),
            Device::ObjectStore(store) => store.pop(now),
        };
        self.pages_under_way -= usize::from(arrival.is_some());
        arrival
    }

    /// Joins neighbouring pages into requests, in the order asked for.
    fn coalesce(
        &self,
        load: LoadId,
        urgent: bool,
        table: TableId,
        pages: &[PageIndex],
    ) -> Vec<Request> {
        let layout = &self.layouts[table.as_usize()];
        let neighbours = |a: &PageIndex, b: &PageIndex| a.as_usize() + 1 == b.as_usize();
        let requests = pages.chunk_by(neighbours).map(|run| Request {
            load,
            urgent,
            start: self.starts[table.as_usize()][run[0].as_usize()],
            pages: run.iter().map(|&page| (page, layout.bytes_of(page))).collect(),
        });
        requests.collect()
    }

    fn pass(&mut self, now: Time) {
        if self.pages_under_way > 0 {
            self.busy_ns += now.since(self.now);
        }
        self.now = self.now.max(now);
    }
}

/// Nanoseconds of the transfer of `bytes`, rounded up.
pub(crate) fn transfer_ns(bytes: u64, bytes_per_second: u64) -> u64 {
    let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_second));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
