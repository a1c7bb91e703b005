//! Files with pages of one size that cannot be compressed.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch};
use coscan_runtime::storage::table::FileOptions;
use coscan_testing::parquet_file;
use parquet::file::properties::WriterProperties;

/// The number of files. Each is one extent, so that both servers own some of them.
pub(crate) const FILES: usize = 32;
const FILE_BYTES: usize = 8 << 20;
pub(crate) const COLUMNS: usize = 4;
const VALUE_BYTES: usize = 4 << 10;

pub(crate) fn write(directory: &Path, page_bytes: usize) {
    let rows = page_bytes / VALUE_BYTES;
    let mut number = 1_u64;
    let mut random = || {
        let words = (0..VALUE_BYTES / 8).map(|_| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            number
        });
        words.flat_map(u64::to_le_bytes).collect::<Vec<u8>>()
    };
    let column = || {
        let values: Vec<_> = (0..rows).map(|_| random()).collect();
        Arc::new(BinaryArray::from_iter_values(values)) as ArrayRef
    };
    let columns: Vec<_> = std::iter::repeat_with(column).take(COLUMNS).collect();
    let names = ["a", "b", "c", "d"];
    let row_group = RecordBatch::try_from_iter(names.into_iter().zip(columns)).unwrap();
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_max_row_group_row_count(Some(rows))
        .set_data_page_size_limit(page_bytes * 2)
        .build();
    let row_groups = vec![row_group; FILE_BYTES / (page_bytes * COLUMNS)];
    let file = parquet_file(&row_groups, properties);
    for index in 0..FILES {
        std::fs::write(directory.join(file_name(index)), &file).unwrap();
    }
}

pub(crate) fn file_name(index: usize) -> String {
    format!("{index:02}.parquet")
}

/// Options such that a chunk is a row group, and a page is all of its rows of a column.
pub(crate) fn options(page_bytes: usize) -> FileOptions {
    FileOptions { chunk_rows: (page_bytes / VALUE_BYTES) as u64, ..FileOptions::default() }
}
