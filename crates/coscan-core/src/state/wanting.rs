//! Scans that want something to be read, in the orders in which policies prefer them.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::ids::{DeviceId, ScanId, Time};

/// What scans have in common, so that only how long they have waited and how much they need tells them apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WantingKind {
    /// Where they are read from.
    pub device: DeviceId,
    /// How much each counts.
    pub weight: u32,
    /// Whether they go in order, and read whole chunks.
    pub goes_in_order: bool,
}

/// Scans of one kind for which something can be read, and too little is there or on its way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanting {
    /// Who has had nothing to go on with for longest in front, who has something last.
    by_since: BTreeSet<(Starving, ScanId)>,
    /// Who needs the fewest chunks in front.
    by_needed: BTreeSet<(usize, ScanId)>,
}

/// Since when a scan has had nothing to go on with.
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

impl Wanting {
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

    /// The scan of the highest rank, of equals the oldest, among those that have one. `rank` says it for a scan; `bound`
    /// for one that has starved since then, if it does, and needs so many chunks, and MUST NOT be lower for one that has
    /// starved longer or needs less. So a walk over those that have starved longest, and at once over those that need
    /// least, ends when nobody else can rank higher: the threshold algorithm [Fagin, Lotem, Naor: Optimal Aggregation
    /// Algorithms for Middleware, 2001, §4].
    pub fn highest<R: Ord + Copy>(
        &self,
        rank: impl Fn(ScanId) -> Option<R>,
        bound: impl Fn(Option<Time>, usize) -> R,
    ) -> Option<(R, Reverse<ScanId>)> {
        let mut highest = None;
        for (&(starving, waits), &(needed, needs)) in self.by_since.iter().zip(&self.by_needed) {
            for id in [waits, needs] {
                highest = highest.max(rank(id).map(|rank| (rank, Reverse(id))));
            }
            if highest.is_some_and(|(rank, _)| rank > bound(starving.since(), needed)) {
                break;
            }
        }
        highest
    }
}
