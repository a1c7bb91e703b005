//! What the footer says of less than a chunk: of each row group where a chunk has several.

use std::ops::Range;

use parquet::file::metadata::ParquetMetaData;

use super::pages::StoredChunk;
use super::per_column::PerColumn;
use super::{ChunkStatistics, ParquetFile, TableError};

/// The smallest ranges of rows of which statistics are kept.
pub(super) struct Zones {
    stored: Vec<StoredChunk>,
    /// From the start of the file.
    rows: Vec<Range<u64>>,
    statistics: PerColumn<ChunkStatistics>,
}

impl Zones {
    pub(super) fn new(metadata: &ParquetMetaData, chunks: &[StoredChunk], columns: usize) -> Self {
        let (mut stored, mut rows) = (Vec::new(), Vec::new());
        let mut start = 0;
        let mut add = |zone: StoredChunk| {
            let end = start + zone.row_count();
            rows.push(start..end);
            stored.push(zone);
            start = end;
        };
        for chunk in chunks {
            if chunk.is_part || chunk.row_groups.len() == 1 {
                add(chunk.clone());
                continue;
            }
            for &row_group in &chunk.row_groups {
                let row_count = metadata.row_group(row_group).num_rows().cast_unsigned();
                add(StoredChunk {
                    row_groups: vec![row_group],
                    rows: 0..row_count,
                    is_part: false,
                });
            }
        }
        Self { stored, rows, statistics: PerColumn::new(columns) }
    }

    /// The row group that a zone lies in.
    pub(super) fn row_group(&self, zone: usize) -> usize {
        self.stored[zone].row_groups[0]
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let row_groups = self.stored.iter().map(|zone| size_of_val(zone.row_groups.as_slice()));
        size_of_val(self.stored.as_slice())
            + row_groups.sum::<usize>()
            + size_of_val(self.rows.as_slice())
            + self.statistics.memory_bytes(ChunkStatistics::memory_bytes)
    }
}

impl ParquetFile {
    /// The zones of the file, as rows from its start: each row group of a chunk that has several, else the chunk. They
    /// ascend, and together they are the file.
    #[must_use]
    pub fn zones(&self) -> &[Range<u64>] {
        &self.zones.rows
    }

    /// As [`Self::statistics`], with an entry a zone in every array.
    ///
    /// # Errors
    /// If the statistics cannot be understood.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn zone_statistics(&self, column: usize) -> Result<&ChunkStatistics, TableError> {
        let compute = || self.compute_statistics(&self.zones.stored, column);
        self.zones.statistics.get_or_try_make(column, compute)
    }
}
