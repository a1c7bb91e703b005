//! Candidates for loads, in the orders in which policies prefer them.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::ids::{DeviceId, ScanId, Time};

/// The properties that candidates of a kind share: their ranks differ by their waiting time and needs only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CandidateKind {
    /// The device that they are read from.
    pub device: DeviceId,
    /// The weight of each.
    pub weight: u32,
    /// Whether they take whole chunks in order.
    pub goes_in_order: bool,
}

/// Scans of one kind with too few chunks ready or arriving, for which something can be read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LoadCandidates {
    /// The scans, the one that has starved for longest in front, those that do not starve last.
    by_since: BTreeSet<(Starving, ScanId)>,
    /// The scans, the one that needs the fewest chunks in front.
    by_needed: BTreeSet<(usize, ScanId)>,
}

/// The time since which a scan has starved.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Starving {
    Since(Time),
    Not,
}

impl Starving {
    fn since(self) -> Option<Time> {
        match self {
            Self::Since(since) => Some(since),
            Self::Not => None,
        }
    }
}

impl LoadCandidates {
    pub(crate) fn add(&mut self, id: ScanId, since: Option<Time>, needed: usize) {
        self.by_since.insert((since.map_or(Starving::Not, Starving::Since), id));
        self.by_needed.insert((needed, id));
    }

    pub(crate) fn remove(&mut self, id: ScanId, since: Option<Time>, needed: usize) {
        self.by_since.remove(&(since.map_or(Starving::Not, Starving::Since), id));
        self.by_needed.remove(&(needed, id));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_since.is_empty()
    }

    /// All of them.
    pub fn scans(&self) -> impl Iterator<Item = ScanId> + '_ {
        self.by_since.iter().map(|&(_, id)| id)
    }

    /// The scan with the highest rank; among equals, the oldest. `rank` gives the rank of a scan, or `None` to leave it
    /// out. `bound` gives the rank of a scan that has starved since a time and needs a number of chunks. It MUST NOT be
    /// lower for one that has starved longer or needs less. So a walk over those that have starved longest and, side by
    /// side, over those that need least ends when no other can rank higher: the threshold algorithm [Fagin, Lotem,
    /// Naor: Optimal Aggregation Algorithms for Middleware, 2001, §4].
    pub fn highest<R: Ord + Copy>(
        &self,
        rank: impl Fn(ScanId) -> Option<R>,
        bound: impl Fn(Option<Time>, usize) -> R,
    ) -> Option<(R, Reverse<ScanId>)> {
        let mut highest = None;
        for (&(starving, most_starved), &(needed, least_needing)) in
            self.by_since.iter().zip(&self.by_needed)
        {
            for id in [most_starved, least_needing] {
                highest = highest.max(rank(id).map(|rank| (rank, Reverse(id))));
            }
            if highest.is_some_and(|(rank, _)| rank > bound(starving.since(), needed)) {
                break;
            }
        }
        highest
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    /// A rank that is higher for a scan that has waited longer or needs less.
    fn rank(since: Option<Time>, needed: usize) -> i64 {
        since.map_or(0, |since| 40 - since.0 as i64) - 3 * needed as i64
    }

    proptest! {
        #[test]
        fn no_scan_ranks_higher_than_the_highest(
            scans in prop::collection::vec((prop::option::of(0u64..40), 0usize..20, any::<bool>()), 0..60),
        ) {
            let scans: Vec<_> =
                scans.iter().map(|&(since, needed, out)| (since.map(Time), needed, out)).collect();
            let mut load_candidates = LoadCandidates::default();
            for (id, &(since, needed, _)) in (0..).map(ScanId).zip(&scans) {
                load_candidates.add(id, since, needed);
            }
            let rank_of = |id: ScanId| {
                let (since, needed, out) = scans[id.0 as usize];
                (!out).then(|| rank(since, needed))
            };
            let all = load_candidates.scans().filter_map(|id| Some((rank_of(id)?, Reverse(id))));
            prop_assert_eq!(load_candidates.highest(rank_of, rank), all.max());
            for (id, &(since, needed, _)) in (0..).map(ScanId).zip(&scans) {
                load_candidates.remove(id, since, needed);
            }
            prop_assert_eq!(load_candidates, LoadCandidates::default());
        }
    }

    #[test]
    fn few_are_looked_at_where_one_has_waited_longest_and_needs_least() {
        let mut load_candidates = LoadCandidates::default();
        (0..1_000)
            .for_each(|id| load_candidates.add(ScanId(id), Some(Time(u64::from(id))), id as usize));
        let looked_at = Cell::new(0);
        let rank_of = |id: ScanId| {
            looked_at.set(looked_at.get() + 1);
            Some(rank(Some(Time(u64::from(id.0))), id.0 as usize))
        };
        assert_eq!(load_candidates.highest(rank_of, rank), Some((40, Reverse(ScanId(0)))));
        assert!(looked_at.get() <= 4, "{}", looked_at.get());
    }
}
