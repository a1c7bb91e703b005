//! Indexes over the running scans, updated whenever one changes. A decision finds the scans that it looks for without a
//! walk over all of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{DeviceId, ScanId, Time};
use crate::scan::{IndexKeys, Scan, Ticket};
use crate::state::load_candidates::{CandidateKind, LoadCandidates};
use crate::table::StarvationSets;

/// The running scans, by the keys that decisions look for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ScanIndex {
    /// All scans that have workers, oldest first.
    pub(crate) running: BTreeSet<ScanId>,
    /// The scans that have workers, smallest first.
    pub(crate) sizes: BTreeSet<(u64, ScanId)>,
    /// The scans that have workers, fewest chunks in all first.
    pub(crate) chunks_in_all: BTreeSet<(u64, ScanId)>,
    /// Scans with a waiting worker, the one that has waited longest in front.
    pub(crate) waiting: BTreeSet<(Ticket, ScanId)>,
    /// Waiting scans that need nothing more, or have a chunk and need no processor.
    pub(crate) at_once: BTreeSet<(Ticket, ScanId)>,
    /// Waiting scans with a chunk that wait for a processor.
    pub(crate) ready: ReadyScans,
    pub(crate) load_candidates: BTreeMap<CandidateKind, LoadCandidates>,
    /// Scans that lack chunks and need some that another server has in its pool, fewest chunks left first.
    pub(crate) nearby_candidates: BTreeSet<(usize, ScanId)>,
    /// Scans that read for other servers and lack chunks.
    pub(crate) remote_candidates: BTreeSet<(DeviceId, ScanId)>,
    /// The number of scans with a worker that waits or has a chunk.
    pub(crate) competing: usize,
    pub(crate) busy_workers: RunningTotal,
    pub(crate) active_workers: RunningTotal,
    /// Scans with an active worker, the one whose worker has been at work on its chunk for longest in front.
    pub(crate) active_since: BTreeSet<(Time, ScanId)>,
    /// Nanoseconds for a chunk, over the scans for which that is known.
    pub(crate) chunk_ns: RunningTotal,
    /// Chunks needed by the scans that go in order and read whole chunks.
    pub(crate) in_order_needed: RunningTotal,
}

/// Scans with a waiting worker and a chunk for it, in several orders.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ReadyScans {
    pub(crate) by_ticket: BTreeSet<(Ticket, ScanId)>,
    pub(crate) by_size: BTreeSet<(u64, ScanId)>,
    pub(crate) by_left: BTreeSet<(usize, ScanId)>,
    /// The scan with the largest part of a chunk decoded in front.
    pub(crate) by_decoded: BTreeSet<(Reverse<usize>, ScanId)>,
}

/// A sum over the scans that have a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct RunningTotal {
    /// The number of scans that have a value.
    pub(crate) scans: usize,
    pub(crate) sum: u128,
}

impl RunningTotal {
    /// The average over the scans that have a value.
    pub(crate) fn average(self) -> Option<f64> {
        (self.scans > 0).then(|| self.sum as f64 / self.scans as f64)
    }

    fn change(&mut self, [from, to]: [Option<u64>; 2]) {
        self.scans = self.scans - usize::from(from.is_some()) + usize::from(to.is_some());
        self.sum = self.sum - u128::from(from.unwrap_or(0)) + u128::from(to.unwrap_or(0));
    }
}

impl ScanIndex {
    /// Indexes a scan by its keys now.
    pub(crate) fn update(&mut self, scan: &mut Scan, starvation: &mut StarvationSets) {
        let keys = IndexKeys::of(scan);
        if scan.indexed != Some(keys) {
            let from = scan.indexed.replace(keys);
            self.move_scan(scan, from, Some(keys));
            if from.is_none_or(|from| from.spare_chunks != keys.spare_chunks) {
                starvation.set_spare(scan.slot, keys.spare_chunks);
            }
        }
        if scan.goes_in_order() {
            starvation.set_next(scan.slot, || scan.needed.iter().take(scan.chunks_ahead()));
        }
    }

    pub(crate) fn remove(&mut self, scan: &mut Scan, starvation: &mut StarvationSets) {
        let from = scan.indexed.take();
        self.move_scan(scan, from, None);
        starvation.remove(scan.slot);
    }

    fn move_scan(&mut self, scan: &Scan, from: Option<IndexKeys>, to: Option<IndexKeys>) {
        let both = [from, to];
        let with_id = |key: fn(IndexKeys) -> Option<Ticket>| {
            both.map(|keys| keys.and_then(key).map(|ticket| (ticket, scan.id)))
        };
        let of_running = both.map(|keys| keys.filter(|_| !scan.is_interest()));
        move_key(&mut self.running, of_running.map(|keys| keys.map(|_| scan.id)));
        move_key(&mut self.sizes, of_running.map(|keys| keys.map(|keys| (keys.size, scan.id))));
        let chunks = of_running.map(|keys| keys.map(|keys| (keys.chunks_in_all, scan.id)));
        move_key(&mut self.chunks_in_all, chunks);
        move_key(&mut self.waiting, with_id(IndexKeys::ticket));
        move_key(&mut self.at_once, with_id(|keys| keys.ticket().filter(|_| keys.answers_at_once)));
        let active_since = |keys: IndexKeys| keys.active_since.map(|since| (since, scan.id));
        move_key(&mut self.active_since, both.map(|keys| keys.and_then(active_since)));
        self.ready.move_scan(scan.id, both.map(|keys| keys.filter(|keys| keys.ready().is_some())));
        self.move_candidate(scan, both.map(|keys| keys.filter(|keys| keys.needs_load)));
        let remote = both.map(|keys| keys.filter(|keys| keys.needs_load && scan.is_remote()));
        move_key(
            &mut self.remote_candidates,
            remote.map(|keys| keys.map(|_| (scan.device, scan.id))),
        );
        let nearby = both.map(|keys| keys.filter(|keys| keys.needs_nearby_load));
        let by_left = nearby.map(|keys| keys.map(|keys| (keys.left, scan.id)));
        move_key(&mut self.nearby_candidates, by_left);
        let [from, to] = both.map(|keys| usize::from(keys.is_some_and(IndexKeys::competes)));
        self.competing = self.competing - from + to;
        let counts = |count: fn(IndexKeys) -> Option<u64>| both.map(|keys| keys.and_then(count));
        self.busy_workers.change(counts(|keys| Some(keys.busy_workers as u64)));
        self.active_workers.change(counts(|keys| Some(keys.active_workers as u64)));
        self.chunk_ns.change(counts(|keys| Some(keys.chunk_ns).filter(|&ns| ns > 0)));
        if scan.goes_in_order() {
            self.in_order_needed.change(counts(|keys| Some(keys.left as u64)));
        }
    }

    fn move_candidate(&mut self, scan: &Scan, both: [Option<IndexKeys>; 2]) {
        let [from, to] = both.map(|keys| keys.map(|keys| (keys.starving_since(), keys.left)));
        if from == to {
            return;
        }
        let goes_in_order = scan.goes_in_order();
        let kind = CandidateKind { device: scan.device, weight: scan.weight, goes_in_order };
        let load_candidates = self.load_candidates.entry(kind).or_default();
        from.inspect(|&(since, needed)| load_candidates.remove(scan.id, since, needed));
        to.inspect(|&(since, needed)| load_candidates.add(scan.id, since, needed));
        if load_candidates.is_empty() {
            self.load_candidates.remove(&kind);
        }
    }
}

impl ReadyScans {
    fn move_scan(&mut self, id: ScanId, both: [Option<IndexKeys>; 2]) {
        let by_ticket = |keys: IndexKeys| keys.ticket().map(|ticket| (ticket, id));
        move_key(&mut self.by_ticket, both.map(|keys| keys.and_then(by_ticket)));
        move_key(&mut self.by_size, both.map(|keys| keys.map(|keys| (keys.size, id))));
        move_key(&mut self.by_left, both.map(|keys| keys.map(|keys| (keys.left, id))));
        let decoded = both.map(|keys| keys.filter(|keys| keys.decoded_percent > 0));
        let by_decoded = decoded.map(|keys| keys.map(|keys| (Reverse(keys.decoded_percent), id)));
        move_key(&mut self.by_decoded, by_decoded);
    }
}

/// Moves a scan from one key of an index to another; `None` if it has no key there.
fn move_key<K: Ord + Copy>(keys: &mut BTreeSet<K>, [from, to]: [Option<K>; 2]) {
    if from != to {
        from.inspect(|key| {
            keys.remove(key);
        });
        keys.extend(to);
    }
}
