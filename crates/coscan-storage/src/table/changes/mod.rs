//! Changes of a table: rows that are deleted, changed and inserted while its files stay as they are.
//!
//! The files keep what they have, so that their pages and decoded columns serve all snapshots. A scan merges the changes of
//! its own snapshot into each batch that it gives. Inserted rows are in chunks of their own, which have no pages.

mod arrays;
mod chunk_changes;
mod inserted_rows;
mod value;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::BooleanArray;
use arrow_schema::ArrowError;
use coscan_core::ChunkIndex;
use coscan_pdt::{Error, Sid};

use super::{ChunkStatistics, ParquetTable, TableError};
pub use chunk_changes::ChunkChanges;
pub(super) use inserted_rows::file_of_inserted_rows;
pub use value::{ColumnValues, Value};

/// The changes of one file.
pub type FileChanges = coscan_pdt::FileChanges<Value>;

/// Identifies the changes of a chunk.
pub type ChunkVersion = coscan_pdt::RangeVersion<Value>;

/// The changes of a table. There are none by default.
#[derive(Clone, Debug, Default)]
pub struct TableChanges {
    /// The changes of each file, in the order of the files; empty if there are none in any.
    pub files: Vec<Option<Arc<FileChanges>>>,
    /// The rows that no file has: the inserts of a file without rows.
    pub inserted: Option<Arc<FileChanges>>,
    /// Kept as long as the table is read: what keeps its files from being removed.
    pub held: Option<Arc<dyn Debug + Send + Sync>>,
}

impl TableChanges {
    /// The number of rows that no file has.
    #[must_use]
    pub fn inserted_count(&self) -> u64 {
        self.inserted.as_ref().map_or(0, |inserted| inserted.visible_rows())
    }

    /// About the memory that the changes take in bytes, whichever tables share it. Time grows with the changes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let changed = self.files.iter().flatten().chain(&self.inserted);
        let bytes = changed.map(|changes| changes.memory_bytes(Value::heap_bytes));
        bytes.sum::<usize>() as u64
    }
}

impl ParquetTable {
    /// The same table with other changes. It has the files, layout and statistics of this one, so nothing is read.
    ///
    /// # Errors
    /// If a row is changed that its file does not have.
    ///
    /// # Panics
    /// If there is not one element for each file, rows are inserted between those of a file, or the table [has no room](super::TableColumns::inserted_rows_max) for
    /// the inserted rows.
    pub fn with_changes(&self, changes: TableChanges) -> Result<Self, TableError> {
        let TableChanges { files, inserted, held } = changes;
        let is_whole = files.is_empty() || files.len() == self.stored_files().len();
        assert!(is_whole, "each file has its changes");
        assert!(
            inserted.as_ref().map_or(0, |inserted| inserted.visible_rows()) <= self.inserted_max(),
            "the table has room for its inserted rows"
        );
        let of_file = |(file, changes): (usize, Option<Arc<FileChanges>>)| {
            let changed = changes.filter(|changes| !changes.is_empty());
            changed.map(|changes| self.fitted(file, changes)).transpose()
        };
        let files = files.into_iter().enumerate().map(of_file);
        let mut files = files.collect::<Result<Vec<_>, _>>()?;
        if files.iter().all(Option::is_none) {
            files.clear();
        }
        let inserted = inserted.filter(|inserted| !inserted.is_empty());
        let changes = TableChanges { files, inserted, held };
        Ok(Self { base: Arc::clone(&self.base), changes })
    }

    /// Changes of a file with the number of rows that it has.
    fn fitted(
        &self,
        file: usize,
        changes: Arc<FileChanges>,
    ) -> Result<Arc<FileChanges>, TableError> {
        assert_eq!(changes.counts().inserted, 0, "inserted rows are no file's");
        let file = &self.parquet_files()[file];
        let rows = file.row_count();
        if changes.row_count() == rows {
            return Ok(changes);
        }
        changes.with_row_count(rows).map(Arc::new).map_err(|error| {
            let (file, changed) = (Arc::clone(&file.name), changes.row_count());
            match error {
                Error::RowOutOfRange { row, .. } => {
                    TableError::NoSuchRow { file, row: row.0, rows }
                }
                _ => TableError::NoSuchRow { file, row: changed.saturating_sub(1), rows },
            }
        })
    }

    /// The changes of the table.
    #[must_use]
    pub fn changes(&self) -> &TableChanges {
        &self.changes
    }

    /// Whether rows are deleted, changed or inserted.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        !self.changes.files.is_empty() || self.changes.inserted.is_some()
    }

    /// The changes of a file, if there are any. Inserted rows are no file's.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn file_changes(&self, file: usize) -> Option<&Arc<FileChanges>> {
        assert!(file < self.parquet_files().len(), "file {file} exists");
        self.changes.files.get(file)?.as_ref()
    }

    /// The number of rows that files have, deleted or not.
    #[must_use]
    pub fn stored_rows(&self) -> u64 {
        self.first_row(self.stored_files().len())
    }

    /// The number of rows of a range that a scan gives, without those that are deleted. The range counts from the start
    /// of the table.
    #[must_use]
    pub fn visible_rows(&self, rows: Range<u64>) -> u64 {
        let mut visible = rows.end.saturating_sub(rows.start);
        let may_lack_rows = !self.changes.files.is_empty() || self.inserted_max() > 0;
        if visible == 0 || !may_lack_rows {
            return visible;
        }
        for file in self.file_of_row(rows.start)..self.parquet_files().len() {
            let file_start = self.first_row(file);
            if file_start >= rows.end {
                break;
            }
            let file_end = file_start + self.parquet_files()[file].row_count();
            let (start, end) = (rows.start.max(file_start), rows.end.min(file_end));
            let in_file = start - file_start..end - file_start;
            let count = in_file.end - in_file.start;
            if self.inserted_file() == Some(file) {
                let inserted = self.changes.inserted_count();
                visible -= count - (inserted.min(in_file.end) - inserted.min(in_file.start));
            } else if let Some(changes) = self.file_changes(file) {
                let left = changes.visible_rows_in(Sid(in_file.start)..Sid(in_file.end));
                visible = visible + left - count;
            }
        }
        visible
    }

    /// Whether the values of a column that a file does not store differ by row.
    pub(super) fn is_computed(&self, file: usize, column: usize) -> bool {
        self.inserted_file() == Some(file) || self.row_number_column() == Some(column)
    }

    /// The statistics of a column, unknown where it is patched.
    pub(super) fn with_unknown(
        &self,
        column: usize,
        statistics: ChunkStatistics,
        ranges: impl Iterator<Item = Range<u64>>,
    ) -> Result<ChunkStatistics, ArrowError> {
        if self.changes.files.is_empty() {
            return Ok(statistics);
        }
        let unknown = ranges.map(|rows| Some(self.has_new_values(column, rows)));
        statistics.without(&unknown.collect::<BooleanArray>())
    }

    /// Whether rows of a chunk or zone may have values in a column that the file does not know of. The range counts from
    /// the start of the table and lies in one file.
    #[must_use]
    pub fn has_new_values(&self, column: usize, rows: Range<u64>) -> bool {
        let file = self.file_of_row(rows.start);
        if self.inserted_file() == Some(file) {
            return true;
        }
        let Some(changes) = self.changes.files.get(file).and_then(Option::as_ref) else {
            return false;
        };
        let start = self.first_row(file);
        let range = changes.range(Sid(rows.start - start)..Sid(rows.end - start));
        range.has_patches(column as u32)
    }

    /// Identifies the changes of a chunk; `None` if its file has none. Snapshots with the same columns
    /// in which it is equal have the same rows in the chunk.
    ///
    /// # Panics
    /// If there is no such chunk.
    #[must_use]
    pub fn chunk_version(&self, chunk: ChunkIndex) -> Option<ChunkVersion> {
        let file = self.chunk_file(chunk);
        let (rows, start) = (self.layout().rows(chunk), self.first_row(file));
        let changes = self.changes.files.get(file)?.as_ref()?;
        Some(changes.range(Sid(rows.start - start)..Sid(rows.end - start)).version())
    }

    /// Whether a chunk may have values in a column that its file does not know of.
    ///
    /// # Panics
    /// If there is no such chunk.
    #[must_use]
    pub fn chunk_has_new_values(&self, chunk: ChunkIndex, column: usize) -> bool {
        self.has_new_values(column, self.layout().rows(chunk))
    }
}
