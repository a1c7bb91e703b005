//! Values by key, each with the time at which it is due.

use std::collections::{BTreeMap, BTreeSet};

use coscan_core::Time;

/// Values by key, with due times.
#[derive(Clone, Debug)]
pub(super) struct Timed<K, V> {
    things: BTreeMap<K, (V, Time)>,
    due: BTreeSet<(Time, K)>,
}

impl<K: Copy + Ord, V> Timed<K, V> {
    pub(super) fn new() -> Self {
        Self { things: BTreeMap::new(), due: BTreeSet::new() }
    }

    pub(super) fn get(&self, key: K) -> Option<&V> {
        self.things.get(&key).map(|(thing, _)| thing)
    }

    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.things.get_mut(&key).map(|(thing, _)| thing)
    }

    pub(super) fn keys(&self) -> impl ExactSizeIterator<Item = K> {
        self.things.keys().copied()
    }

    pub(super) fn insert(&mut self, key: K, thing: V, due: Time) {
        self.remove(key);
        self.things.insert(key, (thing, due));
        self.due.insert((due, key));
    }

    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        let (thing, due) = self.things.remove(&key)?;
        self.due.remove(&(due, key));
        Some(thing)
    }

    pub(super) fn set_due(&mut self, key: K, due: Time) {
        if let Some(thing) = self.remove(key) {
            self.insert(key, thing, due);
        }
    }

    pub(super) fn next_due(&self) -> Option<Time> {
        self.due.first().map(|&(due, _)| due)
    }

    /// The first that is due by now.
    pub(super) fn due_by(&self, now: Time) -> Option<K> {
        self.due.first().filter(|&&(due, _)| due <= now).map(|&(_, key)| key)
    }
}
