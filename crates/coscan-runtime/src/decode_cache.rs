//! Decoded columns of chunks, for as long as scans are about to use them.
//!
//! A slice is decoded once for all who wait for it (single flight). It is kept while scans that were handed its chunk
//! have not taken it yet, or scans still need its chunk; when room is short the least wanted slices go first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::ArrayRef;
use coscan_core::{ChunkIndex, TableId};
use tokio::sync::Notify;

/// One column of one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SliceKey {
    pub(crate) table: TableId,
    pub(crate) chunk: ChunkIndex,
    /// An index into the fields of the table's schema.
    pub(crate) column: usize,
}

/// A decoded column of a chunk, in arrays of a batch each.
pub(crate) type Slice = Arc<[ArrayRef]>;

#[derive(Debug)]
enum Content {
    Absent,
    /// Somebody decodes it; told when that has ended, one way or the other.
    Decoding(Arc<Notify>),
    Ready(Slice),
}

#[derive(Debug)]
struct Entry {
    content: Content,
    /// Workers that were handed the chunk and have not taken the slice yet.
    expected: usize,
}

/// What a worker finds.
pub(crate) enum Lookup {
    /// It is there.
    Ready(Slice),
    /// Another worker decodes it: wait, then look again.
    Decoding(Arc<Notify>),
    /// Nobody has it. `others` workers were handed the chunk, too, and will want it.
    Absent { others: usize },
}

/// All decoded slices.
///
/// Dropping an array gives memory back, which may take other locks: no array is dropped under this lock.
#[derive(Debug, Default)]
pub(crate) struct DecodeCache {
    entries: Mutex<BTreeMap<SliceKey, Entry>>,
}

impl DecodeCache {
    /// A worker was handed the chunk and will take the slice, or drop the claim.
    pub(crate) fn expect(&self, key: SliceKey) {
        self.lock()
            .entry(key)
            .or_insert(Entry { content: Content::Absent, expected: 0 })
            .expected += 1;
    }

    /// The worker has taken the slice, or will not.
    pub(crate) fn taken(&self, key: SliceKey) {
        let mut entries = self.lock();
        let entry = entries.get_mut(&key).expect("a slice that is taken was expected");
        entry.expected =
            entry.expected.checked_sub(1).expect("a slice is taken as often as it was expected");
        if entry.expected == 0 && matches!(entry.content, Content::Absent) {
            entries.remove(&key);
        }
    }

    /// What there is of a slice, for a worker that expects it.
    pub(crate) fn look_up(&self, key: SliceKey) -> Lookup {
        match self.lock().get(&key) {
            Some(Entry { content: Content::Ready(slice), .. }) => Lookup::Ready(Arc::clone(slice)),
            Some(Entry { content: Content::Decoding(ended), .. }) => {
                Lookup::Decoding(Arc::clone(ended))
            }
            Some(Entry { content: Content::Absent, expected }) => {
                Lookup::Absent { others: expected.saturating_sub(1) }
            }
            None => Lookup::Absent { others: 0 },
        }
    }

    /// Claims the decoding of an absent slice; `None` if another worker has it by now.
    pub(crate) fn begin(self: &Arc<Self>, key: SliceKey) -> Option<Decoding> {
        let mut entries = self.lock();
        let entry = entries.get_mut(&key).expect("a slice that is decoded is expected");
        if !matches!(entry.content, Content::Absent) {
            return None;
        }
        entry.content = Content::Decoding(Arc::new(Notify::new()));
        Some(Decoding { cache: Arc::clone(self), key })
    }

    /// All slices that are there, and how many workers expect each.
    pub(crate) fn ready(&self) -> Vec<(SliceKey, usize)> {
        let entries = self.lock();
        let ready = entries.iter().filter(|(_, entry)| matches!(entry.content, Content::Ready(_)));
        ready.map(|(&key, entry)| (key, entry.expected)).collect()
    }

    /// Takes a slice out unless workers expect it; true if it was there.
    pub(crate) fn remove_unexpected(&self, key: SliceKey) -> bool {
        let mut entries = self.lock();
        let removable = entries
            .get(&key)
            .is_some_and(|entry| entry.expected == 0 && matches!(entry.content, Content::Ready(_)));
        let removed = if removable { entries.remove(&key) } else { None };
        drop(entries);
        removed.is_some()
    }

    fn end(&self, key: SliceKey, content: Content) {
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(&key) else { return };
        if let Content::Decoding(ended) = std::mem::replace(&mut entry.content, content) {
            ended.notify_waiters();
        }
        if entry.expected == 0 && matches!(entry.content, Content::Absent) {
            entries.remove(&key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SliceKey, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right and duty to decode a slice. If it is dropped, others may try.
#[derive(Debug)]
pub(crate) struct Decoding {
    cache: Arc<DecodeCache>,
    key: SliceKey,
}

impl Decoding {
    /// Hands the slice to all who wait for it.
    pub(crate) fn finish(self, slice: Slice) {
        self.cache.end(self.key, Content::Ready(slice));
    }
}

impl Drop for Decoding {
    fn drop(&mut self) {
        let unfinished = matches!(
            self.cache.lock().get(&self.key),
            Some(Entry { content: Content::Decoding(_), .. })
        );
        if unfinished {
            self.cache.end(self.key, Content::Absent);
        }
    }
}
