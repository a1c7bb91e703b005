//! What the footers say of less than a chunk: of each row group where a chunk has several.

use std::ops::Range;
use std::sync::OnceLock;

use coscan_core::Layout;

use super::open::OpenFile;
use super::pages::StoredChunk;
use super::{ChunkStatistics, ParquetTable, TableError};

/// The smallest ranges of rows of which statistics are kept.
pub(super) struct Zones {
    stored: Vec<StoredChunk>,
    /// From the start of the table.
    rows: Vec<Range<u64>>,
    /// By column, computed when first asked for.
    statistics: Vec<OnceLock<Result<ChunkStatistics, TableError>>>,
}

impl Zones {
    pub(super) fn new(
        files: &[OpenFile],
        chunks: &[StoredChunk],
        layout: &Layout,
        columns: usize,
    ) -> Self {
        let (mut stored, mut rows) = (Vec::new(), Vec::new());
        for (chunk, index) in chunks.iter().zip(layout.chunks()) {
            let mut start = layout.rows(index).start;
            if chunk.is_part || chunk.row_groups.len() == 1 {
                stored.push(chunk.clone());
                rows.push(layout.rows(index));
                continue;
            }
            for &row_group in &chunk.row_groups {
                let row_group_rows =
                    files[chunk.file].metadata.row_group(row_group).num_rows().cast_unsigned();
                stored.push(StoredChunk {
                    row_groups: vec![row_group],
                    rows: 0..row_group_rows,
                    ..chunk.clone()
                });
                rows.push(start..start + row_group_rows);
                start += row_group_rows;
            }
        }
        Self { stored, rows, statistics: (0..columns).map(|_| OnceLock::new()).collect() }
    }
}

impl ParquetTable {
    /// The zones of the table, as rows from its start: each row group of a chunk that has several, else the chunk. They
    /// ascend, and together they are the table.
    #[must_use]
    pub fn zones(&self) -> &[Range<u64>] {
        &self.zones.rows
    }

    /// As [`Self::statistics`], with an entry a zone in every array.
    ///
    /// # Errors
    /// If the statistics of a file cannot be understood.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn zone_statistics(&self, column: usize) -> Result<ChunkStatistics, TableError> {
        let compute = || self.compute_statistics(&self.zones.stored, column);
        self.zones.statistics[column].get_or_init(compute).clone()
    }
}
