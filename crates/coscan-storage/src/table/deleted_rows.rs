//! Rows of a file that a snapshot of a table does not have.

use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use coscan_core::ChunkIndex;
use roaring::RoaringTreemap;

use super::{ParquetTable, TableError};

/// Rows of one file version that are deleted in a snapshot, by their position in the file. The file keeps them, so that
/// its pages and decoded columns serve all snapshots; a scan removes them from the batches that it gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeletedRows {
    rows: RoaringTreemap,
}

impl DeletedRows {
    /// The number of deleted rows.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.rows.len()
    }

    /// Whether no row is deleted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The largest position of a deleted row.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        self.rows.max()
    }

    /// The number of deleted rows in a range of positions.
    #[must_use]
    pub fn count_in(&self, rows: Range<u64>) -> u64 {
        self.rows.range_cardinality(rows)
    }

    /// The bytes of memory that the positions take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let bitmaps = self.rows.bitmaps().map(|(_, bitmap)| bitmap.statistics());
        let bytes = bitmaps.map(|statistics| {
            statistics.n_bytes_array_containers
                + statistics.n_bytes_run_containers
                + statistics.n_bytes_bitset_containers
        });
        bytes.sum()
    }

    /// One bit for each row of a range, in ascending order: whether it is not deleted. `None` if none is deleted.
    #[must_use]
    pub fn mask(&self, rows: Range<u64>) -> Option<BooleanBuffer> {
        let mut next = rows.start;
        let mut mask = BooleanBufferBuilder::new(0);
        let mut positions = self.rows.iter();
        positions.advance_to(rows.start);
        for deleted in positions.take_while(|position| *position < rows.end) {
            mask.append_n(as_length(deleted - next), true);
            mask.append(false);
            next = deleted + 1;
        }
        if mask.is_empty() {
            return None;
        }
        mask.append_n(as_length(rows.end - next), true);
        Some(mask.finish())
    }
}

fn as_length(rows: u64) -> usize {
    usize::try_from(rows).expect("rows of a chunk fit into memory")
}

impl FromIterator<u64> for DeletedRows {
    fn from_iter<I: IntoIterator<Item = u64>>(rows: I) -> Self {
        Self { rows: rows.into_iter().collect() }
    }
}

impl From<RoaringTreemap> for DeletedRows {
    fn from(rows: RoaringTreemap) -> Self {
        Self { rows }
    }
}

impl ParquetTable {
    /// The table without some rows: one element for each file, in the order of the files.
    ///
    /// # Errors
    /// If a file does not have a row that is deleted.
    ///
    /// # Panics
    /// If there is not one element for each file.
    pub fn without_rows(
        mut self,
        deleted: Vec<Option<Arc<DeletedRows>>>,
    ) -> Result<Self, TableError> {
        assert_eq!(deleted.len(), self.files.len(), "each file has its deleted rows");
        for (file, deleted) in self.files.iter().zip(&deleted) {
            let last = deleted.as_ref().and_then(|deleted| deleted.last());
            if let Some(row) = last.filter(|row| *row >= file.row_count()) {
                let (file, rows) = (Arc::clone(&file.name), file.row_count());
                return Err(TableError::NoSuchRow { file, row, rows });
            }
        }
        let has_any = deleted.iter().flatten().any(|deleted| !deleted.is_empty());
        if has_any {
            self.deleted = deleted;
        }
        Ok(self)
    }

    /// Whether rows of its files are deleted.
    #[must_use]
    pub fn has_deleted_rows(&self) -> bool {
        !self.deleted.is_empty()
    }

    /// The deleted rows of a file, if there are any.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn deleted_rows(&self, file: usize) -> Option<&Arc<DeletedRows>> {
        assert!(file < self.files.len(), "file {file} exists");
        self.deleted.get(file)?.as_ref().filter(|deleted| !deleted.is_empty())
    }

    /// The bytes of memory that the positions of deleted rows take.
    #[must_use]
    pub fn deleted_rows_bytes(&self) -> u64 {
        self.deleted.iter().flatten().map(|deleted| deleted.memory_bytes()).sum()
    }

    /// The number of rows of a range that are not deleted. The range counts from the start of the table.
    #[must_use]
    pub fn rows_left(&self, rows: Range<u64>) -> u64 {
        let mut left = rows.end.saturating_sub(rows.start);
        if left == 0 || !self.has_deleted_rows() {
            return left;
        }
        for file in self.file_of_row(rows.start)..self.files.len() {
            let file_start = self.first_row(file);
            if file_start >= rows.end {
                break;
            }
            if let Some(deleted) = self.deleted_rows(file) {
                let file_end = file_start + self.files[file].row_count();
                let (start, end) = (rows.start.max(file_start), rows.end.min(file_end));
                left -= deleted.count_in(start - file_start..end - file_start);
            }
        }
        left
    }

    /// One bit for each row of a chunk: whether it is not deleted. `None` if none is deleted. With a selection, which
    /// counts from the start of the chunk, there are bits of selected rows only.
    ///
    /// # Panics
    /// If there is no such chunk, or the selection exceeds it.
    #[must_use]
    pub fn row_mask(
        &self,
        chunk: ChunkIndex,
        selection: Option<&[Range<u64>]>,
    ) -> Option<BooleanBuffer> {
        let file = self.chunk_file(chunk);
        let deleted = self.deleted_rows(file)?;
        let Range { start, end } = self.layout().rows(chunk);
        let file_start = self.first_row(file);
        let mask = deleted.mask(start - file_start..end - file_start)?;
        let Some(selection) = selection else { return Some(mask) };
        let mut selected = BooleanBufferBuilder::new(0);
        for rows in selection {
            let [start, end] =
                [rows.start, rows.end].map(|row| usize::try_from(row).expect("a row"));
            selected.append_buffer(&mask.slice(start, end - start));
        }
        Some(selected.finish()).filter(|selected| selected.count_set_bits() < selected.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_a_bit_for_each_row_of_the_range() {
        let deleted: DeletedRows = [3, 4, 9, 70_000].into_iter().collect();
        let kept = |rows| deleted.mask(rows).map(|mask| mask.iter().collect::<Vec<_>>());
        assert_eq!(kept(0..3), None);
        assert_eq!(kept(5..9), None);
        assert_eq!(kept(2..6), Some(vec![true, false, false, true]));
        assert_eq!(kept(9..10), Some(vec![false]));
        assert_eq!(deleted.count_in(4..70_000), 2);
        assert_eq!((deleted.count(), deleted.last()), (4, Some(70_000)));
    }
}
