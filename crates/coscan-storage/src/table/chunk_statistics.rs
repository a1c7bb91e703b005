//! The statistics of chunks or zones as arrays, an entry each.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow::compute::{concat, take};
use arrow_array::{Array, ArrayRef, UInt32Array, UInt64Array, new_empty_array, new_null_array};
use arrow_schema::{ArrowError, DataType};

use super::per_column::PerColumn;
use super::types::{adapt, widens};

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

/// The statistics of a table, each made when first asked for.
pub(super) struct TableStatistics {
    pub(super) chunks: PerColumn<ChunkStatistics>,
    pub(super) zones: PerColumn<ChunkStatistics>,
    pub(super) zone_rows: OnceLock<Vec<Range<u64>>>,
}

impl TableStatistics {
    pub(super) fn new(column_count: usize) -> Self {
        Self {
            chunks: PerColumn::new(column_count),
            zones: PerColumn::new(column_count),
            zone_rows: OnceLock::new(),
        }
    }
}
