//! The number of distinct values of a column, estimated from the footer.

use arrow::compute::cast;
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_schema::{DECIMAL128_MAX_PRECISION, DataType};
use coscan_core::{ChunkIndex, Index};

use super::ParquetFile;

/// The assumed bytes of a value in a compressed dictionary, of short texts or numbers.
const DICTIONARY_VALUE_BYTES: u64 = 4;

impl ParquetFile {
    /// An estimate of the number of distinct values of a flat column of a chunk: at most the whole numbers (of decimals, their
    /// last digits) between its bounds, and about as many as fit into its dictionaries. `None` if it has neither.
    ///
    /// # Panics
    /// If there is no such chunk or column.
    #[must_use]
    pub fn distinct_values_estimate(&self, chunk: ChunkIndex, column: usize) -> Option<u64> {
        let in_bounds = self.whole_numbers_between_bounds(chunk, column);
        in_bounds.into_iter().chain(self.values_in_dictionaries(chunk, column)).min()
    }

    fn whole_numbers_between_bounds(&self, chunk: ChunkIndex, column: usize) -> Option<u64> {
        if !self.stores_whole_numbers(column) {
            return None;
        }
        let statistics = self.statistics(column).ok()?;
        let bound = |bounds: &dyn Array| {
            let bounds = bounds.slice(chunk.as_usize(), 1);
            let scale = match bounds.data_type() {
                DataType::Decimal32(_, scale)
                | DataType::Decimal64(_, scale)
                | DataType::Decimal128(_, scale) => *scale,
                _ => 0,
            };
            let bounds = match bounds.data_type() {
                data_type if data_type.is_decimal() => bounds,
                _ => cast(&bounds, &DataType::Int64).ok()?,
            };
            let bounds =
                cast(&bounds, &DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale)).ok()?;
            bounds.is_valid(0).then(|| bounds.as_primitive::<Decimal128Type>().value(0))
        };
        let (min, max) = (bound(&statistics.min)?, bound(&statistics.max)?);
        Some(u64::try_from(max.abs_diff(min)).unwrap_or(u64::MAX).saturating_add(1))
    }

    fn values_in_dictionaries(&self, chunk: ChunkIndex, column: usize) -> Option<u64> {
        let leaves = self.leaves(column);
        let row_groups = self.chunk(chunk).row_groups.iter();
        let bytes = row_groups.map(|&row_group| {
            let column = self.metadata.row_group(row_group).column(leaves.start);
            let bytes = column.data_page_offset().checked_sub(column.dictionary_page_offset()?)?;
            u64::try_from(bytes).ok()
        });
        let bytes = bytes.sum::<Option<u64>>().filter(|_| leaves.len() == 1)?;
        Some(bytes / DICTIONARY_VALUE_BYTES + 1)
    }
}
