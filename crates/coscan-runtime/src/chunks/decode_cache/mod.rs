//! Decoded columns of chunks, kept as long as scans are about to use them, and for later scans while memory is free.
//!
//! A slice is decoded once for all workers that wait for it (single flight). It is kept while workers that were handed
//! its chunk have not taken it yet, or scans still need the chunk. Then it may stay [idle](idle). When memory is short,
//! idle slices are dropped first, then those that the fewest scans need.

mod idle;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::ArrayRef;
use coscan_core::ChunkIndex;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use idle::{IdleSlices, Uses};
pub(crate) use idle::{Retired, UnsharedUse};

use crate::sync::destructor::InDestructor;
use crate::tables::registry::FileId;

/// One column of one chunk of a file, whichever tables list it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SliceKey {
    pub(crate) file: FileId,
    pub(crate) chunk: ChunkIndex,
    /// An index into the columns of the file.
    pub(crate) column: usize,
}

/// A decoded column of a chunk, in arrays of a batch each.
pub(crate) type Slice = Arc<[ArrayRef]>;

#[derive(Debug)]
enum Content {
    Absent,
    /// A worker decodes it. The notification comes when that has ended, with success or not.
    Decoding(Arc<Notify>),
    Ready {
        slice: Slice,
        /// The memory of its buffers.
        bytes: u64,
    },
}

/// A decoded slice whose memory is free once it is dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedSlice {
    pub(crate) key: SliceKey,
    /// The memory that is free once it is dropped.
    pub(crate) bytes: u64,
}

#[derive(Debug)]
struct Entry {
    content: Content,
    /// Workers that were handed the chunk and have not taken the slice yet.
    expected: usize,
    /// The use by which it is overdue, if it is idle.
    due: Option<u64>,
}

impl Entry {
    const ABSENT: Self = Self { content: Content::Absent, expected: 0, due: None };

    /// Whether it is decoded and no worker expects it.
    fn is_unexpected(&self) -> bool {
        self.expected == 0 && matches!(self.content, Content::Ready { .. })
    }

    /// Whether it is decoded, no worker expects it, and it is not idle.
    fn may_be_idle(&self) -> bool {
        self.is_unexpected() && self.due.is_none()
    }

    /// The memory of the slice if it is decoded and no worker expects it, otherwise 0.
    fn unexpected_bytes(&self) -> u64 {
        match self.content {
            Content::Ready { bytes, .. } if self.expected == 0 => bytes,
            _ => 0,
        }
    }
}

/// The state of a slice, as a worker finds it.
pub(crate) enum Lookup {
    /// It is decoded.
    Ready(Slice),
    /// Another worker decodes it. Wait for this notification, which is listened for from now on, then look again.
    Decoding(OwnedNotified),
    /// It is not decoded. `others` workers were handed the chunk, too, and will take it.
    Absent { others: usize },
}

/// All decoded slices.
///
/// Dropping an array returns memory, which may take other locks: no array is dropped under this lock.
#[derive(Debug, Default)]
pub(crate) struct DecodeCache {
    state: Mutex<State>,
    /// The memory of idle slices, to look at without the lock.
    idle_bytes: AtomicU64,
    /// The slices that are being collected for later scans, at most.
    collecting: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<SliceKey, Entry>,
    /// The memory of the decoded slices that no worker expects. Queries may hold some of it.
    unexpected_bytes: u64,
    uses: Uses,
    idle: IdleSlices,
}

impl State {
    /// Changes an entry, or removes it if the result says so; `None` if there is no entry. Returns the result of
    /// `change`, and the entry if it was removed. The caller drops it, not under the lock.
    fn change<R>(
        &mut self,
        key: SliceKey,
        change: impl FnOnce(&mut Entry) -> (R, Keep),
    ) -> Option<(R, Option<Entry>)> {
        let entry = self.entries.get_mut(&key)?;
        self.unexpected_bytes -= entry.unexpected_bytes();
        let (result, keep) = change(entry);
        let removed = match keep {
            Keep::Yes => {
                self.unexpected_bytes += entry.unexpected_bytes();
                None
            }
            Keep::No => self.entries.remove(&key),
        };
        Some((result, removed))
    }
}

/// Whether an entry stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Yes,
    No,
}

impl DecodeCache {
    /// Notes that a worker was handed the chunk and will take the slice, or drop the claim.
    pub(crate) fn expect(&self, key: SliceKey) {
        let mut state = self.lock();
        self.leave_idle(&mut state, key);
        state.entries.entry(key).or_insert(Entry::ABSENT);
        state.change(key, |entry| {
            entry.expected += 1;
            ((), Keep::Yes)
        });
    }

    /// Notes that the worker has taken the slice, or will not. Returns true if the slice is decoded and no other worker
    /// expects it.
    pub(crate) fn taken(&self, key: SliceKey) -> bool {
        let taken = self.lock().change(key, |entry| {
            let expected = entry.expected.checked_sub(1);
            entry.expected = expected.expect("a slice is taken as often as it was expected");
            match (&entry.content, entry.expected) {
                (Content::Ready { .. }, 0) => (true, Keep::Yes),
                (Content::Absent, 0) => (false, Keep::No),
                _ => (false, Keep::Yes),
            }
        });
        taken.expect("a slice that is taken was expected").0
    }

    /// Looks up a slice for a worker that expects it.
    pub(crate) fn look_up(&self, key: SliceKey) -> Lookup {
        match self.lock().entries.get(&key) {
            Some(Entry { content: Content::Ready { slice, .. }, .. }) => {
                Lookup::Ready(Arc::clone(slice))
            }
            Some(Entry { content: Content::Decoding(ended), .. }) => {
                Lookup::Decoding(Arc::clone(ended).notified_owned())
            }
            Some(Entry { content: Content::Absent, expected, .. }) => {
                Lookup::Absent { others: expected.saturating_sub(1) }
            }
            None => Lookup::Absent { others: 0 },
        }
    }

    /// Claims the decoding of an absent slice; `None` if another worker has claimed it meanwhile.
    pub(crate) fn begin(self: &Arc<Self>, key: SliceKey) -> Option<Decoding> {
        let begun = self.lock().change(key, |entry| {
            let is_absent = matches!(entry.content, Content::Absent);
            if is_absent {
                entry.content = Content::Decoding(Arc::new(Notify::new()));
            }
            (is_absent, Keep::Yes)
        });
        let (is_begun, _) = begun.expect("a slice that is decoded is expected");
        is_begun.then(|| Decoding { cache: Arc::clone(self), key, has_ended: false })
    }

    /// The memory of the decoded slices that no worker expects, but queries may hold. No more can be free once all of
    /// them are dropped.
    pub(crate) fn unexpected_bytes(&self) -> u64 {
        self.lock().unexpected_bytes
    }

    /// The slices whose memory is free once they are dropped: no worker expects them and no query holds their arrays.
    pub(crate) fn kept(&self) -> Vec<CachedSlice> {
        let state = self.lock();
        let kept = state.entries.iter().filter_map(|(&key, entry)| match &entry.content {
            Content::Ready { slice, bytes } if entry.expected == 0 && is_unshared(slice) => {
                Some(CachedSlice { key, bytes: *bytes })
            }
            _ => None,
        });
        kept.collect()
    }

    /// Removes a decoded slice unless workers expect it. Returns it with its bytes. The caller drops it, not under a lock.
    pub(crate) fn remove_unexpected(&self, key: SliceKey) -> Option<(Slice, u64)> {
        let mut state = self.lock();
        self.leave_idle(&mut state, key);
        let removed = state.change(key, |entry| match entry.is_unexpected() {
            true => ((), Keep::No),
            false => ((), Keep::Yes),
        });
        match removed?.1?.content {
            Content::Ready { slice, bytes } => Some((slice, bytes)),
            Content::Absent | Content::Decoding(_) => None,
        }
    }

    fn end(&self, key: SliceKey, content: Content) {
        let ended = self.lock().change(key, |entry| {
            let before = std::mem::replace(&mut entry.content, content);
            let is_over = entry.expected == 0 && matches!(entry.content, Content::Absent);
            (before, if is_over { Keep::No } else { Keep::Yes })
        });
        let (before, _) = ended.expect("a slice that is being decoded has an entry");
        if let Content::Decoding(waiting) = before {
            waiting.notify_waiters(); // Not under the lock: wakers are others' code.
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether only the cache has the slice and its arrays.
fn is_unshared(slice: &Slice) -> bool {
    Arc::strong_count(slice) == 1 && slice.iter().all(|array| Arc::strong_count(array) == 1)
}

/// The claim to decode a slice. Its holder must not wait for anything, since others wait for it. If it is dropped
/// unfinished, they may try.
#[derive(Debug)]
pub(crate) struct Decoding {
    cache: Arc<DecodeCache>,
    key: SliceKey,
    has_ended: bool,
}

impl Decoding {
    /// Passes the slice, whose buffers have `bytes` bytes, to all workers that wait for it.
    pub(crate) fn finish(mut self, slice: Slice, bytes: u64) {
        self.has_ended = true;
        self.cache.end(self.key, Content::Ready { slice, bytes });
    }
}

impl Drop for Decoding {
    fn drop(&mut self) {
        let _destructor = InDestructor::enter();
        if !self.has_ended {
            self.cache.end(self.key, Content::Absent);
        }
    }
}

#[cfg(test)]
mod tests;
