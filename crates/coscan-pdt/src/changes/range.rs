//! The changes that a scan needs of a range of stable rows.

use std::ops::Range;

use super::FileChanges;
use crate::block::{BLOCK_ROWS, Block};
use crate::ids::{Place, Sid};
use crate::insert::Insert;

/// The changes of a range of stable rows, such as a chunk: of these rows, and the inserts that stand before one of them.
///
/// Ranges that cover the file, each row once, and [the tail](FileChanges::tail) have each change once, in whatever order
/// they are read. Time grows with the changes in the range.
#[derive(Clone, Copy)]
pub struct RangeChanges<'a, V: Clone, K: Ord + Clone = ()> {
    changes: &'a FileChanges<V, K>,
    start: u64,
    end: u64,
}

/// The deleted rows of a range as a bitmap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeletedMask {
    /// Bit `offset + i`, counted from the lowest bit of the first word, is set if row `i` of the range is deleted. All
    /// other bits are 0.
    pub words: Vec<u64>,
    /// The bits before that of the first row, fewer than 64.
    pub offset: usize,
    /// The number of rows of the range.
    pub len: usize,
}

impl<V: Clone, K: Ord + Clone> FileChanges<V, K> {
    /// The changes of a range of stable rows. Rows that the file lacks have none.
    #[must_use]
    pub fn range(&self, range: Range<Sid>) -> RangeChanges<'_, V, K> {
        let end = range.end.0.min(self.row_count);
        RangeChanges { changes: self, start: range.start.0.min(end), end }
    }
}

impl<'a, V: Clone, K: Ord + Clone> RangeChanges<'a, V, K> {
    /// The stable rows.
    #[must_use]
    pub fn rows(&self) -> Range<Sid> {
        Sid(self.start)..Sid(self.end)
    }

    /// The number of rows that a query sees, inserts among them.
    #[must_use]
    pub fn visible_rows(&self) -> u64 {
        self.changes.visible_rows_in(self.rows())
    }

    /// The number of stable rows that are deleted, in logarithmic time.
    #[must_use]
    pub fn deleted_count(&self) -> u64 {
        self.changes.counts_in(self.rows()).0
    }

    /// The number of inserts that stand before one of these rows, in logarithmic time.
    #[must_use]
    pub fn insert_count(&self) -> u64 {
        self.changes.counts_in(self.rows()).1
    }

    /// Whether these rows are as they are in the file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.counts_in(self.rows()) == (0, 0) && self.patched_columns().is_empty()
    }

    /// Whether a stable row has another value in a column. If not, and there are no inserts, then what the file says of the
    /// column's bounds still holds, and of its values if nothing is deleted either.
    #[must_use]
    pub fn has_patches(&self, column: u32) -> bool {
        self.patches(column).next().is_some()
    }

    /// The columns in which a stable row has another value, ascending.
    #[must_use]
    pub fn patched_columns(&self) -> Vec<u32> {
        let columns = self.blocks().flat_map(|(block, rows)| {
            let changes = block.changes();
            let is_patched =
                move |column: &u32| changes.patches_of(*column, rows.clone()).next().is_some();
            changes.patched_columns().filter(is_patched)
        });
        let mut columns: Vec<u32> = columns.collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// The deleted rows, ascending.
    pub fn deleted(&self) -> impl Iterator<Item = Sid> + use<'a, V, K> {
        self.blocks().flat_map(|(block, rows)| {
            block.changes().deleted.iter(rows).map(|offset| block.sid(offset))
        })
    }

    /// The deleted rows as runs of neighbours, each as long as possible, ascending.
    pub fn deleted_runs(&self) -> impl Iterator<Item = Range<Sid>> + use<'a, V, K> {
        let mut deleted = self.deleted().peekable();
        std::iter::from_fn(move || {
            let start = deleted.next()?;
            let mut end = Sid(start.0 + 1);
            while deleted.next_if_eq(&end).is_some() {
                end.0 += 1;
            }
            Some(start..end)
        })
    }

    /// The deleted rows as a bitmap; `None` if there are none.
    #[must_use]
    pub fn deleted_mask(&self) -> Option<DeletedMask> {
        if self.deleted_count() == 0 {
            return None;
        }
        let first = self.start / 64 * 64;
        let mut words = vec![0; (self.end - first).div_ceil(64) as usize];
        for (block, rows) in self.blocks() {
            block.changes().deleted.set_bits(rows, block.first_row(), first, &mut words);
        }
        let (offset, len) = ((self.start - first) as usize, (self.end - self.start) as usize);
        Some(DeletedMask { words, offset, len })
    }

    /// The rows that have another value in a column, ascending, with these values. None of them is deleted.
    pub fn patches(&self, column: u32) -> impl Iterator<Item = (Sid, &'a V)> + use<'a, V, K> {
        self.blocks().flat_map(move |(block, rows)| {
            let patches = block.changes().patches_of(column, rows);
            patches.map(|patch| (block.sid(patch.cell.row), &patch.value))
        })
    }

    /// The inserts that stand before one of these rows, in order.
    pub fn inserts(&self) -> impl Iterator<Item = &'a Insert<V, K>> + use<'a, V, K> {
        let (start, end) = (Place::Before(Sid(self.start)), Place::Before(Sid(self.end)));
        self.blocks().flat_map(move |(block, _)| {
            let inserts = block.changes().inserts.iter_after(move |at| at.place < start);
            inserts.take_while(move |insert| insert.place() < end)
        })
    }

    /// The blocks with changes, each with the offsets of those of its rows that are in the range.
    pub(super) fn blocks(
        &self,
    ) -> impl Iterator<Item = (&'a Block<V, K>, Range<u64>)> + use<'a, V, K> {
        let (start, end) = (self.start, self.end);
        let first = start / BLOCK_ROWS;
        let blocks = self.changes.blocks.iter_after(move |number| *number < first);
        blocks
            .map(move |block| (block, block.first_row()))
            .take_while(move |(_, row)| *row < end)
            .map(move |(block, row)| {
                let offset = |sid: u64| sid.saturating_sub(row).min(BLOCK_ROWS);
                (block, offset(start)..offset(end))
            })
    }
}

impl<V: Clone, K: Ord + Clone> std::fmt::Debug for RangeChanges<'_, V, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RangeChanges({}..{} of {:?})", self.start, self.end, self.changes)
    }
}
