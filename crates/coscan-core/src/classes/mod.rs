//! Classes of chunks: chunks that the same scans need, and of which the same column groups are in the pool, are alike to
//! every policy [CS04 §4.1].
//!
//! A decision looks at a few classes instead of millions of chunks. A chunk changes its class when a scan is handed it or
//! needs it, or when the residency of its pages changes.

mod class;

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{ChunkIndex, ClassIndex, GroupIndex, Index, ScanPosition};
use crate::set::IndexSet;

pub use class::{Class, ClassKey};

/// No chunk: the end of a list.
const NONE: ChunkIndex = ChunkIndex(u32::MAX);

/// No class: there is no such chunk.
const NO_CLASS: ClassIndex = ClassIndex(u32::MAX);

/// The class of a chunk and its neighbours in the list of that class.
#[derive(Clone, Copy, Debug)]
struct Member {
    class: ClassIndex,
    before: ChunkIndex,
    after: ChunkIndex,
}

/// The classes of a table.
#[derive(Clone, Debug)]
pub struct Classes {
    classes: Vec<Class>,
    free: Vec<ClassIndex>,
    by_key: BTreeMap<ClassKey, ClassIndex>,
    members: Vec<Member>,
    /// The column groups of each running scan.
    groups: Vec<IndexSet<GroupIndex>>,
    /// The scans that read each column group: the inverse of `groups`.
    readers: Vec<IndexSet<ScanPosition>>,
    /// Classes with cold column groups that some scan needs, by the number of scans that need the class.
    to_read: BTreeSet<(usize, ClassIndex)>,
    /// Classes with cached column groups that some scan needs, by the number of scans that need the class.
    in_pool: BTreeSet<(usize, ClassIndex)>,
}

impl Classes {
    /// Bytes of memory for a chunk.
    pub(crate) const CHUNK_MEMORY_BYTES: usize = size_of::<Member>();

    /// The classes of a table with `group_count` column groups and no chunks.
    pub(crate) fn new(group_count: usize) -> Self {
        Self {
            classes: Vec::new(),
            free: Vec::new(),
            by_key: BTreeMap::new(),
            members: Vec::new(),
            groups: Vec::new(),
            readers: vec![IndexSet::new(); group_count],
            to_read: BTreeSet::new(),
            in_pool: BTreeSet::new(),
        }
    }

    /// Adds a chunk that no scan needs yet.
    pub(crate) fn add(&mut self, chunk: ChunkIndex, key: &ClassKey) {
        let class = self.find_or_add(key);
        if chunk.as_usize() >= self.members.len() {
            let absent = Member { class: NO_CLASS, before: NONE, after: NONE };
            self.members.resize(chunk.as_usize() + 1, absent);
        }
        self.link(chunk, class);
    }

    /// Removes a chunk.
    pub(crate) fn remove(&mut self, chunk: ChunkIndex) {
        let class = self.members[chunk.as_usize()].class;
        self.unlink(chunk, class);
        self.members[chunk.as_usize()].class = NO_CLASS;
    }

    /// Forgets the indexes from `end` on, at which there are no chunks any more.
    pub(crate) fn truncate(&mut self, end: usize) {
        self.members.truncate(end);
    }

    /// The class with this index.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn get(&self, index: ClassIndex) -> &Class {
        &self.classes[index.as_usize()]
    }

    /// The class of a chunk.
    #[must_use]
    pub fn class_of(&self, chunk: ChunkIndex) -> &Class {
        self.get(self.members[chunk.as_usize()].class)
    }

    /// The number of classes.
    #[must_use]
    pub fn count(&self) -> usize {
        self.by_key.len()
    }

    /// The chunks of a class, the one that joined first in front.
    pub fn chunks<'a>(&'a self, class: &'a Class) -> impl Iterator<Item = ChunkIndex> + 'a {
        let after = |chunk: &ChunkIndex| Some(self.members[chunk.as_usize()].after);
        std::iter::successors(Some(class.first), after).take(class.len)
    }

    /// The column groups that any of these scans reads: scan by scan, or group by group if those are fewer.
    #[must_use]
    pub fn groups_of(&self, scans: &IndexSet<ScanPosition>) -> IndexSet<GroupIndex> {
        let mut groups = IndexSet::new();
        if scans.len() < self.readers.len() {
            scans.iter().for_each(|slot| groups.union_with(&self.groups[slot.as_usize()]));
        } else {
            let read = self.readers.iter().map(|readers| readers.intersects(scans));
            (0..).zip(read).filter(|(_, read)| *read).for_each(|(group, _)| {
                groups.insert(GroupIndex(group));
            });
        }
        groups
    }

    /// The scans that read each column group.
    pub(crate) fn readers(&self) -> &[IndexSet<ScanPosition>] {
        &self.readers
    }

    /// Classes with cold column groups that some scan needs, most needed first.
    pub fn to_read(&self) -> impl Iterator<Item = &Class> + '_ {
        self.to_read.iter().rev().map(|&(_, index)| self.get(index))
    }

    /// Classes with cached column groups that some scan needs, least needed first.
    pub fn in_pool(&self) -> impl Iterator<Item = &Class> + '_ {
        self.in_pool.iter().map(|&(_, index)| self.get(index))
    }

    /// The chunk of a class to read after `previous`: the one behind it, so that reads continue where the device stands,
    /// or else the one that joined first.
    #[must_use]
    pub fn next_chunk(&self, class: &Class, previous: Option<ChunkIndex>) -> ChunkIndex {
        let behind = previous.map(|chunk| ChunkIndex(chunk.0 + 1));
        let is_member = |chunk: &ChunkIndex| {
            let member = self.members.get(chunk.as_usize());
            member.is_some_and(|member| member.class == class.index)
        };
        behind.filter(is_member).unwrap_or(class.first)
    }

    /// Bytes of memory for the chunks; the few classes are not counted.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.members.capacity() * size_of::<Member>()
    }

    /// Adds the scan at a slot, which reads these column groups.
    pub(crate) fn add_scan(&mut self, slot: ScanPosition, groups: &IndexSet<GroupIndex>) {
        let position = slot.as_usize();
        if position >= self.groups.len() {
            self.groups.resize(position + 1, IndexSet::new());
        }
        self.groups[position] = groups.clone();
        for group in groups.iter() {
            self.readers[group.as_usize()].insert(slot);
        }
    }

    /// Removes the scan at a slot, which needs no chunk any more.
    pub(crate) fn remove_scan(&mut self, slot: ScanPosition) {
        for group in std::mem::take(&mut self.groups[slot.as_usize()]).iter() {
            self.readers[group.as_usize()].remove(slot);
        }
    }

    /// Changes the properties of a chunk, and with them its class.
    pub(crate) fn change(&mut self, chunk: ChunkIndex, change: impl Fn(&mut ClassKey)) {
        self.change_all(std::iter::once(chunk), change);
    }

    /// Changes many chunks in the same way. Chunks of one class stay together.
    pub(crate) fn change_all(
        &mut self,
        chunks: impl Iterator<Item = ChunkIndex>,
        change: impl Fn(&mut ClassKey),
    ) {
        let mut known: Option<(ClassIndex, ClassIndex)> = None;
        for chunk in chunks {
            let from = self.members[chunk.as_usize()].class;
            let to = match known {
                Some((known_from, to)) if known_from == from => to,
                _ => {
                    let mut key = self.get(from).key.clone();
                    change(&mut key);
                    self.find_or_add(&key)
                }
            };
            if to != from {
                let emptied = self.unlink(chunk, from);
                self.link(chunk, to);
                known = (!emptied).then_some((from, to)); // A free index may be given to another class.
            }
        }
    }

    fn find_or_add(&mut self, key: &ClassKey) -> ClassIndex {
        if let Some(&index) = self.by_key.get(key) {
            return index;
        }
        let needed_groups = self.groups_of(&key.scans);
        let index = self.free.pop().unwrap_or(ClassIndex::from_usize(self.classes.len()));
        let class =
            Class { index, key: key.clone(), needed_groups, len: 0, first: NONE, last: NONE };
        if class.needed_groups.intersects(&key.cold) {
            self.to_read.insert(class.rank());
        }
        if class.needed_groups.intersects(&key.cached) {
            self.in_pool.insert(class.rank());
        }
        if index.as_usize() == self.classes.len() {
            self.classes.push(class);
        } else {
            self.classes[index.as_usize()] = class;
        }
        self.by_key.insert(key.clone(), index);
        index
    }

    /// Appends a chunk to a class.
    fn link(&mut self, chunk: ChunkIndex, index: ClassIndex) {
        let class = &mut self.classes[index.as_usize()];
        self.members[chunk.as_usize()] = Member { class: index, before: class.last, after: NONE };
        if class.len == 0 {
            class.first = chunk;
        } else {
            self.members[class.last.as_usize()].after = chunk;
        }
        class.last = chunk;
        class.len += 1;
    }

    /// Removes a chunk from its class. True if it was the last one and the class is removed, too.
    fn unlink(&mut self, chunk: ChunkIndex, index: ClassIndex) -> bool {
        let Member { before, after, .. } = self.members[chunk.as_usize()];
        let class = &mut self.classes[index.as_usize()];
        class.len -= 1;
        match before {
            NONE => class.first = after,
            _ => self.members[before.as_usize()].after = after,
        }
        match after {
            NONE => class.last = before,
            _ => self.members[after.as_usize()].before = before,
        }
        let emptied = class.len == 0;
        if emptied {
            let rank = class.rank();
            self.to_read.remove(&rank);
            self.in_pool.remove(&rank);
            self.by_key.remove(&class.key);
            self.free.push(index);
        }
        emptied
    }
}
