//! The memory of decoded columns, estimated from the footer.

use arrow_schema::DataType;
use coscan_core::ChunkIndex;
use parquet::basic::Type as PhysicalType;
use parquet::file::metadata::ColumnChunkMetaData;

use super::ParquetFile;
use super::pages::StoredChunk;
use super::row_ranges::row_count;

/// The size of a view, which a string or binary takes besides its bytes. An offset takes less.
const VIEW_BYTES: u64 = 16;
/// Rows per byte of a validity bitmap.
const ROWS_PER_BITMAP_BYTE: u64 = 8;

impl ParquetFile {
    /// The estimated size in bytes of the Arrow arrays of a column of a chunk, rather too high than too low.
    ///
    /// The estimate is exact, except for padding, for flat columns of fixed width. A string counts as a view, and the
    /// bytes of all strings as encoded, since arrays of views share the dictionary.
    ///
    /// # Panics
    /// If there is no such chunk or column.
    #[must_use]
    pub fn decoded_bytes_estimate(&self, chunk: ChunkIndex, column: usize) -> u64 {
        self.decoded_bytes_estimate_as(chunk, column, self.field(column).data_type())
    }

    /// The estimate for a column that is decoded as this type.
    pub(super) fn decoded_bytes_estimate_as(
        &self,
        chunk: ChunkIndex,
        column: usize,
        data_type: &DataType,
    ) -> u64 {
        let stored = self.chunk(chunk);
        let mut bytes = 0_u64;
        for &row_group in &stored.row_groups {
            let row_group_rows = row_count(&self.metadata, row_group);
            for leaf in self.leaves(column) {
                let column_chunk = self.metadata.row_group(row_group).column(leaf);
                let leaf_bytes = leaf_bytes(column_chunk, data_type);
                bytes = part_of(leaf_bytes, stored, row_group_rows).saturating_add(bytes);
            }
        }
        bytes
    }
}

/// The estimated size in bytes of rows with the same value.
pub(super) fn repeated_bytes_estimate(rows: u64, data_type: &DataType) -> u64 {
    let width = match data_type {
        DataType::Dictionary(key, _) => key.primitive_width(),
        data_type => data_type.primitive_width(),
    };
    let width = width.map_or(VIEW_BYTES, |width| width as u64);
    rows.saturating_mul(width).saturating_add(rows.div_ceil(ROWS_PER_BITMAP_BYTE))
}

/// The share of a split row group that a part takes, rounded up.
fn part_of(bytes: u64, chunk: &StoredChunk, row_group_rows: u64) -> u64 {
    if !chunk.is_part || row_group_rows == 0 {
        return bytes;
    }
    let part = u128::from(bytes) * u128::from(chunk.row_count());
    u64::try_from(part.div_ceil(u128::from(row_group_rows))).unwrap_or(u64::MAX)
}

fn leaf_bytes(column: &ColumnChunkMetaData, root_type: &DataType) -> u64 {
    let value_count = column.num_values().max(0).cast_unsigned();
    let encoded_bytes = column.uncompressed_size().max(0).cast_unsigned();
    let descriptor = column.column_descr();
    // The root's type is the leaf's unless the column is nested.
    let fixed_width = root_type.primitive_width().map(|width| width as u64);
    let values_bytes = match (root_type, column.column_type()) {
        (DataType::Dictionary(key, _), _) => {
            let width = key.primitive_width().unwrap_or(8) as u64;
            value_count.saturating_mul(width).saturating_add(encoded_bytes)
        }
        (_, PhysicalType::BYTE_ARRAY) if fixed_width.is_none() => {
            let bytes =
                column.unencoded_byte_array_data_bytes().unwrap_or(0).max(0).cast_unsigned();
            let is_view = matches!(root_type, DataType::Utf8View | DataType::BinaryView);
            let bytes = if is_view { encoded_bytes } else { bytes.max(encoded_bytes) };
            value_count.saturating_mul(VIEW_BYTES).saturating_add(bytes)
        }
        (_, PhysicalType::BOOLEAN) => value_count.div_ceil(ROWS_PER_BITMAP_BYTE),
        (_, PhysicalType::FIXED_LEN_BYTE_ARRAY) => {
            // Decimals are at least 16 bytes wide in Arrow, whatever Parquet stores.
            let width = descriptor.type_length().max(0).cast_unsigned().into();
            value_count.saturating_mul(fixed_width.unwrap_or(if root_type.is_nested() {
                VIEW_BYTES.max(width)
            } else {
                width
            }))
        }
        (_, PhysicalType::INT96) => value_count.saturating_mul(8),
        // Nested decimals may be wider in Arrow than the 4 or 8 bytes of Parquet.
        (_, PhysicalType::INT32 | PhysicalType::FLOAT) => {
            value_count.saturating_mul(fixed_width.unwrap_or(4))
        }
        (_, _) => value_count.saturating_mul(fixed_width.unwrap_or(8)),
    };
    let level_count = u64::from(descriptor.max_rep_level().max(0).cast_unsigned());
    let offsets_bytes =
        level_count.saturating_mul(value_count).saturating_mul(size_of::<i32>() as u64);
    let validity_count = u64::from(descriptor.max_def_level().max(0).cast_unsigned());
    let validity_bytes = validity_count.saturating_mul(value_count.div_ceil(ROWS_PER_BITMAP_BYTE));
    values_bytes.saturating_add(offsets_bytes).saturating_add(validity_bytes)
}
