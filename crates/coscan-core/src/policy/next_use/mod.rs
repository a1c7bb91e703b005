//! The next-use index: cached pages in the order of their next use by scans in order. `predictive` evicts by it, and
//! `relevance` uses it for its scans in order.

mod calendar_queue;
mod estimator;

use crate::ids::{ChunkIndex, PageId, ScanId, Time};
use crate::scan::Scan;
use crate::state::State;

use calendar_queue::{CalendarQueue, bucket, earliest_bucket};
use estimator::NextUseEstimator;

/// Pages by their next use by the scans that were added.
#[derive(Clone, Debug, Default)]
pub(super) struct NextUseIndex {
    estimator: NextUseEstimator,
    queue: CalendarQueue,
}

/// The position of a walk over the pages, see [`NextUseIndex::next_last`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    bucket: Option<Time>,
    position: usize,
}

impl NextUseIndex {
    /// Adds a scan, or adds it anew with the chunks that it needs now.
    pub(super) fn start(&mut self, state: &State, scan: &Scan) {
        let needed: Vec<_> = scan.needed().iter().collect();
        self.estimator.start(state, scan, &needed);
        self.insert_pages(state, scan, &needed);
    }

    /// Adds chunks that a scan that was added needs, too.
    pub(super) fn extend(&mut self, state: &State, scan: &Scan, chunks: &[ChunkIndex]) {
        match self.estimator.extend(state, scan, chunks) {
            true => self.insert_pages(state, scan, chunks),
            false => self.start(state, scan),
        }
    }

    /// Indexes pages that no scan needed before. Pages of other scans are checked when a walk reaches them.
    fn insert_pages(&mut self, state: &State, scan: &Scan, chunks: &[ChunkIndex]) {
        for id in state.cached_pages_of(scan, chunks) {
            self.insert(state, id);
        }
    }

    pub(super) fn remove(&mut self, scan: ScanId) {
        self.estimator.remove(scan);
    }

    /// Whether no scan was added.
    pub(super) fn is_empty(&self) -> bool {
        self.estimator.is_empty()
    }

    /// Indexes a page that arrived or was used.
    pub(super) fn insert(&mut self, state: &State, id: PageId) {
        match self.next_use_ns(state, id) {
            Some(ns) => self.queue.insert(state.now(), id, ns),
            None => self.queue.remove_page(id),
        }
    }

    /// Removes a page that left the pool.
    pub(super) fn remove_page(&mut self, id: PageId) {
        self.queue.remove_page(id);
    }

    /// Nanoseconds until the first of the scans uses a page; `None` if none of them needs it.
    pub(super) fn next_use_ns(&self, state: &State, id: PageId) -> Option<u64> {
        self.estimator.next_use_ns(state, id)
    }

    /// Starts a walk over the pages, latest next use first.
    pub(super) fn walk(&mut self, state: &State) -> Walk {
        for id in self.queue.take_due(state.now()) {
            self.insert(state, id);
        }
        Walk { bucket: self.queue.last_before(None), position: 0 }
    }

    /// The next page that `admits` accepts, and the nanoseconds until its next use. A page whose entry is too late,
    /// because a scan was added or became faster, is indexed anew and comes up again in its place. The walk may stop
    /// where pages are used sooner than in `ns_min`, and continue later.
    pub(super) fn next_last(
        &mut self,
        state: &State,
        walk: &mut Walk,
        ns_min: u64,
        mut admits: impl FnMut(PageId) -> bool,
    ) -> Option<(u64, PageId)> {
        let earliest = earliest_bucket(state.now(), ns_min);
        while let Some(start) = walk.bucket.filter(|&start| start >= earliest) {
            let Some(id) = self.queue.get(start, walk.position) else {
                *walk = Walk { bucket: self.queue.last_before(Some(start)), position: 0 };
                continue;
            };
            if !admits(id) {
                walk.position += 1;
                continue;
            }
            match self.next_use_ns(state, id) {
                Some(ns) if bucket(state.now(), ns) >= start => {
                    walk.position += 1;
                    return Some((ns, id));
                }
                _ => self.insert(state, id),
            }
        }
        None
    }
}
