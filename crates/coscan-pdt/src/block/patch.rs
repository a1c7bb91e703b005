//! Other values of cells of stable rows.

use std::ops::Range;

use super::BlockChanges;
use crate::tree::Entry;

/// A column of a row of a block. Columns come first, since scans read some of them, each by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Cell {
    pub(crate) column: u32,
    /// The row's offset in its block.
    pub(crate) row: u16,
}

/// The value of a cell instead of that in the file.
#[derive(Clone)]
pub(crate) struct Patch<V> {
    pub(crate) cell: Cell,
    pub(crate) value: V,
}

impl<V: Clone> Entry for Patch<V> {
    type Key = Cell;
    type Sum = u64;

    fn key(&self) -> &Cell {
        &self.cell
    }

    fn sum(&self) -> u64 {
        1
    }
}

impl<V: Clone, K: Ord + Clone> BlockChanges<V, K> {
    /// The patches of a column in a range of offsets, ascending.
    pub(crate) fn patches_of(
        &self,
        column: u32,
        rows: Range<u64>,
    ) -> impl Iterator<Item = &Patch<V>> {
        let place = |cell: &Cell| (cell.column, u64::from(cell.row));
        let from = (column, rows.start);
        let patches = self.patches.iter_after(move |cell| place(cell) < from);
        patches.take_while(move |patch| place(&patch.cell) < (column, rows.end))
    }
}
