//! Values that the server keeps for clients under random handles: sessions under tokens, and statements. Their number
//! and size are bounded (`entries`).

mod entries;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use tonic::Status;

use entries::{Entries, Entry, Key, Rank};

const HANDLE_BYTES: usize = 32;

/// Limits on the kept values. Beyond them, values that their clients have [spent](Handles::spend_of) are dropped before
/// others, and among those the least recently used one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The time for which an unused value is kept.
    pub(super) lifetime: Duration,
    /// The maximum number of values of one user.
    pub(super) of_user: usize,
    /// The maximum number of values of all users.
    pub(super) of_all: usize,
    /// The maximum bytes of the values of one user.
    pub(super) bytes_of_user: usize,
}

/// Values under handles.
#[derive(Debug)]
pub(super) struct Handles<T> {
    bounds: Bounds,
    entries: Mutex<Entries<T>>,
}

impl<T: Clone> Handles<T> {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, entries: Mutex::default() }
    }

    /// Stores a value of a user, with its approximate bytes. Returns its handle.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    pub(super) fn add(&self, user: &str, bytes: usize, value: T) -> Result<Bytes, Status> {
        let mut handle = [0; HANDLE_BYTES];
        let filled = SystemRandom::new().fill(&mut handle);
        filled.map_err(|_| Status::internal("the system gives no random bytes"))?;
        let mut entries = self.lock();
        let rank = Rank { is_unused: true, last_use: entries.next_use() };
        let entry = Entry { user: user.into(), bytes, used: Instant::now(), rank, value };
        let expired = entries.remove_expired(self.bounds.lifetime);
        let removed = entries.make_room(self.bounds, &entry);
        entries.insert(key(&handle), entry);
        // Values may be large, so they are not freed under the lock.
        drop(entries);
        drop((expired, removed));
        Ok(Bytes::copy_from_slice(&handle))
    }

    /// Changes the number of bytes of the value under a handle.
    pub(super) fn charge(&self, handle: &[u8], bytes: usize) {
        let mut entries = self.lock();
        if let Some(mut entry) = entries.remove(&key(handle)) {
            entry.bytes = bytes;
            let removed = entries.make_room(self.bounds, &entry);
            entries.insert(key(handle), entry);
            drop(entries);
            drop(removed);
        }
    }

    /// The value under a handle.
    pub(super) fn get(&self, handle: &[u8]) -> Option<T> {
        self.find(handle, |_| true, false)
    }

    /// The value under a handle, if it belongs to this user.
    pub(super) fn get_of(&self, user: &str, handle: &[u8]) -> Option<T> {
        self.find(handle, |entry| *entry.user == *user, false)
    }

    /// Does the same as [`get_of`](Self::get_of) for a client that is not expected to use the value again. The value is
    /// dropped before values that their clients still have to use.
    pub(super) fn spend_of(&self, user: &str, handle: &[u8]) -> Option<T> {
        self.find(handle, |entry| *entry.user == *user, true)
    }

    fn find(&self, handle: &[u8], is_right: impl Fn(&Entry<T>) -> bool, spend: bool) -> Option<T> {
        let (key, lifetime) = (key(handle), self.bounds.lifetime);
        let mut entries = self.lock();
        let entry = entries.get(&key)?;
        if !is_right(entry) || entry.used.elapsed() >= lifetime {
            return None;
        }
        let mut entry = entries.remove(&key)?;
        entry.used = Instant::now();
        entry.rank.is_unused &= !spend;
        entry.rank.last_use = entries.next_use();
        let value = entry.value.clone();
        entries.insert(key, entry);
        Some(value)
    }

    /// Removes the value under a handle.
    pub(super) fn remove(&self, handle: &[u8]) {
        let removed = self.lock().remove(&key(handle));
        drop(removed);
    }

    /// Removes the value under a handle, if it belongs to this user.
    pub(super) fn remove_of(&self, user: &str, handle: &[u8]) {
        let mut entries = self.lock();
        if entries.get(&key(handle)).is_some_and(|entry| *entry.user == *user) {
            let removed = entries.remove(&key(handle));
            drop(entries);
            drop(removed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries<T>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(handle: &[u8]) -> Key {
    digest(&SHA256, handle).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const BOUNDS: Bounds =
        Bounds { lifetime: Duration::from_secs(3600), of_user: 3, of_all: 5, bytes_of_user: 100 };

    #[test]
    fn what_was_used_least_recently_is_forgotten() {
        let handles = Handles::new(BOUNDS);
        let bob = handles.add("bob", 1, 0).unwrap();
        let mut ann: Vec<_> = (1..=3).map(|value| handles.add("ann", 1, value).unwrap()).collect();
        assert_eq!(handles.get(&ann[0]), Some(1));
        ann.push(handles.add("ann", 1, 4).unwrap());
        let kept: Vec<_> = ann.iter().map(|handle| handles.get(handle)).collect();
        assert_eq!(kept, [Some(1), None, Some(3), Some(4)]);
        handles.add("ann", 99, 5).unwrap();
        let kept: Vec<_> = ann.iter().map(|handle| handles.get(handle)).collect();
        assert_eq!(kept, [None, None, None, Some(4)]);
        // A value that alone exceeds the limit is kept alone.
        let large = handles.add("ann", 1000, 6).unwrap();
        assert_eq!((handles.get(&ann[3]), handles.get(&large)), (None, Some(6)));
        assert_eq!(handles.get(&bob), Some(0));
        let small = handles.add("ann", 1, 8).unwrap();
        assert_eq!((handles.get(&large), handles.get(&small)), (None, Some(8)));
        let large = handles.add("ann", 1, 6).unwrap();
        handles.charge(&large, 100);
        assert_eq!((handles.get(&small), handles.get(&large)), (None, Some(6)));
        assert_eq!(handles.get(&bob), Some(0));
        for user in ["c", "d", "e", "f"] {
            handles.add(user, 1, 7).unwrap();
        }
        assert_eq!((handles.get(&large), handles.get(&bob)), (None, Some(0)));
        assert_eq!(handles.lock().counts(), (BOUNDS.of_all, 5));
    }

    #[test]
    fn values_expire_and_are_their_users_only() {
        let handles = Handles::new(BOUNDS);
        let handle = handles.add("ann", 1, 1).unwrap();
        assert_eq!(handles.get_of("bob", &handle), None);
        handles.remove_of("bob", &handle);
        assert_eq!(handles.get_of("ann", &handle), Some(1));
        handles.remove_of("ann", &handle);
        assert_eq!(handles.get(&handle), None);
        let handles = Handles::new(Bounds { lifetime: Duration::ZERO, ..BOUNDS });
        let handle = handles.add("ann", 1, 1).unwrap();
        assert_eq!(handles.get(&handle), None);
    }

    #[test]
    fn what_was_spent_is_forgotten_first_and_what_nobody_has_fetched_last() {
        let handles = Handles::new(BOUNDS);
        let waiting = handles.add("ann", 1, 0).unwrap();
        for value in 1..=20 {
            let fetched = handles.add("ann", 1, value).unwrap();
            assert_eq!(handles.spend_of("bob", &fetched), None);
            assert_eq!(handles.spend_of("ann", &fetched), Some(value));
            assert_eq!(handles.spend_of("ann", &fetched), Some(value), "a client may try again");
        }
        assert!(handles.lock().get(&key(&waiting)).is_some(), "nobody has fetched it");
        let first = handles.add("ann", 1, 21).unwrap();
        handles.add("ann", 1, 22).unwrap();
        assert_eq!(handles.lock().counts(), (3, 1));
        assert!(handles.lock().are_all_unspent());
        // All values wait to be used, so the oldest is dropped, also among the values of all users.
        handles.add("ann", 1, 23).unwrap();
        assert_eq!(handles.get(&waiting), None);
        for user in ["b", "c"] {
            let fetched = handles.add(user, 1, 24).unwrap();
            handles.spend_of(user, &fetched).unwrap();
        }
        handles.add("d", 1, 25).unwrap();
        handles.add("e", 1, 26).unwrap();
        assert!(handles.lock().are_all_unspent());
        handles.add("f", 1, 27).unwrap();
        assert_eq!(handles.get(&first), None);
        assert_eq!(handles.lock().counts(), (5, 4), "ann has two, d, e, and f one each");
    }

    #[test]
    fn what_has_expired_is_forgotten_whether_spent_or_not() {
        let mut handles = Handles::new(BOUNDS);
        let (spent, waiting) =
            (handles.add("ann", 1, 0).unwrap(), handles.add("ann", 1, 1).unwrap());
        handles.spend_of("ann", &spent).unwrap();
        handles.bounds.lifetime = Duration::ZERO;
        assert_eq!((handles.spend_of("ann", &spent), handles.get(&waiting)), (None, None));
        let fresh = handles.add("bob", 1, 2).unwrap();
        assert!(handles.lock().get(&key(&fresh)).is_some());
        assert_eq!(handles.lock().counts(), (1, 1));
    }
}
