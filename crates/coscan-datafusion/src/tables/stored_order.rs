//! The stored order of a table, which its files declare in the metadata of their row groups.
//!
//! A row group declares its own order only. The bounds of values show whether one row group continues another, and only
//! for keys that are never null or NaN.

use std::cmp::Ordering;
use std::sync::Arc;

use coscan_storage::table::{ChunkStatistics, ParquetFile, ParquetTable};
use datafusion::arrow::array::{ArrayRef, make_comparator};
use datafusion::arrow::compute::SortOptions;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use log::debug;
use parquet::file::metadata::SortingColumn;

use crate::planning::nan::may_be_nan;

/// The order of all row groups, one after another, if each of them declares it.
pub(crate) fn of_files(table: &ParquetTable) -> Option<LexOrdering> {
    let mut keys = common_keys(table)?;
    while !keys.is_empty() {
        match continues(table, &keys) {
            Ok(true) => return LexOrdering::new(keys.iter().map(|key| key.expression(table))),
            Ok(false) => {}
            Err(error) => {
                debug!("the stored order is not used: {error}");
                return None;
            }
        }
        keys.pop();
    }
    None
}

/// A column by which row groups are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    /// The index of the column in the table's schema.
    column: usize,
    options: SortOptions,
}

impl Key {
    fn expression(&self, table: &ParquetTable) -> PhysicalSortExpr {
        let column = Column::new(table.schema().field(self.column).name(), self.column);
        PhysicalSortExpr::new(Arc::new(column), self.options)
    }
}

/// The leading keys that all row groups have in common.
fn common_keys(table: &ParquetTable) -> Option<Vec<Key>> {
    let mut common: Option<Vec<Key>> = None;
    for (position, file) in table.stored_files().iter().enumerate() {
        for row_group in file.metadata().row_groups() {
            let sorted = row_group.sorting_columns()?;
            let keys = sorted.iter().map_while(|sorted| key_of(table, position, file, sorted));
            match &mut common {
                None => common = Some(keys.collect()),
                Some(common) => {
                    let alike = common.iter().zip(keys).take_while(|(a, b)| *a == b).count();
                    common.truncate(alike);
                }
            }
        }
    }
    common
}

/// Converts a sorting column of a file to a key of the table, if the table has the same type. Returns `None` for types
/// with NaN, which writers order differently, and for nested types, which have no order.
fn key_of(
    table: &ParquetTable,
    position: usize,
    file: &ParquetFile,
    sorted: &SortingColumn,
) -> Option<Key> {
    let descriptor = file.metadata().file_metadata().schema_descr();
    let leaf = usize::try_from(sorted.column_idx).ok()?;
    if leaf >= descriptor.num_columns() {
        return None;
    }
    let in_file = descriptor.get_column_root_idx(leaf);
    let file_type = file.fields()[in_file].data_type();
    let mut columns = 0..table.schema().fields().len();
    let column = columns.find(|&column| table.file_column(position, column) == Some(in_file))?;
    let data_type = table.schema().field(column).data_type();
    let is_ordered = data_type == file_type && !data_type.is_nested() && !may_be_nan(data_type);
    let options = SortOptions { descending: sorted.descending, nulls_first: sorted.nulls_first };
    is_ordered.then_some(Key { column, options })
}

/// Whether each row group begins at or after the end of the one before it.
fn continues(table: &ParquetTable, keys: &[Key]) -> Result<bool> {
    let boundaries = boundaries(table);
    if boundaries.is_empty() {
        return Ok(true);
    }
    let stored_zones = table.stored_files().iter().map(|file| file.zones().len()).sum();
    let mut comparisons = Vec::with_capacity(keys.len());
    for key in keys {
        let statistics = table.zone_statistics(key.column).map_err(crate::error::from_table)?;
        let ChunkStatistics { min, max, null_count, .. } = statistics;
        if null_count.iter().take(stored_zones).any(|count| count != Some(0)) {
            return Ok(false);
        }
        let (first, last): (ArrayRef, ArrayRef) =
            if key.options.descending { (max, min) } else { (min, max) };
        let compare = make_comparator(&last, &first, key.options)?;
        comparisons.push((first, last, compare));
    }
    Ok(boundaries.into_iter().all(|next| {
        let mut ordering = Ordering::Equal;
        for (first, last, compare) in &comparisons {
            if last.is_null(next - 1) || first.is_null(next) {
                return false;
            }
            ordering = ordering.then_with(|| compare(next - 1, next));
        }
        ordering.is_le()
    }))
}

/// The first zones of row groups, except the first zone of the table.
fn boundaries(table: &ParquetTable) -> Vec<usize> {
    let row_groups = table.stored_files().iter().enumerate().flat_map(|(position, file)| {
        (0..file.zones().len()).map(move |zone| (position, file.row_group_of_zone(zone)))
    });
    let row_groups: Vec<_> = row_groups.collect();
    (1..row_groups.len()).filter(|&zone| row_groups[zone - 1] != row_groups[zone]).collect()
}
