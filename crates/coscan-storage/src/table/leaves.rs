//! The leaves of columns: Parquet stores a column chunk for each leaf of a nested column, and one for a flat column.

use std::ops::Range;

use parquet::file::metadata::ParquetMetaData;

/// The leaves of each top-level column.
pub(super) fn leaves_of_columns(metadata: &ParquetMetaData) -> Vec<Range<usize>> {
    let descriptor = metadata.file_metadata().schema_descr();
    let mut leaves_of_column = vec![0..0; descriptor.root_schema().get_fields().len()];
    for leaf in 0..descriptor.num_columns() {
        let leaves = &mut leaves_of_column[descriptor.get_column_root_idx(leaf)];
        let start = if leaves.end == 0 { leaf } else { leaves.start };
        *leaves = start..leaf + 1;
    }
    leaves_of_column
}

/// The only leaf of a column if every row has exactly one value or null in it, so that its data pages can be read on
/// their own.
pub(super) fn flat_leaf(metadata: &ParquetMetaData, leaves: &Range<usize>) -> Option<usize> {
    let descriptor = metadata.file_metadata().schema_descr();
    let is_flat = leaves.len() == 1 && descriptor.column(leaves.start).max_rep_level() == 0;
    is_flat.then_some(leaves.start)
}
