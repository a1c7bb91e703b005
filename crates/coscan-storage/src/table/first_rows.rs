//! The first rows of a chunk, without reading and decoding all of it.

use std::sync::Arc;

use bytes::Bytes;
use coscan_core::{ChunkIndex, PageIndex};

use super::prefix::LeafPrefix;
use super::row_ranges::rows_of_row_groups;
use super::{ColumnDecoder, ColumnPrefix, DecodeError, ParquetTable};

impl ParquetTable {
    /// The pages that hold the first `rows` rows of a column of a chunk; `None` if the chunk has fewer rows, or begins
    /// within a row group. The prefix starts without any bytes and determines itself which to read.
    ///
    /// # Panics
    /// If there is no such chunk or column.
    #[must_use]
    pub fn prefix(&self, chunk: ChunkIndex, column: usize, rows: u64) -> Option<ColumnPrefix> {
        let (index, chunk_in_file) = self.place_of(chunk);
        let file = &self.parquet_files()[index];
        let stored = file.chunk(chunk_in_file);
        if stored.rows.start > 0 || stored.row_count() < rows {
            return None;
        }
        let mut leaves = Vec::new();
        if let Some(column) = self.file_column(index, column) {
            let row_groups = rows_of_row_groups(&file.metadata, stored);
            for (row_group, held) in row_groups.take_while(|(_, held)| held.start < rows) {
                let held = held.start..held.end.min(rows);
                let leaf_prefix =
                    |leaf| LeafPrefix::new(&file.metadata, row_group, leaf, held.clone());
                leaves.extend(file.leaves(column).map(leaf_prefix));
            }
        }
        let name = self.schema().field(column).name().clone();
        Some(ColumnPrefix { chunk, column, name, file: Arc::clone(&file.name), rows, leaves })
    }

    /// Decodes the rows of a complete prefix into one array of the column's type in [`Self::schema`].
    ///
    /// # Errors
    /// As [`Self::decode`], and if bytes of the prefix are missing.
    ///
    /// # Panics
    /// If the prefix is of another table.
    pub fn decode_prefix(&self, prefix: &ColumnPrefix) -> Result<ColumnDecoder, DecodeError> {
        let (index, chunk) = self.place_of(prefix.chunk);
        let file = &self.parquet_files()[index];
        let Some(column) = self.file_column(index, prefix.column) else {
            let no_pages = |_: PageIndex| Bytes::new();
            let rows = usize::try_from(prefix.rows).unwrap_or(usize::MAX);
            let selection = std::iter::once(0..prefix.rows).collect::<Vec<_>>();
            return self.decode(prefix.chunk, prefix.column, &no_pages, Some(&selection), rows);
        };
        let decoder = file.decode_prefixes(chunk, column, prefix.rows, &prefix.leaves)?;
        Ok(self.as_column(decoder, prefix.column))
    }
}
