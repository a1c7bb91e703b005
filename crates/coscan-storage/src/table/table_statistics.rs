//! Statistics of all chunks of a table, from those of its files.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::UInt64Array;
use arrow_schema::ArrowError;
use coscan_core::{ChunkIndex, Index};

use super::{ChunkStatistics, ParquetFile, ParquetTable, TableError};

impl ParquetTable {
    /// The statistics of a column, an entry per chunk, from the footers. Nothing is read, and the result is kept.
    /// Bounds are unknown for nested columns, and for columns that are read as a type that orders values differently.
    ///
    /// # Errors
    /// If the statistics of a file cannot be understood.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn statistics(&self, column: usize) -> Result<ChunkStatistics, TableError> {
        let row_counts = |file: &ParquetFile| {
            let chunks = (0..file.chunk_count()).map(ChunkIndex::from_usize);
            chunks.map(|chunk| Some(file.chunk_rows(chunk))).collect()
        };
        let concat = || self.concat(column, ParquetFile::statistics, row_counts);
        self.statistics.chunks.get_or_try_make(column, concat).cloned()
    }

    /// The zones of the table, as rows from its start: each row group of a chunk that has several, else the chunk.
    /// They ascend and cover the table.
    #[must_use]
    pub fn zones(&self) -> &[Range<u64>] {
        self.statistics.zone_rows.get_or_init(|| {
            let of_file = |(index, file): (usize, &Arc<ParquetFile>)| {
                let start = self.first_row(index);
                let zones = file.zones().to_vec().into_iter();
                zones.map(move |rows| start + rows.start..start + rows.end)
            };
            self.parquet_files().iter().enumerate().flat_map(of_file).collect()
        })
    }

    /// As [`Self::statistics`], with an entry per zone.
    ///
    /// # Errors
    /// If the statistics of a file cannot be understood.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn zone_statistics(&self, column: usize) -> Result<ChunkStatistics, TableError> {
        let row_counts = |file: &ParquetFile| {
            file.zones().iter().map(|rows| Some(rows.end - rows.start)).collect()
        };
        let concat = || self.concat(column, ParquetFile::zone_statistics, row_counts);
        self.statistics.zones.get_or_try_make(column, concat).cloned()
    }

    fn concat(
        &self,
        column: usize,
        stored: fn(&ParquetFile, usize) -> Result<&ChunkStatistics, TableError>,
        row_counts: fn(&ParquetFile) -> UInt64Array,
    ) -> Result<ChunkStatistics, TableError> {
        let data_type = self.data_type(column);
        let unknown = |error: ArrowError| TableError::Unsupported {
            file: Arc::clone(&self.parquet_files()[0].name),
            reason: format!("the statistics of column {column} cannot be put together ({error})"),
        };
        let mut parts = Vec::with_capacity(self.parquet_files().len());
        for (index, file) in self.parquet_files().iter().enumerate() {
            parts.push(match self.file_column(index, column) {
                Some(column) => {
                    let found = stored(file, column)?;
                    if found.min.data_type() == data_type {
                        found.clone()
                    } else {
                        found.cast(data_type)
                    }
                }
                None => {
                    let value = self.repeated_value(index, column);
                    ChunkStatistics::repeated(&value, row_counts(file)).map_err(unknown)?
                }
            });
        }
        ChunkStatistics::concat(&parts, data_type).map_err(unknown)
    }
}
