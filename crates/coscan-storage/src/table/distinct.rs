//! The number of distinct values of a column, estimated from the footer.

use arrow::compute::cast;
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use coscan_core::{ChunkIndex, Index};

use super::ParquetFile;

/// The bytes of a value in a compressed dictionary, of short texts or numbers.
const DICTIONARY_VALUE_BYTES: u64 = 4;

impl ParquetFile {
    /// An estimate of the number of distinct values of a flat column of a chunk: at most as many as whole numbers are between
    /// its bounds, and as fit into its dictionaries. `None` if it has neither.
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
            let bounds = cast(&bounds.slice(chunk.as_usize(), 1), &DataType::Int64).ok()?;
            bounds.is_valid(0).then(|| bounds.as_primitive::<Int64Type>().value(0))
        };
        let (min, max) = (bound(&statistics.min)?, bound(&statistics.max)?);
        Some(max.abs_diff(min).saturating_add(1))
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
