//! Bounds of stored units (row groups, or data pages of one row group), and how to fold those of a chunk into one.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::make_comparator;
use arrow::compute::cast;
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray, UInt64Array, new_null_array};
use arrow_schema::{ArrowError, DataType, SortOptions};

/// Statistics of units: an entry per unit, null where unknown.
pub(super) struct Bounds {
    pub(super) min: ArrayRef,
    pub(super) max: ArrayRef,
    pub(super) null_count: UInt64Array,
    pub(super) rows: Vec<u64>,
}

/// Statistics of one chunk.
pub(super) struct Folded {
    /// The minimum as an array of one value, null if unknown.
    pub(super) min: ArrayRef,
    /// The maximum as an array of one value, null if unknown.
    pub(super) max: ArrayRef,
    pub(super) null_count: Option<u64>,
}

impl Folded {
    pub(super) fn unknown(data_type: &DataType) -> Self {
        Self {
            min: new_null_array(data_type, 1),
            max: new_null_array(data_type, 1),
            null_count: None,
        }
    }
}

impl Bounds {
    /// The bounds of some units together. They are unknown if those of any unit are; units with only nulls do not
    /// count.
    pub(super) fn fold(
        &self,
        units: impl Iterator<Item = usize> + Clone,
    ) -> Result<Folded, ArrowError> {
        let min = self.extreme(&self.min, units.clone(), Ordering::Less)?;
        let max = self.extreme(&self.max, units.clone(), Ordering::Greater)?;
        let null_count = |unit| self.null_count.is_valid(unit).then(|| self.null_count.value(unit));
        Ok(Folded {
            min: entry(&self.min, min),
            max: entry(&self.max, max),
            null_count: units.map(null_count).sum(),
        })
    }

    /// The unit with the minimum or maximum.
    fn extreme(
        &self,
        values: &ArrayRef,
        units: impl Iterator<Item = usize>,
        preferred: Ordering,
    ) -> Result<Option<usize>, ArrowError> {
        let compare = make_comparator(values, values, SortOptions::default())?;
        let mut best = None;
        for unit in units {
            if self.has_only_nulls(unit) {
                continue;
            }
            if values.is_null(unit) {
                return Ok(None);
            }
            if best.is_none_or(|best| compare(unit, best) == preferred) {
                best = Some(unit);
            }
        }
        Ok(best)
    }

    fn has_only_nulls(&self, unit: usize) -> bool {
        self.null_count.is_valid(unit) && self.null_count.value(unit) == self.rows[unit]
    }

    /// The number of nulls among some rows of a unit, if it follows from that of the unit.
    pub(super) fn nulls_among(&self, unit: usize, rows: u64) -> Option<u64> {
        match self.null_count.is_valid(unit).then(|| self.null_count.value(unit))? {
            0 => Some(0),
            _ if self.has_only_nulls(unit) => Some(rows),
            count => (rows == self.rows[unit]).then_some(count),
        }
    }
}

fn entry(values: &ArrayRef, unit: Option<usize>) -> ArrayRef {
    match unit {
        Some(unit) => values.slice(unit, 1),
        None => new_null_array(values.data_type(), 1),
    }
}

/// The bounds as the column's type, with NaN as unknown: an old writer that stored NaN gives no bound of the other
/// values. Bounds of dictionaries are plain values.
pub(super) fn as_bounds(values: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    let values = match values.data_type() == data_type {
        true => Arc::clone(values),
        false => cast(values, data_type)?,
    };
    Ok(match data_type {
        DataType::Float16 => without::<Float16Type>(&values, |value| value.is_nan()),
        DataType::Float32 => without::<Float32Type>(&values, f32::is_nan),
        DataType::Float64 => without::<Float64Type>(&values, f64::is_nan),
        _ => values,
    })
}

fn without<T: ArrowPrimitiveType>(
    values: &ArrayRef,
    is_bad: impl Fn(T::Native) -> bool,
) -> ArrayRef {
    let values = values.as_primitive::<T>().iter();
    Arc::new(
        values.map(|value| value.filter(|&value| !is_bad(value))).collect::<PrimitiveArray<T>>(),
    )
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;

    #[test]
    fn unknown_in_one_unit_is_unknown_together() {
        // Known, unknown, nulls only, known.
        let bounds = Bounds {
            min: Arc::new(Int64Array::from(vec![Some(5), None, None, Some(3)])),
            max: Arc::new(Int64Array::from(vec![Some(9), None, None, Some(4)])),
            null_count: UInt64Array::from(vec![Some(1), None, Some(10), Some(0)]),
            rows: vec![10; 4],
        };
        let fold = |units: &[usize]| {
            let folded = bounds.fold(units.iter().copied()).expect("numbers compare");
            let value = |array: &ArrayRef| {
                array.as_primitive::<arrow_array::types::Int64Type>().iter().next().flatten()
            };
            (value(&folded.min), value(&folded.max), folded.null_count)
        };
        assert_eq!(fold(&[0, 2, 3]), (Some(3), Some(9), Some(11)));
        assert_eq!(fold(&[0, 1]), (None, None, None));
        assert_eq!(fold(&[2]), (None, None, Some(10)));
        assert_eq!(bounds.nulls_among(0, 5), None);
        assert_eq!(bounds.nulls_among(0, 10), Some(1));
        assert_eq!(bounds.nulls_among(2, 5), Some(5));
        assert_eq!(bounds.nulls_among(3, 5), Some(0));
    }
}
