//! Entries in the orders in which they are dropped. Each operation takes logarithmic time for each added or removed
//! entry. Removed entries are returned, so that their values are dropped outside of locks.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Bounds;

/// The hash of a handle, so that neither the server's memory nor the time of a look-up reveals the handle.
pub(super) type Key = [u8; 32];

/// The order in which values are dropped. Spent ones are first, then those whose last use (uses are numbered) was
/// earliest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) is_unused: bool,
    pub(super) last_use: u64,
}

type Order = BTreeMap<Rank, Key>;

#[derive(Debug)]
pub(super) struct Entry<T> {
    pub(super) user: Arc<str>,
    pub(super) bytes: usize,
    pub(super) used: Instant,
    pub(super) rank: Rank,
    pub(super) value: T,
}

/// The values of one user.
#[derive(Debug, Default)]
struct UserEntries {
    bytes: usize,
    order: Order,
}

/// Entries in the orders in which they are dropped, one order for all and one for each user.
#[derive(Debug)]
pub(super) struct Entries<T> {
    entries: HashMap<Key, Entry<T>>,
    order: Order,
    users: HashMap<Arc<str>, UserEntries>,
    uses: u64,
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self { entries: HashMap::new(), order: Order::new(), users: HashMap::new(), uses: 0 }
    }
}

impl<T> Entries<T> {
    /// The number of the next use.
    pub(super) fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    /// The entry under a key.
    pub(super) fn get(&self, key: &Key) -> Option<&Entry<T>> {
        self.entries.get(key)
    }

    pub(super) fn insert(&mut self, key: Key, entry: Entry<T>) {
        let own = self.users.entry(Arc::clone(&entry.user)).or_default();
        own.bytes = own.bytes.saturating_add(entry.bytes);
        own.order.insert(entry.rank, key);
        self.order.insert(entry.rank, key);
        self.entries.insert(key, entry);
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Entry<T>> {
        let entry = self.entries.remove(key)?;
        self.order.remove(&entry.rank);
        if let Some(own) = self.users.get_mut(&entry.user) {
            own.order.remove(&entry.rank);
            own.bytes = own.bytes.saturating_sub(entry.bytes);
            if own.order.is_empty() {
                self.users.remove(&entry.user);
            }
        }
        Some(entry)
    }

    /// Removes values that were not used for this time. Each use is later than those before, so these are at the start
    /// of the spent values and at the start of the others.
    pub(super) fn remove_expired(&mut self, lifetime: Duration) -> Vec<Entry<T>> {
        let mut removed = Vec::new();
        for is_unused in [false, true] {
            let first = Rank { is_unused, last_use: 0 };
            while let Some((rank, key)) = self.order.range(first..).next()
                && rank.is_unused == is_unused
                && self.entries.get(key).is_some_and(|entry| entry.used.elapsed() >= lifetime)
            {
                let key = *key;
                removed.extend(self.remove(&key));
            }
        }
        removed
    }

    /// Removes values until there is room for a new one.
    pub(super) fn make_room(&mut self, bounds: Bounds, new: &Entry<T>) -> Vec<Entry<T>> {
        let mut removed = Vec::new();
        loop {
            let own = self.users.get(&new.user).filter(|own| {
                let bytes = own.bytes.saturating_add(new.bytes);
                own.order.len() >= bounds.of_user || bytes > bounds.bytes_of_user
            });
            let order = match own {
                Some(own) => &own.order,
                None if self.entries.len() >= bounds.of_all => &self.order,
                None => return removed,
            };
            let Some(key) = order.values().next().copied() else { return removed };
            removed.extend(self.remove(&key));
        }
    }

    /// The number of entries, and the number of users who have some.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        let own: usize = self.users.values().map(|own| own.order.len()).sum();
        assert_eq!((own, self.order.len()), (self.entries.len(), self.entries.len()));
        (self.entries.len(), self.users.len())
    }

    #[cfg(test)]
    pub(super) fn are_all_unspent(&self) -> bool {
        self.order.keys().all(|rank| rank.is_unused)
    }
}
