//! The papers' disk: every load takes the same time.

use coscan_core::{LoadId, Time};

use super::service_queues::{Job, ServiceQueues, TransferQuantum};
use super::{Arrival, Request};

#[derive(Clone, Debug)]
pub(super) struct Perfect {
    ns_per_chunk: u64,
    device: ServiceQueues,
}

impl Perfect {
    pub(super) fn new(ns_per_chunk: u64) -> Self {
        Self { ns_per_chunk, device: ServiceQueues::new(1, 0, true) }
    }

    /// Submits a load, all its requests at once. Its pages share the time by their bytes.
    pub(super) fn submit(&mut self, now: Time, requests: &[Request]) {
        let Some(&Request { load, urgent, .. }) = requests.first() else { return };
        let bytes = u128::from(requests.iter().map(Request::bytes).sum::<u64>()).max(1);
        let pages = requests.iter().flat_map(|request| &request.pages);
        let mut passed = 0;
        let quanta = pages.map(|&(page, page_bytes)| {
            passed += u128::from(page_bytes);
            let ns = (passed * u128::from(self.ns_per_chunk)).div_ceil(bytes);
            let done_ns = u64::try_from(ns).expect("a part of a load's time");
            let page = self.device.expect(now, Arrival { load, page }, 1);
            TransferQuantum { done_ns, end: 0, page: Some(page) }
        });
        let quanta = quanta.collect();
        self.device.add(now, 0, Job { load, urgent, address: 0, quanta, done_ns: 0 });
    }

    pub(super) fn escalate(&mut self, load: LoadId) {
        self.device.escalate(load);
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        self.device.next_at()
    }

    pub(super) fn pop(&mut self, now: Time) -> Option<Arrival> {
        self.device.pop(now)
    }
}
