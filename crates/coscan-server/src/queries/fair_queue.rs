//! A queue that serves users in proportion to weights.
//!
//! It uses self-clocked fair queueing (Golestani, INFOCOM 1994). Being served costs a user `1 / weight` of virtual
//! time, which is at the tag of the entry served last. Each user's oldest entry has a tag, which is the virtual time
//! when it became the oldest, plus its cost. The lowest tag is served next. Virtual time grows with each served entry,
//! so that new entries eventually come after every tag, and nobody starves.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The cost of being served for a user of weight 1. Higher weights count as this.
const COST: u64 = 1 << 20;

/// Entries of users with weights. All operations take logarithmic time.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    users: HashMap<Arc<str>, Lane<T>>,
    /// The users, by the tags of their oldest entries. Among equal tags the older entry comes first.
    order: BTreeMap<Tag, Arc<str>>,
    virtual_time: u64,
    arrivals: u64,
    len: usize,
}

/// A place in the order of service: virtual time, and the number of the arrival.
type Tag = (u64, u64);

/// The entries of one user, of which there is at least one, by arrival.
#[derive(Debug)]
struct Lane<T> {
    /// The virtual time from which the oldest entry counts.
    since: u64,
    entries: BTreeMap<u64, (u32, T)>,
}

impl<T> Lane<T> {
    fn tag(&self) -> Option<Tag> {
        let (arrival, (weight, _)) = self.entries.first_key_value()?;
        let cost = COST / u64::from(*weight).clamp(1, COST);
        Some((self.since + cost, *arrival))
    }
}

/// An entry of a queue.
#[derive(Debug)]
pub(super) struct QueueEntry {
    user: Arc<str>,
    arrival: u64,
}

impl<T> FairQueue<T> {
    pub(super) fn new() -> Self {
        let (users, order) = (HashMap::new(), BTreeMap::new());
        Self { users, order, virtual_time: 0, arrivals: 0, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, user: &str, weight: u32, value: T) -> QueueEntry {
        self.arrivals += 1;
        let entry = QueueEntry { user: user.into(), arrival: self.arrivals };
        let mut lane = self.take_lane(user);
        lane.entries.insert(self.arrivals, (weight, value));
        self.put_lane(&entry.user, lane);
        self.len += 1;
        entry
    }

    /// Removes the next entry to be served, among those of users who may be served.
    pub(super) fn pop(&mut self, may_be_served: impl Fn(&str) -> bool) -> Option<T> {
        let mut order = self.order.iter();
        let ((tag, arrival), user) = order.find(|(_, user)| may_be_served(user))?;
        let (tag, entry) = (*tag, QueueEntry { user: Arc::clone(user), arrival: *arrival });
        // The tag is lower if an entry of a smaller weight was removed before it, or its user could
        // not be served.
        let now = self.virtual_time.max(tag);
        self.virtual_time = now;
        self.take_out(&entry, |lane| lane.since = now)
    }

    /// Removes the newest entry of the user with most entries, if that user has at least two more than this one.
    pub(super) fn make_place(&mut self, user: &str) -> Option<T> {
        let entries = |lane: &Lane<T>| lane.entries.len();
        let own = self.users.get(user).map_or(0, entries);
        // Of users with equal numbers, the one whose newest entry is the newest is chosen, so that
        // the result does not depend on the map.
        let newest = |lane: &Lane<T>| lane.entries.last_key_value().map(|(arrival, _)| *arrival);
        let most = self.users.iter().max_by_key(|(_, lane)| (entries(lane), newest(lane)));
        let (most, lane) = most.filter(|(_, lane)| entries(lane) > own + 1)?;
        let entry = QueueEntry { user: Arc::clone(most), arrival: newest(lane)? };
        self.remove(&entry)
    }

    /// Removes an entry, if it is still in the queue.
    pub(super) fn remove(&mut self, entry: &QueueEntry) -> Option<T> {
        self.take_out(entry, |_| {})
    }

    fn take_out(&mut self, entry: &QueueEntry, change: impl FnOnce(&mut Lane<T>)) -> Option<T> {
        let mut lane = self.take_lane(&entry.user);
        let removed = lane.entries.remove(&entry.arrival);
        change(&mut lane);
        self.put_lane(&entry.user, lane);
        let (_, value) = removed?;
        self.len -= 1;
        Some(value)
    }

    fn take_lane(&mut self, user: &str) -> Lane<T> {
        let lane = self.users.remove(user);
        if let Some(tag) = lane.as_ref().and_then(Lane::tag) {
            self.order.remove(&tag);
        }
        lane.unwrap_or(Lane { since: self.virtual_time, entries: BTreeMap::new() })
    }

    /// Stores the entries of a user. A user without entries is removed, since it would start at the virtual time again.
    fn put_lane(&mut self, user: &Arc<str>, lane: Lane<T>) {
        if let Some(tag) = lane.tag() {
            self.order.insert(tag, Arc::clone(user));
            self.users.insert(Arc::clone(user), lane);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The number of times that each user is served.
    fn served(queue: &mut FairQueue<&'static str>, times: usize) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for _ in 0..times {
            *counts.entry(queue.pop(|_| true).unwrap()).or_default() += 1;
        }
        counts
    }

    #[test]
    fn users_are_served_in_proportion_to_their_weights_whoever_came_first() {
        let mut queue = FairQueue::new();
        for (user, weight) in [("ann", 1), ("bob", 3), ("eve", 1)] {
            for _ in 0..100 {
                queue.push(user, weight, user);
            }
        }
        assert_eq!(served(&mut queue, 50), [("ann", 10), ("bob", 30), ("eve", 10)].into());
        assert_eq!(queue.len(), 250);
        let rest = served(&mut queue, 250);
        assert_eq!(rest, [("ann", 90), ("bob", 70), ("eve", 90)].into());
        assert_eq!((queue.pop(|_| true), queue.len(), queue.users.len()), (None, 0, 0));
    }

    #[test]
    fn the_queries_of_a_user_are_served_in_their_order() {
        let mut queue = FairQueue::new();
        for (number, weight) in [(0, 1), (1, 7), (2, 3)] {
            queue.push("ann", weight, number);
        }
        let served: Vec<_> = std::iter::from_fn(|| queue.pop(|_| true)).collect();
        assert_eq!(served, [0, 1, 2]);
    }

    #[test]
    fn nobody_starves() {
        let mut queue = FairQueue::new();
        // A user with the largest weight returns at once each time, while new users arrive without
        // end.
        queue.push("heavy", 8, "heavy");
        queue.push("light", 1, "light");
        let before = (0..100).take_while(|_| {
            let served = queue.pop(|_| true).unwrap();
            queue.push(served, if served == "heavy" { 8 } else { 1 }, served);
            served == "heavy"
        });
        assert_eq!(before.count(), 7);
        for newcomer in 0..30 {
            queue.push(&format!("newcomer {newcomer}"), 10, "newcomer");
            if queue.pop(|_| true).unwrap() == "light" {
                return;
            }
        }
        panic!("{queue:?}");
    }

    #[test]
    fn who_may_not_be_served_keeps_the_place() {
        let mut queue = FairQueue::new();
        for user in ["ann", "ann", "bob"] {
            queue.push(user, 1, user);
        }
        assert_eq!(queue.pop(|user| user != "ann"), Some("bob"));
        assert_eq!(queue.pop(|user| user != "ann"), None);
        assert_eq!((queue.pop(|_| true), queue.len()), (Some("ann"), 1));
    }

    #[test]
    fn who_leaves_pays_nothing_and_gains_nothing() {
        let mut queue = FairQueue::new();
        let tickets: Vec<_> = (0..5).map(|_| queue.push("ann", 1, "ann")).collect();
        for _ in 0..5 {
            queue.push("bob", 1, "bob");
        }
        for entry in &tickets[..4] {
            assert_eq!(queue.remove(entry), Some("ann"));
            assert_eq!(queue.remove(entry), None);
        }
        assert_eq!(queue.len(), 6);
        // The remaining entry arrived before Bob's second. One that is added again comes after it.
        assert_eq!([queue.pop(|_| true), queue.pop(|_| true)], [Some("ann"), Some("bob")]);
        queue.push("ann", 1, "ann");
        assert_eq!([queue.pop(|_| true), queue.pop(|_| true)], [Some("bob"), Some("ann")]);
        assert_eq!(queue.remove(&tickets[4]), None);
        assert_eq!((queue.len(), queue.order.len()), (3, 1));
    }
}
