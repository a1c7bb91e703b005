//! The statistics of chunks or zones as arrays.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow::compute::{concat, nullif, take};
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, UInt32Array, UInt64Array, new_empty_array, new_null_array,
};
use arrow_schema::{ArrowError, DataType};

use super::per_column::PerColumn;
use super::types::{adapt, widens};

/// The statistics of one column: arrays with an entry per chunk or zone. Null means unknown. Bounds ignore NaN.
#[derive(Clone, Debug)]
pub struct ChunkStatistics {
    /// A lower bound of the values, of the column's type.
    pub min: ArrayRef,
    /// An upper bound of the values, of the column's type.
    pub max: ArrayRef,
    /// The number of nulls.
    pub null_count: UInt64Array,
    /// The number of rows, always known.
    pub row_count: UInt64Array,
}

impl ChunkStatistics {
    /// The statistics of several files one after the other.
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

    /// The statistics as another type. Bounds are unknown if the type orders values differently.
    pub(super) fn cast(&self, data_type: &DataType) -> Self {
        let stored_type = self.min.data_type();
        let cast =
            |bounds| adapt(bounds, data_type).ok().filter(|_| widens(stored_type, data_type));
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

    /// The statistics of chunks in which every row has the same value, an array of one.
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

    /// The statistics of chunks of which nothing but the number of rows is known.
    pub(super) fn unknown(data_type: &DataType, row_counts: UInt64Array) -> Self {
        let count = row_counts.len();
        let bounds = new_null_array(data_type, count);
        let null_count = UInt64Array::new_null(count);
        Self { min: Arc::clone(&bounds), max: bounds, null_count, row_count: row_counts }
    }

    /// The same statistics, unknown where a flag is set, but for the numbers of rows.
    pub(super) fn without(&self, unknown: &BooleanArray) -> Result<Self, ArrowError> {
        if unknown.true_count() == 0 {
            return Ok(self.clone());
        }
        Ok(Self {
            min: nullif(&self.min, unknown)?,
            max: nullif(&self.max, unknown)?,
            null_count: nullif(&self.null_count, unknown)?.as_primitive().clone(),
            row_count: self.row_count.clone(),
        })
    }

    /// The statistics of some chunks or zones, by their positions.
    ///
    /// # Errors
    /// If there is no such position.
    pub fn take(&self, positions: &UInt64Array) -> Result<Self, ArrowError> {
        let counts = |counts: &UInt64Array| {
            Ok::<_, ArrowError>(take(counts, positions, None)?.as_primitive().clone())
        };
        Ok(Self {
            min: take(&self.min, positions, None)?,
            max: take(&self.max, positions, None)?,
            null_count: counts(&self.null_count)?,
            row_count: counts(&self.row_count)?,
        })
    }

    /// The memory of the arrays in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let arrays: [&dyn Array; 4] = [&self.min, &self.max, &self.null_count, &self.row_count];
        arrays.iter().map(|array| array.get_array_memory_size()).sum()
    }
}

/// The statistics of a table, made on demand.
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
