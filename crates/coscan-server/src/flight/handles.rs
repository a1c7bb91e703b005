//! Values that the server keeps for clients under random handles: sessions under tokens, statements.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use tonic::Status;

const HANDLE_BYTES: usize = 32;

/// Limits on the kept values. Beyond them, the least recently used value is dropped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// How long an unused value is kept.
    pub(super) lifetime: Duration,
    /// The most values of one user.
    pub(super) of_user: usize,
    /// The most values of all users.
    pub(super) of_all: usize,
    /// The most bytes that values of one user may take.
    pub(super) bytes_of_user: usize,
}

/// Values under handles.
#[derive(Debug)]
pub(super) struct Handles<T> {
    bounds: Bounds,
    entries: Mutex<HashMap<Key, Entry<T>>>,
}

/// The hash of a handle: neither the server's memory nor the time of a look-up reveals the handle.
type Key = [u8; 32];

#[derive(Debug)]
struct Entry<T> {
    user: String,
    bytes: usize,
    used: Instant,
    value: T,
}

impl<T: Clone> Handles<T> {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, entries: Mutex::default() }
    }

    /// Keeps a value of a user, of about this many bytes. Returns its handle.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub(super) fn add(&self, user: &str, bytes: usize, value: T) -> Result<Bytes, Status> {
        let mut handle = [0; HANDLE_BYTES];
        let filled = SystemRandom::new().fill(&mut handle);
        filled.map_err(|_| Status::internal("the system gives no random bytes"))?;
        let entry = Entry { user: user.to_owned(), bytes, used: Instant::now(), value };
        let mut entries = self.lock();
        entries.retain(|_, entry| entry.used.elapsed() < self.bounds.lifetime);
        self.make_room(&mut entries, &entry);
        entries.insert(key(&handle), entry);
        Ok(Bytes::copy_from_slice(&handle))
    }

    fn make_room(&self, entries: &mut HashMap<Key, Entry<T>>, new: &Entry<T>) {
        let bounds = self.bounds;
        loop {
            let own = entries.values().filter(|entry| entry.user == new.user);
            let (count, bytes) =
                own.fold((0, new.bytes), |(count, bytes), entry| (count + 1, bytes + entry.bytes));
            let too_many_own =
                count > 0 && (count >= bounds.of_user || bytes > bounds.bytes_of_user);
            if !too_many_own && entries.len() < bounds.of_all {
                return;
            }
            let candidates =
                entries.iter().filter(|(_, entry)| !too_many_own || entry.user == new.user);
            let oldest = candidates.min_by_key(|(_, entry)| entry.used).map(|(key, _)| *key);
            let Some(oldest) = oldest else { return };
            entries.remove(&oldest);
        }
    }

    /// Changes how many bytes the value under a handle is of.
    pub(super) fn charge(&self, handle: &[u8], bytes: usize) {
        let mut entries = self.lock();
        if let Some(mut entry) = entries.remove(&key(handle)) {
            entry.bytes = bytes;
            self.make_room(&mut entries, &entry);
            entries.insert(key(handle), entry);
        }
    }

    /// The value under a handle.
    pub(super) fn get(&self, handle: &[u8]) -> Option<T> {
        self.find(handle, |_| true)
    }

    /// The value under a handle, if it is this user's.
    pub(super) fn get_of(&self, user: &str, handle: &[u8]) -> Option<T> {
        self.find(handle, |entry| entry.user == user)
    }

    fn find(&self, handle: &[u8], is_right: impl Fn(&Entry<T>) -> bool) -> Option<T> {
        let mut entries = self.lock();
        let entry = entries.get_mut(&key(handle)).filter(|entry| is_right(entry))?;
        if entry.used.elapsed() >= self.bounds.lifetime {
            return None;
        }
        entry.used = Instant::now();
        Some(entry.value.clone())
    }

    /// Forgets the value under a handle.
    pub(super) fn remove(&self, handle: &[u8]) {
        self.lock().remove(&key(handle));
    }

    /// Forgets the value under a handle, if it is this user's.
    pub(super) fn remove_of(&self, user: &str, handle: &[u8]) {
        let mut entries = self.lock();
        if entries.get(&key(handle)).is_some_and(|entry| entry.user == user) {
            entries.remove(&key(handle));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Entry<T>>> {
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
        // One that is too large alone is kept alone.
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
        assert_eq!(handles.lock().len(), BOUNDS.of_all);
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
}
