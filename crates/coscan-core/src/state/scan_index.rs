//! How the running scans stand, indexed anew whenever one changes: a decision finds the scans that it looks for without a
//! walk over all of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{ScanId, Time};
use crate::scan::{IndexKeys, Scan, Turn};
use crate::state::load_candidates::{CandidateKind, LoadCandidates};
use crate::table::Starved;

/// The running scans by how they stand.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ScanIndex {
    /// All of them, smallest first.
    pub(crate) sizes: BTreeSet<(u64, ScanId)>,
    /// All of them, those that read the fewest chunks in all first.
    pub(crate) chunks_in_all: BTreeSet<(u64, ScanId)>,
    /// Those with a worker that waits, for longest in front.
    pub(crate) waiting: BTreeSet<(Turn, ScanId)>,
    /// Of those, the ones that need nothing more.
    pub(crate) finished: BTreeSet<(Turn, ScanId)>,
    /// Of those, the ones that a chunk is there for.
    pub(crate) ready: Ready,
    pub(crate) load_candidates: BTreeMap<CandidateKind, LoadCandidates>,
    pub(crate) busy_workers: Sum,
    pub(crate) active_workers: Sum,
    /// Those with such a worker, by the one that has been at work on its chunk for longest.
    pub(crate) active_since: BTreeSet<(Time, ScanId)>,
    /// Nanoseconds for a chunk, of those of which that is known.
    pub(crate) chunk_ns: Sum,
    /// Picoseconds for a row, of those of which that is known.
    pub(crate) row_ps: Sum,
    /// Chunks needed by those that go in order and read whole chunks.
    pub(crate) in_order_needed: Sum,
}

/// Scans with a worker that waits and a chunk that is there for it, in several orders.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ready {
    pub(crate) by_turn: BTreeSet<(Turn, ScanId)>,
    pub(crate) by_size: BTreeSet<(u64, ScanId)>,
    pub(crate) by_needed: BTreeSet<(usize, ScanId)>,
    /// Those that can use most of what is decoded in front.
    pub(crate) by_decoded: BTreeSet<(Reverse<usize>, ScanId)>,
}

/// What scans have of something together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sum {
    /// How many have some.
    pub(crate) scans: usize,
    pub(crate) sum: u128,
}

impl Sum {
    /// What those that have some have on average.
    pub(crate) fn average(self) -> Option<f64> {
        (self.scans > 0).then(|| self.sum as f64 / self.scans as f64)
    }

    fn change(&mut self, [from, to]: [Option<u64>; 2]) {
        self.scans = self.scans - usize::from(from.is_some()) + usize::from(to.is_some());
        self.sum = self.sum - u128::from(from.unwrap_or(0)) + u128::from(to.unwrap_or(0));
    }
}

impl ScanIndex {
    /// Files a scan by how it stands now.
    pub(crate) fn update(&mut self, scan: &mut Scan, starved: &mut Starved) {
        let status = IndexKeys::of(scan);
        if scan.indexed != Some(status) {
            let from = scan.indexed.replace(status);
            self.move_scan(scan, from, Some(status));
            starved.slots.set(scan.slot, status.is_starved);
            starved.or_almost.set(scan.slot, status.is_almost_starved);
        }
    }

    /// Takes a scan out.
    pub(crate) fn remove_page(&mut self, scan: &mut Scan, starved: &mut Starved) {
        let from = scan.indexed.take();
        self.move_scan(scan, from, None);
        starved.slots.remove(scan.slot);
        starved.or_almost.remove(scan.slot);
    }

    fn move_scan(&mut self, scan: &Scan, from: Option<IndexKeys>, to: Option<IndexKeys>) {
        let both = [from, to];
        let keys = |key: fn(IndexKeys) -> Option<Turn>| {
            both.map(|it| it.and_then(key).map(|turn| (turn, scan.id)))
        };
        move_key(&mut self.sizes, both.map(|it| it.map(|it| (it.size, scan.id))));
        let chunks = both.map(|it| it.map(|it| (it.chunks_in_all, scan.id)));
        move_key(&mut self.chunks_in_all, chunks);
        move_key(&mut self.waiting, keys(IndexKeys::turn));
        let active = both.map(|it| it.and_then(|it| it.active_since).map(|since| (since, scan.id)));
        move_key(&mut self.active_since, active);
        move_key(&mut self.finished, keys(|it| it.turn().filter(|_| it.needed == 0)));
        move_key(&mut self.ready.by_turn, keys(IndexKeys::ready));
        let ready = both.map(|it| it.filter(|it| it.ready().is_some()));
        move_key(&mut self.ready.by_size, ready.map(|it| it.map(|it| (it.size, scan.id))));
        move_key(&mut self.ready.by_needed, ready.map(|it| it.map(|it| (it.needed, scan.id))));
        let decoded = ready.map(|it| it.filter(|it| it.most_decoded > 0));
        let decoded = decoded.map(|it| it.map(|it| (Reverse(it.most_decoded), scan.id)));
        move_key(&mut self.ready.by_decoded, decoded);
        self.move_candidate(scan, both.map(|it| it.filter(|it| it.wants_load)));
        let counts = |count: fn(IndexKeys) -> Option<u64>| both.map(|it| it.and_then(count));
        self.busy_workers.change(counts(|it| Some(it.busy_workers as u64)));
        self.active_workers.change(counts(|it| Some(it.active_workers as u64)));
        self.chunk_ns.change(counts(|it| Some(it.chunk_ns).filter(|&ns| ns > 0)));
        self.row_ps.change(counts(|it| it.row_ps));
        if scan.goes_in_order() {
            self.in_order_needed.change(counts(|it| Some(it.needed as u64)));
        }
    }

    fn move_candidate(&mut self, scan: &Scan, [from, to]: [Option<IndexKeys>; 2]) {
        let both = [from, to].map(|it| it.map(|it| (it.starving_since(), it.needed)));
        if both[0] == both[1] {
            return;
        }
        let goes_in_order = scan.goes_in_order();
        let kind = CandidateKind { device: scan.device, weight: scan.weight, goes_in_order };
        let load_candidates = self.load_candidates.entry(kind).or_default();
        both[0].inspect(|&(since, needed)| load_candidates.remove(scan.id, since, needed));
        both[1].inspect(|&(since, needed)| load_candidates.add(scan.id, since, needed));
        if load_candidates.is_empty() {
            self.load_candidates.remove(&kind);
        }
    }
}

fn move_key<K: Ord + Copy>(keys: &mut BTreeSet<K>, [from, to]: [Option<K>; 2]) {
    if from != to {
        from.inspect(|key| {
            keys.remove(key);
        });
        keys.extend(to);
    }
}
