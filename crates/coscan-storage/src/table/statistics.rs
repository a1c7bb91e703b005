//! What a chunk may hold, without reading it: the least and greatest value and the number of nulls of each column.
//!
//! A chunk of whole row groups has their statistics folded together. A part of a split row group has those of the data
//! pages that it needs, or if the file has no column index those of the row group: true bounds, but wider than need be.

use std::sync::Arc;

use arrow::compute::{concat, take};
use arrow_array::{
    Array, ArrayRef, BooleanArray, UInt32Array, UInt64Array, new_empty_array, new_null_array,
};
use arrow_schema::{ArrowError, DataType};
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::{SortOrder, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::column_index::ColumnIndexMetaData;

use super::bounds::{Bounds, Folded, as_bounds};
use super::layout::{flat_leaf, page_locations, rows_of_data_page};
use super::pages::StoredChunk;
use super::panics::caught;
use super::types::{adapt, widens};
use super::{ParquetFile, TableError};

/// What is known of one column, with one entry a chunk in every array. Null means unknown. Bounds say nothing of NaN.
#[derive(Clone, Debug)]
pub struct ChunkStatistics {
    /// No value of the chunk is less. Of the column's type.
    pub min: ArrayRef,
    /// No value of the chunk is greater. Of the column's type.
    pub max: ArrayRef,
    /// The nulls of the chunk.
    pub null_count: UInt64Array,
    /// The rows of the chunk. Always known.
    pub row_count: UInt64Array,
}

impl ChunkStatistics {
    /// Of all chunks of several files, from those of each, in this order.
    pub(super) fn concat(parts: &[Self], data_type: &DataType) -> Result<Self, ArrowError> {
        let join = |pick: fn(&Self) -> &dyn Array, data_type: &DataType| {
            let arrays: Vec<_> = parts.iter().map(pick).collect();
            if arrays.is_empty() { Ok(new_empty_array(data_type)) } else { concat(&arrays) }
        };
        let counts = |pick: fn(&Self) -> &UInt64Array| parts.iter().flat_map(pick).collect();
        Ok(Self {
            min: join(|part| &*part.min, data_type)?,
            max: join(|part| &*part.max, data_type)?,
            null_count: counts(|part| &part.null_count),
            row_count: counts(|part| &part.row_count),
        })
    }

    /// The same of another type; bounds that do not stay bounds are unknown.
    pub(super) fn cast(&self, data_type: &DataType) -> Self {
        let own = self.min.data_type();
        let cast = |bounds| adapt(bounds, data_type).ok().filter(|_| widens(own, data_type));
        let (min, max) = (cast(&self.min), cast(&self.max));
        if let (Some(min), Some(max)) = (min, max) {
            return Self { min, max, ..self.clone() };
        }
        let count = self.row_count.len();
        Self {
            min: new_null_array(data_type, count),
            max: new_null_array(data_type, count),
            ..self.clone()
        }
    }

    /// Of chunks in which every row has this value, an array of one.
    pub(super) fn repeated(value: &ArrayRef, row_counts: UInt64Array) -> Result<Self, ArrowError> {
        let count = row_counts.len();
        let is_null = value.is_null(0);
        let bounds = take(value, &UInt32Array::from(vec![0; count]), None)?;
        Ok(Self {
            min: Arc::clone(&bounds),
            max: bounds,
            null_count: if is_null { row_counts.clone() } else { vec![0; count].into() },
            row_count: row_counts,
        })
    }

    /// What the arrays take in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let arrays: [&dyn Array; 4] = [&self.min, &self.max, &self.null_count, &self.row_count];
        arrays.iter().map(|array| array.get_array_memory_size()).sum()
    }
}

impl ParquetFile {
    /// What the footer says of a column in each chunk. Nothing is read; the answer is kept for the next call. Bounds of
    /// nested columns are unknown.
    ///
    /// # Errors
    /// If the statistics cannot be understood.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn statistics(&self, column: usize) -> Result<&ChunkStatistics, TableError> {
        let compute = || self.compute_statistics(&self.layout.chunks, column);
        self.statistics.get_or_try_make(column, compute)
    }

    /// Of chunks, or of what is stored like chunks.
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
                    Some(pages) => fold_pages(pages, part)?,
                    None => part_of_row_group(&row_groups, part)?,
                });
            }
        }
        Ok(folded)
    }
}

/// Where the statistics of one column of one file come from.
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
            // Null where the order in which they were found is not ours.
            arrow::compute::nullif(&values, &arrow::compute::not(&has_bounds)?)
        };
        Ok(Bounds {
            min: bounds(self.converter.row_group_mins(row_groups)?)?,
            max: bounds(self.converter.row_group_maxes(row_groups)?)?,
            null_count: self.converter.row_group_null_counts(row_groups)?,
            rows: row_groups.iter().map(|row_group| row_group.num_rows().cast_unsigned()).collect(),
        })
    }

    /// The bounds of the data pages of a row group, if the file has a column index for them.
    fn data_page_bounds(&self, row_group: usize) -> Result<Option<Bounds>, ParquetError> {
        let metadata = &self.file.metadata;
        let (Some(column_index), Some(offset_index), Some(locations)) = (
            metadata.column_index(),
            metadata.offset_index(),
            page_locations(metadata, row_group, self.leaf),
        ) else {
            return Ok(None);
        };
        let index = column_index.get(row_group).and_then(|columns| columns.get(self.leaf));
        match index {
            None | Some(ColumnIndexMetaData::NONE) => return Ok(None),
            Some(index) if index.num_pages() != locations.len() as u64 => return Ok(None),
            Some(_) => {}
        }
        let row_group_rows = metadata.row_group(row_group).num_rows().cast_unsigned();
        let rows = |page| {
            let rows = rows_of_data_page(locations, page, row_group_rows);
            rows.end - rows.start
        };
        let picked = [row_group];
        let mins = self.converter.data_page_mins(column_index, offset_index, &picked)?;
        let maxes = self.converter.data_page_maxes(column_index, offset_index, &picked)?;
        Ok(Some(Bounds {
            min: as_bounds(&mins, self.data_type)?,
            max: as_bounds(&maxes, self.data_type)?,
            null_count: self.converter.data_page_null_counts(
                column_index,
                offset_index,
                &picked,
            )?,
            rows: (0..locations.len()).map(rows).collect(),
        }))
    }
}

/// Folds the data pages that a part needs.
fn fold_pages(pages: &Bounds, part: &StoredChunk) -> Result<Folded, ArrowError> {
    let mut start = 0;
    let mut needed = Vec::new();
    let mut null_count = Some(0);
    for (page, rows) in pages.rows.iter().enumerate() {
        let end = start + rows;
        let shared_rows = end.min(part.rows.end).saturating_sub(start.max(part.rows.start));
        if shared_rows > 0 {
            needed.push(page);
            let nulls = pages.nulls_among(page, shared_rows);
            null_count = null_count.and_then(|count| Some(count + nulls?));
        }
        start = end;
    }
    Ok(Folded { null_count, ..pages.fold(needed.iter().copied())? })
}

/// What the statistics of a whole row group say of a part of it.
fn part_of_row_group(row_groups: &Bounds, part: &StoredChunk) -> Result<Folded, ArrowError> {
    let row_group = part.row_groups[0];
    let mut folded = row_groups.fold(std::iter::once(row_group))?;
    folded.null_count = row_groups.nulls_among(row_group, part.row_count());
    Ok(folded)
}

/// Whether the bounds are of the old kind, which compared all bytes and numbers as signed, and that order is not the
/// column's.
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
