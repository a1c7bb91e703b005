//! Extents: the parts of a file that have an owner each.

use std::ops::Range;

/// An extent ends once it has this many bytes.
const EXTENT_BYTES: u64 = 8 << 20;

/// The most rows of an extent that is part of a row group.
const ROWS_MAX: u64 = 1 << 20;

/// A row group, as the footer of a file describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowGroup {
    /// The number of its rows.
    pub rows: u64,
    /// The bytes of its columns as stored.
    pub bytes: u64,
}

/// The extents of a file: runs of neighbouring rows, all columns alike, in the order of the file.
///
/// Every node cuts a file the same way, from its footer alone. Chunks depend on the options of a node, so nodes own
/// extents, not chunks. An extent is a run of whole row groups of at least 8 MiB, or less at the end of the file and before
/// a larger row group; a row group above 8 MiB and 2²⁰ rows is cut every 2²⁰ rows.
///
/// # Example
/// ```
/// use coscan_ring::{Extents, RowGroup};
///
/// let group = RowGroup { rows: 100, bytes: 5 << 20 };
/// let extents = Extents::cut(&[group, group, group]);
/// assert_eq!((extents.count(), extents.rows(0), extents.rows(1)), (2, 0..200, 200..300));
/// assert_eq!(extents.of_row(250), 1);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extents {
    /// The first row of each extent, and after the last one the number of rows.
    starts: Vec<u64>,
}

impl Extents {
    /// The version of the rule by which files are cut. Nodes with different versions would own different things.
    pub const RULE: u32 = 1;

    /// Cuts a file with these row groups.
    #[must_use]
    pub fn cut(row_groups: &[RowGroup]) -> Self {
        Self::cut_at(row_groups, EXTENT_BYTES)
    }

    /// Cuts a file into extents of at least this many bytes, for simulations of small files. Servers MUST NOT use it.
    #[must_use]
    pub fn cut_at(row_groups: &[RowGroup], extent_bytes: u64) -> Self {
        let (mut starts, mut row, mut open_bytes) = (vec![0], 0, 0);
        let mut end_extent = |row: u64| {
            if starts.last() != Some(&row) {
                starts.push(row);
            }
        };
        for group in row_groups {
            let is_cut = group.bytes > extent_bytes && group.rows > ROWS_MAX;
            if is_cut {
                end_extent(row);
                // The bytes bound the number of pieces, since the number of rows may be wrong.
                let pieces = group.rows.div_ceil(ROWS_MAX).min(group.bytes.div_ceil(1 << 10));
                (1..pieces).for_each(|piece| end_extent(row + piece * ROWS_MAX));
            }
            row = row.saturating_add(group.rows);
            open_bytes = group.bytes.saturating_add(open_bytes);
            if is_cut || open_bytes >= extent_bytes {
                end_extent(row);
                open_bytes = 0;
            }
        }
        end_extent(row);
        Self { starts }
    }

    /// The number of rows.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.starts[self.count()]
    }

    /// The number of extents.
    #[must_use]
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The rows of an extent.
    ///
    /// # Panics
    /// If there is no such extent.
    #[must_use]
    pub fn rows(&self, extent: usize) -> Range<u64> {
        self.starts[extent]..self.starts[extent + 1]
    }

    /// The extent that a row is in; the last one for rows behind the end.
    #[must_use]
    pub fn of_row(&self, row: u64) -> usize {
        let before = self.starts.partition_point(|&start| start <= row);
        before.saturating_sub(1).min(self.count().saturating_sub(1))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn cut(groups: &[(u64, u64)]) -> Vec<u64> {
        let groups: Vec<_> = groups.iter().map(|&(rows, bytes)| RowGroup { rows, bytes }).collect();
        Extents::cut(&groups).starts
    }

    #[test]
    fn small_row_groups_are_joined_and_huge_ones_cut() {
        assert_eq!(cut(&[(10, MIB); 20]), [0, 80, 160, 200]);
        assert_eq!(cut(&[(10, 9 * MIB); 3]), [0, 10, 20, 30]);
        assert_eq!(
            cut(&[(5, MIB), (2 * MIB + 7, 100 * MIB), (5, MIB)]),
            [0, 5, 5 + MIB, 5 + 2 * MIB, 12 + 2 * MIB, 17 + 2 * MIB]
        );
        assert_eq!(cut(&[(3 * MIB, MIB)]), [0, 3 * MIB], "many rows of few bytes are one extent");
        assert_eq!(cut(&[]), [0]);
        assert_eq!(cut(&[(0, 0), (7, 1), (0, 9 * MIB)]), [0, 7]);
    }

    proptest! {
        #[test]
        fn every_row_is_in_one_extent(groups in prop::collection::vec((0..3 * MIB, 0..20 * MIB), 0..12)) {
            let groups: Vec<_> =
                groups.iter().map(|&(rows, bytes)| RowGroup { rows, bytes }).collect();
            let extents = Extents::cut(&groups);
            let rows: u64 = groups.iter().map(|group| group.rows).sum();
            prop_assert_eq!(*extents.starts.last().unwrap(), rows);
            for extent in 0..extents.count() {
                let Range { start, end } = extents.rows(extent);
                prop_assert!(start < end);
                prop_assert_eq!((extents.of_row(start), extents.of_row(end - 1)), (extent, extent));
            }
        }
    }
}
