//! Statistics of chunks and zones from the footer of a file: minimum, maximum and number of nulls of each column.
//!
//! A chunk of whole row groups has their statistics folded together. A part of a split row group has those of the
//! data pages that it needs or, if the file has no column index, those of the row group: true bounds, but not tight.

use std::ops::Range;
use std::sync::Arc;

use arrow::compute::concat;
use arrow_array::{Array, ArrayRef, BooleanArray, new_empty_array};
use arrow_schema::{ArrowError, DataType};
use coscan_core::ChunkIndex;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::{SortOrder, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::column_index::ColumnIndexMetaData;

use super::bounds::{Bounds, Folded, as_bounds};
use super::leaves::flat_leaf;
use super::pages::StoredChunk;
use super::panics::caught;
use super::row_ranges::{DataPages, row_count};
use super::{ChunkStatistics, ParquetFile, TableError};

impl ParquetFile {
    /// The statistics of a column, an entry per chunk, from the footer. Nothing is read, and the result is kept.
    /// Bounds of nested columns are unknown.
    ///
    /// # Errors
    /// If the statistics cannot be understood.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn statistics(&self, column: usize) -> Result<&ChunkStatistics, TableError> {
        let compute = || self.compute_statistics(&self.layout.chunks, column);
        self.made(&self.statistics, column, ChunkStatistics::memory_bytes, compute)
    }

    /// Whether a column is a flat one of whole numbers of at most 64 bits, which readers and writers compare alike.
    ///
    /// # Panics
    /// If there is no such column.
    #[must_use]
    pub fn stores_whole_numbers(&self, column: usize) -> bool {
        let leaf = flat_leaf(&self.metadata, &self.leaves(column));
        let descriptor = self.metadata.file_metadata().schema_descr();
        let physical = leaf.map(|leaf| descriptor.column(leaf).physical_type());
        matches!(physical, Some(PhysicalType::INT32 | PhysicalType::INT64))
    }

    /// The zones of the file, as rows from its start: each row group of a chunk that has several, else the chunk.
    /// They ascend and cover the file.
    #[must_use]
    pub fn zones(&self) -> &[Range<u64>] {
        &self.zones.rows
    }

    /// The number of zones of a chunk.
    pub(super) fn zone_count(&self, chunk: ChunkIndex) -> usize {
        let chunk = self.chunk(chunk);
        if chunk.is_part { 1 } else { chunk.row_groups.len() }
    }

    /// As [`Self::statistics`], with an entry per zone.
    ///
    /// # Errors
    /// If the statistics cannot be understood.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn zone_statistics(&self, column: usize) -> Result<&ChunkStatistics, TableError> {
        let compute = || self.compute_statistics(&self.zones.stored, column);
        self.made(&self.zones.statistics, column, ChunkStatistics::memory_bytes, compute)
    }

    /// The statistics of chunks or zones.
    pub(super) fn compute_statistics(
        &self,
        chunks: &[StoredChunk],
        column: usize,
    ) -> Result<ChunkStatistics, TableError> {
        let found = caught(|| {
            let folded = self.fold(chunks, column)?;
            let data_type = self.field(column).data_type();
            let join = |pick: fn(&Folded) -> &ArrayRef| {
                let arrays: Vec<&dyn Array> = folded.iter().map(|folded| &**pick(folded)).collect();
                if arrays.is_empty() { Ok(new_empty_array(data_type)) } else { concat(&arrays) }
            };
            Ok::<_, ParquetError>(ChunkStatistics {
                min: join(|folded| &folded.min)?,
                max: join(|folded| &folded.max)?,
                null_count: folded.iter().map(|folded| folded.null_count).collect(),
                row_count: chunks.iter().map(|chunk| Some(chunk.row_count())).collect(),
            })
        });
        found.map_err(|reason| TableError::Corrupt {
            file: Arc::clone(&self.name),
            reason: format!("its statistics cannot be read ({reason})"),
        })
    }

    fn fold(&self, chunks: &[StoredChunk], column: usize) -> Result<Vec<Folded>, ParquetError> {
        let field = self.field(column);
        let data_type = field.data_type();
        let leaf = flat_leaf(&self.metadata, &self.leaves(column));
        let leaf = leaf.filter(|_| !data_type.is_nested());
        let Some(leaf) = leaf else {
            return Ok(chunks.iter().map(|_| Folded::unknown(data_type)).collect());
        };
        let descriptor = self.metadata.file_metadata().schema_descr();
        let converter = StatisticsConverter::from_column_index(leaf, field, descriptor)?
            .with_missing_null_counts_as_zero(false);
        let source = Source { file: self, leaf, data_type, converter };
        let row_groups = source.row_group_bounds()?;
        let mut folded = Vec::with_capacity(chunks.len());
        for chunks in chunks.chunk_by(|a, b| a.is_part && a.row_groups == b.row_groups) {
            if !chunks[0].is_part {
                folded.push(row_groups.fold(chunks[0].row_groups.iter().copied())?);
                continue;
            }
            let pages = source.data_page_bounds(chunks[0].row_groups[0])?;
            for part in chunks {
                folded.push(match &pages {
                    Some((data_pages, bounds)) => fold_pages(*data_pages, bounds, part)?,
                    None => part_of_row_group(&row_groups, part)?,
                });
            }
        }
        Ok(folded)
    }
}

/// The statistics of one flat column in the footer of a file.
struct Source<'a> {
    file: &'a ParquetFile,
    leaf: usize,
    data_type: &'a DataType,
    converter: StatisticsConverter<'a>,
}

impl Source<'_> {
    fn row_group_bounds(&self) -> Result<Bounds, ParquetError> {
        let row_groups = self.file.metadata.row_groups();
        let has_bounds: BooleanArray = row_groups
            .iter()
            .map(|row_group| Some(!has_wrong_order(row_group.column(self.leaf))))
            .collect();
        let bounds = |values: ArrayRef| {
            let values = as_bounds(&values, self.data_type)?;
            // The bounds are unknown if the writer compared values in another order.
            arrow::compute::nullif(&values, &arrow::compute::not(&has_bounds)?)
        };
        Ok(Bounds {
            min: bounds(self.converter.row_group_mins(row_groups)?)?,
            max: bounds(self.converter.row_group_maxes(row_groups)?)?,
            null_count: self.converter.row_group_null_counts(row_groups)?,
            rows: (0..row_groups.len())
                .map(|row_group| row_count(&self.file.metadata, row_group))
                .collect(),
        })
    }

    /// The data pages of a row group with their bounds, if the file has a column index for them.
    fn data_page_bounds(
        &self,
        row_group: usize,
    ) -> Result<Option<(DataPages<'_>, Bounds)>, ParquetError> {
        let metadata = &self.file.metadata;
        let (Some(column_index), Some(offset_index), Some(data_pages)) = (
            metadata.column_index(),
            metadata.offset_index(),
            DataPages::of(metadata, row_group, self.leaf),
        ) else {
            return Ok(None);
        };
        let index = column_index.get(row_group).and_then(|columns| columns.get(self.leaf));
        match index {
            None | Some(ColumnIndexMetaData::NONE) => return Ok(None),
            Some(index) if index.num_pages() != data_pages.count() as u64 => return Ok(None),
            Some(_) => {}
        }
        let rows = |data_page| {
            let rows = data_pages.rows(data_page..data_page + 1);
            rows.end - rows.start
        };
        let picked = [row_group];
        let mins = self.converter.data_page_mins(column_index, offset_index, &picked)?;
        let maxes = self.converter.data_page_maxes(column_index, offset_index, &picked)?;
        let null_count =
            self.converter.data_page_null_counts(column_index, offset_index, &picked)?;
        let bounds = Bounds {
            min: as_bounds(&mins, self.data_type)?,
            max: as_bounds(&maxes, self.data_type)?,
            null_count,
            rows: (0..data_pages.count()).map(rows).collect(),
        };
        Ok(Some((data_pages, bounds)))
    }
}

/// Folds the data pages that a part needs.
fn fold_pages(
    data_pages: DataPages<'_>,
    bounds: &Bounds,
    part: &StoredChunk,
) -> Result<Folded, ArrowError> {
    let mut needed = Vec::new();
    let mut null_count = Some(0);
    for data_page in 0..data_pages.count() {
        let rows = data_pages.rows(data_page..data_page + 1);
        let shared_rows =
            rows.end.min(part.rows.end).saturating_sub(rows.start.max(part.rows.start));
        if shared_rows > 0 {
            needed.push(data_page);
            let nulls = bounds.nulls_among(data_page, shared_rows);
            null_count = null_count.and_then(|count| Some(count + nulls?));
        }
    }
    Ok(Folded { null_count, ..bounds.fold(needed.iter().copied())? })
}

/// The statistics of a part of a row group that follow from those of the row group.
fn part_of_row_group(row_groups: &Bounds, part: &StoredChunk) -> Result<Folded, ArrowError> {
    let row_group = part.row_groups[0];
    let mut folded = row_groups.fold(std::iter::once(row_group))?;
    folded.null_count = row_groups.nulls_among(row_group, part.row_count());
    Ok(folded)
}

/// Whether the bounds are deprecated ones, for which bytes and numbers were compared as signed, and that is not the
/// order of the column (Parquet format, `Statistics` in `parquet.thrift`).
fn has_wrong_order(column: &ColumnChunkMetaData) -> bool {
    let is_number = matches!(
        column.column_type(),
        PhysicalType::BOOLEAN
            | PhysicalType::INT32
            | PhysicalType::INT64
            | PhysicalType::FLOAT
            | PhysicalType::DOUBLE
    );
    let is_signed = is_number && column.column_descr().sort_order() == SortOrder::SIGNED;
    column.statistics().is_some_and(|statistics| statistics.is_min_max_deprecated()) && !is_signed
}
