//! A version of the changes of a file.

mod positions;
mod range;
mod range_version;
mod write;

pub use range::{DeletedMask, RangeChanges};
pub use range_version::RangeVersion;

use std::fmt;

use crate::block::{Block, BlockChanges, BlockRows, ChangeCounts};
use crate::error::Error;
use crate::ids::{InsertId, Place, RowId, Sid};
use crate::insert::{Insert, Located};
use crate::tree::Tree;

/// One version of the changes of one file: which rows are deleted, which cells have another value, which rows are
/// inserted and where.
///
/// A clone is another version at the cost of four counters. Changing it copies what lies on the way to the change and
/// shares all else; the version that it was cloned from stays as it is. A commit is a clone with the changes of a
/// transaction.
///
/// `V` is the value of a cell. `K` orders the inserts of one place in a table with an order; `()` orders them by id.
#[derive(Clone)]
pub struct FileChanges<V: Clone, K: Ord + Clone = ()> {
    row_count: u64,
    /// Blocks with changes.
    blocks: Tree<Block<V, K>>,
    /// Inserts after the last stable row.
    tail: Tree<Insert<V, K>>,
    /// All inserts, those of the tail, too.
    located: Tree<Located<K>>,
}

impl<V: Clone, K: Ord + Clone> FileChanges<V, K> {
    /// No changes of a file of `row_count` rows, which are named 0 to `row_count - 1`.
    #[must_use]
    pub fn new(row_count: u64) -> Self {
        let (blocks, tail, located) = (Tree::default(), Tree::default(), Tree::default());
        Self { row_count, blocks, tail, located }
    }

    /// A file of `row_count` rows of which some are deleted, as a deletion vector of Delta Lake lists them.
    ///
    /// Time and memory grow with the number of deleted rows; a row takes two bytes, or less where many are deleted, and its
    /// share of its block of 4,096 rows.
    ///
    /// # Errors
    /// [`Error::NotAscending`] if the rows are not in strictly ascending order, [`Error::RowOutOfRange`] if the file lacks
    /// one of them.
    pub fn from_deleted(
        row_count: u64,
        deleted: impl IntoIterator<Item = u64>,
    ) -> Result<Self, Error> {
        let mut changes = Self::new(row_count);
        let mut blocks: Vec<Block<V, K>> = Vec::new();
        let mut rows: Vec<u16> = Vec::new();
        let mut last: Option<(Sid, u64)> = None;
        let block = |number, rows: &[u16]| {
            let deleted = BlockRows::from_sorted(rows);
            Block::new(number, BlockChanges { deleted, ..BlockChanges::default() })
        };
        for sid in deleted.into_iter().map(Sid) {
            changes.check(sid)?;
            let (number, offset) = Block::<V, K>::locate(sid);
            if let Some((before, last_number)) = last {
                if sid <= before {
                    return Err(Error::NotAscending(sid));
                }
                if number > last_number {
                    blocks.push(block(last_number, &rows));
                    rows.clear();
                }
            }
            rows.push(offset);
            last = Some((sid, number));
        }
        blocks.extend(last.map(|(_, number)| block(number, &rows)));
        changes.blocks = Tree::from_sorted(blocks);
        Ok(changes)
    }

    /// The same changes of a file of another number of rows. They may be known before the file is: a deletion vector does
    /// not say how many rows its file has.
    ///
    /// # Errors
    /// [`Error::RowOutOfRange`] if a row is changed that such a file lacks, or inserts stand before it.
    pub fn with_row_count(&self, row_count: u64) -> Result<Self, Error> {
        let last = self.blocks.last_reached(|_, _| true).and_then(|(_, block)| block.last_row());
        match last {
            Some(row) if row.0 >= row_count => Err(Error::RowOutOfRange { row, row_count }),
            _ => Ok(Self { row_count, ..self.clone() }),
        }
    }

    /// The changes without the tail, and the tail as that of a file without rows. Unless other rows are inserted, this takes
    /// no time.
    #[must_use]
    pub fn split_tail(&self) -> (Self, Self) {
        let mut file = Self { tail: Tree::default(), ..self.clone() };
        let mut tail = Self { tail: self.tail.clone(), ..Self::new(0) };
        if self.blocks.sum().inserted == 0 {
            tail.located = std::mem::take(&mut file.located);
            return (file, tail);
        }
        for insert in self.tail() {
            file.located.remove(&insert.id());
            tail.located.put(Located(insert.position.clone()));
        }
        (file, tail)
    }

    /// The number of stable rows, deleted or not.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.row_count
    }

    /// The numbers of changes.
    #[must_use]
    pub fn counts(&self) -> ChangeCounts {
        let mut counts = self.blocks.sum();
        counts.inserted += self.tail.sum();
        counts
    }

    /// Whether every row is as it is in the file, and no row is inserted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.tail.is_empty()
    }

    /// Whether nothing was changed since one version was cloned from the other. `false` says nothing.
    #[must_use]
    pub fn is_same_version(&self, other: &Self) -> bool {
        self.row_count == other.row_count
            && self.blocks.is_same(&other.blocks)
            && self.tail.is_same(&other.tail)
    }

    /// Whether a stable row is deleted.
    #[must_use]
    pub fn is_deleted(&self, sid: Sid) -> bool {
        let (number, offset) = Block::<V, K>::locate(sid);
        self.block(number).is_some_and(|block| block.deleted.contains(offset))
    }

    /// The patches of a stable row: columns, ascending, and the values they have instead of those in the file.
    pub fn row_patches(&self, sid: Sid) -> impl Iterator<Item = (u32, &V)> {
        let (number, offset) = Block::<V, K>::locate(sid);
        let patches = self.block(number).map(|block| block.row_patches(offset));
        patches.into_iter().flatten().map(|patch| (patch.cell.column, &patch.value))
    }

    /// The insert of this name, unless it does not exist or was deleted.
    #[must_use]
    pub fn insert_of(&self, id: InsertId) -> Option<&Insert<V, K>> {
        let position = &self.located.get(&id)?.0;
        match position.place {
            Place::Before(sid) => self.block(Block::<V, K>::locate(sid).0)?.inserts.get(position),
            Place::Tail => self.tail.get(position),
        }
    }

    /// Whether a query sees a row.
    #[must_use]
    pub fn is_visible(&self, row: impl Into<RowId>) -> bool {
        match row.into() {
            RowId::Stable(sid) => sid.0 < self.row_count && !self.is_deleted(sid),
            RowId::Insert(id) => self.located.get(&id).is_some(),
        }
    }

    /// Inserts after the last stable row, in order.
    pub fn tail(&self) -> impl Iterator<Item = &Insert<V, K>> {
        self.tail.iter()
    }

    /// The same from the one at a position on, counted from 0. Finding it takes logarithmic time.
    pub fn tail_from(&self, nth: u64) -> impl Iterator<Item = &Insert<V, K>> {
        let reached = self.tail.last_reached(|_, before| before <= nth);
        let first = reached.filter(|(before, _)| *before == nth).map(|(_, insert)| insert);
        let from = first.map(|first| self.tail.iter_after(|position| *position < first.position));
        from.into_iter().flatten()
    }

    /// About the memory that the changes take in bytes, whichever versions share it. `heap_bytes` is the memory beside a
    /// value. Time grows with the changes.
    #[must_use]
    pub fn memory_bytes(&self, heap_bytes: impl Fn(&V) -> usize) -> usize {
        let row_bytes = |insert: &Insert<V, K>| {
            let row = insert.row();
            let heap: usize = row.iter().map(&heap_bytes).sum();
            size_of::<Insert<V, K>>() + size_of::<Located<K>>() + size_of_val(&**row) + heap
        };
        let tail: usize = self.tail.iter().map(row_bytes).sum();
        let blocks = self.blocks.iter().map(|block| {
            let BlockChanges { deleted, patches, inserts } = block.changes();
            let patches = patches.iter();
            let patches = patches.map(|patch| size_of_val(patch) + heap_bytes(&patch.value));
            let inserts = inserts.iter().map(row_bytes).sum::<usize>();
            size_of_val(block)
                + size_of::<BlockChanges<V, K>>()
                + deleted.memory_bytes()
                + patches.sum::<usize>()
                + inserts
        });
        tail + blocks.sum::<usize>()
    }

    pub(crate) fn blocks(&self) -> &Tree<Block<V, K>> {
        &self.blocks
    }

    pub(crate) fn tail_tree(&self) -> &Tree<Insert<V, K>> {
        &self.tail
    }

    fn block(&self, number: u64) -> Option<&BlockChanges<V, K>> {
        self.blocks.get(&number).map(Block::changes)
    }

    fn check(&self, sid: Sid) -> Result<(), Error> {
        let row_count = self.row_count;
        if sid.0 < row_count { Ok(()) } else { Err(Error::RowOutOfRange { row: sid, row_count }) }
    }
}

impl<V: Clone, K: Ord + Clone> fmt::Debug for FileChanges<V, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, counts) = (self.row_count, self.counts());
        f.debug_struct("FileChanges").field("row_count", &rows).field("counts", &counts).finish()
    }
}
