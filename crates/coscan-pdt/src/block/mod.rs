//! The changes of a run of neighbouring stable rows, and of the inserts that stand before one of them.

mod patch;
mod rows;

pub(crate) use patch::{Cell, Patch};
pub(crate) use rows::BlockRows;

use std::ops::AddAssign;
use std::sync::{Arc, Weak};

use crate::ids::{Place, Sid};
use crate::insert::Insert;
use crate::tree::{Entry, Tree};

/// Rows of a block. A bitmap of deleted rows then takes 512 bytes, and an offset two. Tests have small blocks, so that
/// few changes are in many.
pub(crate) const BLOCK_ROWS: u64 = if cfg!(test) { 128 } else { 4_096 };

/// Numbers of changes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ChangeCounts {
    /// Stable rows that are deleted.
    pub deleted: u64,
    /// Rows that are inserted and not deleted since.
    pub inserted: u64,
    /// Cells of stable rows that have another value. Those of inserted rows do not count.
    pub patched: u64,
}

impl AddAssign for ChangeCounts {
    fn add_assign(&mut self, other: Self) {
        self.deleted += other.deleted;
        self.inserted += other.inserted;
        self.patched += other.patched;
    }
}

/// A block that has changes.
#[derive(Clone)]
pub(crate) struct Block<V: Clone, K: Ord + Clone> {
    /// Its first row is this many times [`BLOCK_ROWS`].
    number: u64,
    counts: ChangeCounts,
    changes: Arc<BlockChanges<V, K>>,
}

#[derive(Clone)]
pub(crate) struct BlockChanges<V: Clone, K: Ord + Clone> {
    pub(crate) deleted: BlockRows,
    /// Patches of rows that are not deleted.
    pub(crate) patches: Tree<Patch<V>>,
    /// Inserts, each before a row of the block.
    pub(crate) inserts: Tree<Insert<V, K>>,
}

impl<V: Clone, K: Ord + Clone> Block<V, K> {
    pub(crate) fn new(number: u64, changes: BlockChanges<V, K>) -> Self {
        Self { number, counts: changes.counts(), changes: Arc::new(changes) }
    }

    /// The block of a row, and the row's offset in it.
    pub(crate) fn locate(sid: Sid) -> (u64, u16) {
        (sid.0 / BLOCK_ROWS, (sid.0 % BLOCK_ROWS) as u16)
    }

    pub(crate) fn first_row(&self) -> u64 {
        self.number * BLOCK_ROWS
    }

    pub(crate) fn sid(&self, offset: u16) -> Sid {
        Sid(self.first_row() + u64::from(offset))
    }

    pub(crate) fn changes(&self) -> &BlockChanges<V, K> {
        &self.changes
    }

    /// A weak reference. While it exists, no other changes have this address: `Arc::make_mut` then moves even changes that only this
    /// block has.
    pub(crate) fn downgrade(&self) -> Weak<BlockChanges<V, K>> {
        Arc::downgrade(&self.changes)
    }

    /// The last row that is deleted or patched, or that inserts stand before.
    pub(crate) fn last_row(&self) -> Option<Sid> {
        let BlockChanges { deleted, patches, inserts } = &*self.changes;
        let deleted = deleted.iter(0..BLOCK_ROWS).last();
        let patched = patches.iter().map(|patch| patch.cell.row).max();
        let inserted = inserts.last_reached(|_, _| true).map(|(_, insert)| insert.place());
        let before = inserted.and_then(|place| match place {
            Place::Before(sid) => Some(sid),
            Place::Tail => None,
        });
        deleted.max(patched).map(|offset| self.sid(offset)).max(before)
    }
}

impl<V: Clone, K: Ord + Clone> Entry for Block<V, K> {
    type Key = u64;
    type Sum = ChangeCounts;

    fn key(&self) -> &u64 {
        &self.number
    }

    fn sum(&self) -> ChangeCounts {
        self.counts
    }
}

impl<V: Clone, K: Ord + Clone> Tree<Block<V, K>> {
    /// Changes a block. One without changes is not kept.
    pub(crate) fn change_block(&mut self, number: u64, f: impl FnOnce(&mut BlockChanges<V, K>)) {
        self.alter(&number, |slot| {
            let block = slot.get_or_insert_with(|| Block::new(number, BlockChanges::default()));
            let changes = Arc::make_mut(&mut block.changes);
            f(changes);
            block.counts = changes.counts();
            if block.counts == ChangeCounts::default() {
                *slot = None;
            }
        });
    }
}

impl<V: Clone, K: Ord + Clone> BlockChanges<V, K> {
    fn counts(&self) -> ChangeCounts {
        ChangeCounts {
            deleted: self.deleted.len() as u64,
            inserted: self.inserts.sum(),
            patched: self.patches.sum(),
        }
    }

    /// Deletes a row that is not deleted, with its patches.
    pub(crate) fn delete(&mut self, row: u16) {
        self.deleted.insert(row);
        self.drop_patches(row);
    }

    pub(crate) fn drop_patches(&mut self, row: u16) {
        let columns: Vec<u32> = self.row_patches(row).map(|patch| patch.cell.column).collect();
        columns.into_iter().for_each(|column| self.patches.remove(&Cell { column, row }));
    }

    /// The patches of a row, by column.
    pub(crate) fn row_patches(&self, row: u16) -> impl Iterator<Item = &Patch<V>> {
        self.patched_columns().filter_map(move |column| self.patches.get(&Cell { column, row }))
    }

    /// The columns with patches, ascending. Finding each takes logarithmic time.
    pub(crate) fn patched_columns(&self) -> impl Iterator<Item = u32> {
        let mut next = self.patches.iter().next();
        std::iter::from_fn(move || {
            let column = next?.cell.column;
            next = self.patches.iter_after(|cell| cell.column <= column).next();
            Some(column)
        })
    }
}

impl<V: Clone, K: Ord + Clone> Default for BlockChanges<V, K> {
    fn default() -> Self {
        Self { deleted: BlockRows::default(), patches: Tree::default(), inserts: Tree::default() }
    }
}
