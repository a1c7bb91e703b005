//! Zones: the smallest ranges of rows with statistics, which are row groups where a chunk has several.

use std::ops::Range;

use parquet::file::metadata::ParquetMetaData;

use super::ChunkStatistics;
use super::pages::StoredChunk;
use super::per_column::PerColumn;
use super::row_ranges::row_count;

/// The zones of a file, and their statistics.
pub(super) struct Zones {
    pub(super) stored: Vec<StoredChunk>,
    /// The rows of each zone, counted from the start of the file.
    pub(super) rows: Vec<Range<u64>>,
    pub(super) statistics: PerColumn<ChunkStatistics>,
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
                let rows = 0..row_count(metadata, row_group);
                add(StoredChunk { row_groups: vec![row_group], rows, is_part: false });
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
