//! Statistics of all chunks of a table, from those of its files.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::UInt64Array;
use arrow_schema::ArrowError;
use coscan_core::{ChunkIndex, Index};

use super::observed::may_hold_nan;
use super::{ChunkStatistics, ParquetFile, ParquetTable, TableError};

impl ParquetTable {
    /// The statistics of a column, an entry per chunk, from the footers. Nothing is read, and the result is kept.
    /// Bounds are unknown for nested columns, for columns that are read as a type that orders values differently, and
    /// where the column has other values than the file. Deleted rows still count.
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
        let stored = self.base.statistics.chunks.get_or_try_make(column, concat)?.clone();
        let layout = self.layout();
        self.with_unknown(column, stored, layout.chunks().map(|chunk| layout.rows(chunk)))
            .map_err(|error| self.unknown(column, &error))
    }

    /// The zones of the table, as rows from its start: each row group of a chunk that has several, else the chunk.
    /// They ascend and cover the table.
    #[must_use]
    pub fn zones(&self) -> &[Range<u64>] {
        self.base.statistics.zone_rows.get_or_init(|| {
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
        let stored = self.base.statistics.zones.get_or_try_make(column, concat)?.clone();
        self.with_unknown(column, stored, self.zones().iter().cloned())
            .map_err(|error| self.unknown(column, &error))
    }

    /// Whether the rows of a row group of a file were found not to be in the order of a column, see
    /// [`ParquetFile::is_unordered`].
    ///
    /// # Panics
    /// If there is no such file or column.
    #[must_use]
    pub fn is_unordered(&self, file: usize, column: usize, is_descending: bool) -> bool {
        let in_file = self.file_column(file, column);
        in_file.is_some_and(|column| self.parquet_files()[file].is_unordered(column, is_descending))
    }

    /// Whether a column is known to hold no NaN in a chunk, see [`ParquetFile::is_without_nan`].
    ///
    /// # Panics
    /// If there is no such chunk or column.
    #[must_use]
    pub fn is_without_nan(&self, chunk: ChunkIndex, column: usize) -> bool {
        if self.chunk_has_new_values(chunk, column) {
            return false;
        }
        let (file, chunk) = self.place_of(chunk);
        match self.file_column(file, column) {
            Some(column) => self.parquet_files()[file].is_without_nan(chunk, column),
            None => !may_hold_nan(&self.repeated_value(file, column)),
        }
    }

    /// Whether a column is known to hold no NaN, for each chunk. See [`ParquetFile::is_without_nan`].
    ///
    /// # Panics
    /// If there is no such column.
    #[must_use]
    pub fn chunks_without_nan(&self, column: usize) -> Vec<bool> {
        self.without_nan(column, |_, _| 1)
    }

    /// As [`Self::chunks_without_nan`], for each zone.
    ///
    /// # Panics
    /// If there is no such column.
    #[must_use]
    pub fn zones_without_nan(&self, column: usize) -> Vec<bool> {
        self.without_nan(column, ParquetFile::zone_count)
    }

    /// The flag of each chunk, repeated `count` times.
    fn without_nan(
        &self,
        column: usize,
        count: fn(&ParquetFile, ChunkIndex) -> usize,
    ) -> Vec<bool> {
        let mut without_nan = Vec::new();
        for chunk in self.layout().chunks() {
            let (file, in_file) = self.place_of(chunk);
            let count = count(&self.parquet_files()[file], in_file);
            without_nan.extend(std::iter::repeat_n(self.is_without_nan(chunk, column), count));
        }
        without_nan
    }

    fn unknown(&self, column: usize, error: &ArrowError) -> TableError {
        let name = self.schema().field(column).name();
        TableError::Unsupported {
            file: Arc::clone(&self.parquet_files()[0].name),
            reason: format!("the statistics of column `{name}` cannot be put together ({error})"),
        }
    }

    fn concat(
        &self,
        column: usize,
        stored: fn(&ParquetFile, usize) -> Result<&ChunkStatistics, TableError>,
        row_counts: fn(&ParquetFile) -> UInt64Array,
    ) -> Result<ChunkStatistics, TableError> {
        let data_type = self.data_type(column);
        let unknown = |error: ArrowError| self.unknown(column, &error);
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
                None if self.is_computed(index, column) => {
                    ChunkStatistics::unknown(data_type, row_counts(file))
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
