//! Pages in the order of their next use, roughly: in buckets, whose width grows with the distance [CS11 §4.3, Figure
//! 4.2]. To file a page, to take it out and to find those used last takes as long for a million pages as for a thousand.

use std::collections::BTreeMap;

use crate::ids::{PageId, Time};
use crate::policy::page_map::PageMap;

/// A bucket is at most this part of the distance wide, when a page is indexed in it.
const PARTS: u64 = 16;

/// The width of the nearest buckets, in nanoseconds.
const WIDTH_MIN_NS: u64 = 1 << 24;

/// Pages in buckets of time.
#[derive(Clone, Debug, Default)]
pub(super) struct CalendarQueue {
    /// Pages by the begin of their bucket.
    buckets: BTreeMap<Time, Vec<PageId>>,
    /// Where each page is: its bucket, and its position there.
    positions: PageMap<(Time, usize)>,
}

impl CalendarQueue {
    /// Files a page that is used so many nanoseconds from now.
    pub(super) fn insert(&mut self, now: Time, id: PageId, ns: u64) {
        self.remove_page(id);
        let bucket = bucket(now, ns);
        let pages = self.buckets.entry(bucket).or_default();
        pages.push(id);
        let position = pages.len() - 1;
        self.positions.insert(id, (bucket, position));
    }

    /// Takes a page out, if it is positions.
    pub(super) fn remove_page(&mut self, id: PageId) {
        let Some((bucket, position)) = self.positions.remove(id) else { return };
        let pages = self.buckets.get_mut(&bucket).expect("a indexed page is in its bucket");
        pages.swap_remove(position);
        if let Some(&moved) = pages.get(position) {
            self.positions.insert(moved, (bucket, position));
        } else if pages.is_empty() {
            self.buckets.remove(&bucket);
        }
    }

    /// Takes out the pages whose time has come: they were used, or their scans are slower than they were.
    pub(super) fn take_due(&mut self, now: Time) -> Vec<PageId> {
        let mut due = Vec::new();
        while let Some(first) = self.buckets.first_entry().filter(|first| *first.key() <= now) {
            due.extend(first.remove());
        }
        for &id in &due {
            self.positions.remove(id);
        }
        due
    }

    /// The begin of the last bucket that begins before this time.
    pub(super) fn last_before(&self, before: Option<Time>) -> Option<Time> {
        let last = match before {
            Some(before) => self.buckets.range(..before).next_back(),
            None => self.buckets.last_key_value(),
        };
        last.map(|(&bucket, _)| bucket)
    }

    /// The page at a position of a bucket.
    pub(super) fn get(&self, bucket: Time, position: usize) -> Option<PageId> {
        self.buckets.get(&bucket)?.get(position).copied()
    }
}

/// The bucket of what is used so many nanoseconds from now.
pub(super) fn bucket(now: Time, ns: u64) -> Time {
    let ns = ns.clamp(WIDTH_MIN_NS, u64::MAX / 4);
    let width = (ns / PARTS).max(WIDTH_MIN_NS).next_power_of_two();
    Time(now.0.saturating_add(ns) / width * width)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn page(page: u32) -> PageId {
        PageId(page)
    }

    /// All pages, those used last in front.
    fn last_first(queue: &CalendarQueue) -> Vec<u32> {
        let buckets =
            std::iter::successors(queue.last_before(None), |&at| queue.last_before(Some(at)));
        let pages = buckets.flat_map(|at| (0..).map_while(move |position| queue.get(at, position)));
        pages.map(|id| id.0).collect()
    }

    #[test]
    fn what_is_used_last_comes_first() {
        let mut queue = CalendarQueue::default();
        for (id, seconds) in [(0, 10), (1, 1), (2, 100), (3, 50)] {
            queue.insert(Time(7), page(id), seconds * SECOND);
        }
        assert_eq!(last_first(&queue), [2, 3, 0, 1]);
        queue.insert(Time(8), page(2), 20 * SECOND);
        queue.remove_page(page(3));
        assert_eq!(last_first(&queue), [2, 0, 1]);
    }

    #[test]
    fn pages_that_share_a_bucket_are_taken_out_one_by_one() {
        let mut queue = CalendarQueue::default();
        (0..5).for_each(|id| queue.insert(Time(0), page(id), SECOND));
        for id in [0, 3, 1] {
            queue.remove_page(page(id));
        }
        queue.remove_page(page(3));
        assert_eq!(last_first(&queue), [4, 2]);
    }

    #[test]
    fn what_is_due_comes_up_once() {
        let mut queue = CalendarQueue::default();
        queue.insert(Time(0), page(0), SECOND);
        queue.insert(Time(0), page(1), 9 * SECOND);
        assert_eq!(queue.take_due(Time(SECOND / 2)), []);
        assert_eq!(queue.take_due(Time(2 * SECOND)), [page(0)]);
        assert_eq!(queue.take_due(Time(2 * SECOND)), []);
        assert_eq!(last_first(&queue), [1]);
    }

    #[test]
    fn buckets_are_wider_the_further_ahead() {
        let buckets = |from: u64, to: u64| {
            let count: std::collections::BTreeSet<_> =
                (from..to).step_by(1 << 20).map(|ns| bucket(Time(0), ns)).collect();
            count.len()
        };
        let (near, far) = (buckets(SECOND, 2 * SECOND), buckets(9 * SECOND, 10 * SECOND));
        assert!((8..=32).contains(&near) && far <= 3, "{near} near, {far} far");
    }

    #[test]
    fn nothing_filed_now_is_due_now() {
        for now in [0, 1, WIDTH_MIN_NS - 1, WIDTH_MIN_NS, 3 * SECOND + 7] {
            for ns in [0, 1, SECOND, u64::MAX] {
                assert!(bucket(Time(now), ns) > Time(now), "{ns} ns from {now}");
            }
        }
    }
}
