//! A calendar queue: pages in buckets of time by their next use, wider the further ahead they are [CS11 §4.3, Figure
//! 4.2]. Inserting or removing a page and finding the last ones takes as long for a million pages as for a thousand.

use std::collections::BTreeMap;

use crate::ids::{PageId, Time};
use crate::policy::page_map::PageMap;

/// The width of a bucket is at most one part in this many of its distance.
const WIDTH_DIVISOR: u64 = 16;

/// The furthest next use that is distinguished, in nanoseconds.
const NS_MAX: u64 = u64::MAX / 4;

/// The width of the nearest buckets, in nanoseconds: 17 ms.
const WIDTH_MIN_NS: u64 = 1 << 24;

/// Pages in buckets of time.
#[derive(Clone, Debug, Default)]
pub(super) struct CalendarQueue {
    /// Pages by the start of their bucket.
    buckets: BTreeMap<Time, Vec<PageId>>,
    /// The bucket of each page, and its position there.
    positions: PageMap<(Time, usize)>,
}

impl CalendarQueue {
    /// Inserts a page that is used in `ns` nanoseconds, or moves it there.
    pub(super) fn insert(&mut self, now: Time, id: PageId, ns: u64) {
        self.remove_page(id);
        let bucket = bucket(now, ns);
        let pages = self.buckets.entry(bucket).or_default();
        pages.push(id);
        let position = pages.len() - 1;
        self.positions.insert(id, (bucket, position));
    }

    /// Removes a page, if it is there.
    pub(super) fn remove_page(&mut self, id: PageId) {
        let Some((bucket, position)) = self.positions.remove(id) else { return };
        let pages = self.buckets.get_mut(&bucket).expect("an indexed page is in its bucket");
        pages.swap_remove(position);
        if let Some(&moved) = pages.get(position) {
            self.positions.insert(moved, (bucket, position));
        } else if pages.is_empty() {
            self.buckets.remove(&bucket);
        }
    }

    /// Removes the pages that are due: they were used, or their scans have become slower.
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

    /// The start of the last bucket that starts before this time.
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

/// The bucket of pages that are used in `ns` nanoseconds.
pub(super) fn bucket(now: Time, ns: u64) -> Time {
    let ns = ns.clamp(WIDTH_MIN_NS, NS_MAX);
    let width = width(ns);
    Time(now.0.saturating_add(ns) / width * width)
}

/// The earliest start of a bucket for pages that are used in `ns` nanoseconds or later. It may be before that of `ns`
/// itself: wider buckets begin at multiples of their own width.
pub(super) fn earliest_bucket(now: Time, ns: u64) -> Time {
    match ns.min(NS_MAX) {
        ns if ns <= WIDTH_MIN_NS => Time(0),
        ns => Time(now.0.saturating_add(ns.saturating_sub(2 * width(ns)))),
    }
}

fn width(ns: u64) -> u64 {
    (ns / WIDTH_DIVISOR).max(WIDTH_MIN_NS).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn page(page: u32) -> PageId {
        PageId(page)
    }

    /// All pages, latest next use first.
    fn last_first(queue: &CalendarQueue) -> Vec<u32> {
        let buckets = std::iter::successors(queue.last_before(None), |&bucket| {
            queue.last_before(Some(bucket))
        });
        let pages =
            buckets.flat_map(|bucket| (0..).map_while(move |position| queue.get(bucket, position)));
        pages.map(|id| id.0).collect()
    }

    #[test]
    fn pages_used_last_come_first() {
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
    fn pages_of_one_bucket_are_removed_one_by_one() {
        let mut queue = CalendarQueue::default();
        (0..5).for_each(|id| queue.insert(Time(0), page(id), SECOND));
        for id in [0, 3, 1] {
            queue.remove_page(page(id));
        }
        queue.remove_page(page(3));
        assert_eq!(last_first(&queue), [4, 2]);
    }

    #[test]
    fn due_pages_are_removed_once() {
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
    fn no_page_that_is_used_later_is_in_a_bucket_before_the_earliest() {
        for now in [0, 1, WIDTH_MIN_NS - 1, 3 * SECOND + 7] {
            for ns in (0..20 * SECOND).step_by(WIDTH_MIN_NS as usize / 3) {
                let earliest = earliest_bucket(Time(now), ns);
                let later = (0..40).map(|step| bucket(Time(now), ns + step * ns / 20));
                assert!(later.min() >= Some(earliest), "{ns} ns from {now}");
            }
        }
        assert!(earliest_bucket(Time(0), u64::MAX) <= bucket(Time(0), u64::MAX));
    }

    #[test]
    fn no_page_inserted_now_is_due_now() {
        for now in [0, 1, WIDTH_MIN_NS - 1, WIDTH_MIN_NS, 3 * SECOND + 7] {
            for ns in [0, 1, SECOND, u64::MAX] {
                assert!(bucket(Time(now), ns) > Time(now), "{ns} ns from {now}");
            }
        }
    }
}
