//! Files that can and cannot be opened as a table.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use bytes::Bytes;
use coscan_storage::table::{FileOptions, PageLayout, ParquetTable, TableError};

use crate::table::support::{open, options, row_groups, rows, try_open, write};

fn file(columns: Vec<(&str, ArrayRef)>) -> Bytes {
    write(&[RecordBatch::try_from_iter(columns).unwrap()], row_groups(10))
}

fn int32() -> ArrayRef {
    Arc::new(Int32Array::from(vec![1, 2]))
}

fn int64() -> ArrayRef {
    Arc::new(Int64Array::from(vec![Some(1), None]))
}

async fn error(files: &[Bytes]) -> String {
    try_open(files, options(10)).await.unwrap_err().to_string()
}

#[tokio::test]
async fn the_schema_is_as_datafusion_reads_it() {
    let table = open(&[write(&[rows(0..10)], row_groups(10))], options(10)).await;
    let data_type = |name| table.schema().field_with_name(name).unwrap().data_type().clone();
    assert_eq!(data_type("text"), DataType::Utf8View);
    assert_eq!(data_type("large_text"), DataType::Utf8View);
    assert_eq!(data_type("binary"), DataType::BinaryView);
    assert_eq!(
        data_type("dictionary"),
        DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into())
    );
    assert!(!table.schema().field(0).is_nullable());
    assert!(table.schema().field(1).is_nullable());
}

#[tokio::test]
async fn no_files() {
    let found = ParquetTable::open(vec![], FileOptions::default()).await;
    assert!(matches!(found, Err(TableError::NoFiles)));
}

#[tokio::test]
async fn a_column_has_types_with_something_in_common() {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["1", "2"]));
    let first = file(vec![("a", int32()), ("b", int32())]);
    let types = error(&[first.clone(), first, file(vec![("b", text), ("a", int64())])]).await;
    assert!(types.contains("memory:///table/0.parquet and memory:///table/2.parquet"), "{types}");
    assert!(types.contains("`b` is Int32 in the first and Utf8View in the second"), "{types}");
}

#[tokio::test]
async fn columns_have_names_of_their_own() {
    let twice = error(&[file(vec![("a", int32()), ("a", int64())])]).await;
    assert!(twice.contains("several columns named `a`"), "{twice}");
}

#[tokio::test]
async fn a_column_is_nullable_if_it_is_so_in_any_file() {
    let full: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let table = open(&[file(vec![("a", full)]), file(vec![("a", int64())])], options(10)).await;
    assert!(table.schema().field(0).is_nullable());
    assert_eq!(table.layout().chunk_count(), 2, "chunks do not span files");
}

#[tokio::test]
async fn files_without_rows_add_no_chunks() {
    let empty = write(&[rows(0..0)], row_groups(10));
    for layout in [PageLayout::Column, PageLayout::Row] {
        let table = open(
            std::slice::from_ref(&empty),
            FileOptions { chunk_rows: 10, layout, ..FileOptions::default() },
        )
        .await;
        assert_eq!((table.layout().chunk_count(), table.layout().page_count()), (0, 0));
        assert_eq!(table.statistics(0).unwrap().min.len(), 0);
        let files = [empty.clone(), write(&[rows(0..10)], row_groups(10)), empty.clone()];
        let table =
            open(&files, FileOptions { chunk_rows: 10, layout, ..FileOptions::default() }).await;
        assert_eq!(table.layout().chunk_count(), 1);
        assert_eq!(table.chunk_file(coscan_core::ChunkIndex(0)), 1);
    }
}

#[tokio::test]
async fn a_file_that_is_not_parquet_is_an_error() {
    let short = error(&[Bytes::from_static(b"PAR1")]).await;
    assert!(short.contains("not a Parquet file: it has 4 bytes"), "{short}");
    let text = error(&[Bytes::from_static(b"a,b,c\n1,2,3\n4,5,6\n")]).await;
    assert!(text.contains("not a Parquet file: it does not end in PAR1"), "{text}");
    let encrypted = error(&[Bytes::from_static(b"PARE............PARE")]).await;
    assert!(encrypted.contains("encrypted"), "{encrypted}");
}

#[tokio::test]
async fn encrypted_columns_under_a_plain_footer_are_an_error() {
    let sound = write(&[rows(0..10)], row_groups(10));
    // The footer, its length, and PAR1. The footer ends in the end of a struct. The field of the
    // algorithm goes before that.
    let (body, magic) = sound.split_at(sound.len() - 4);
    let (body, length) = body.split_last_chunk().unwrap();
    let (body, end) = body.split_at(body.len() - 1);
    assert_eq!(end, [0]);
    let algorithm = [0x1c, 0x1c, 0, 0, 0];
    let length = u32::from_le_bytes(*length) + algorithm.len() as u32 - 1;
    let bytes = [body, &algorithm[..], &length.to_le_bytes()[..], magic].concat();
    let encrypted = error(&[bytes.into()]).await;
    assert!(encrypted.contains("is encrypted"), "{encrypted}");
}

#[tokio::test]
async fn a_damaged_footer_is_an_error_and_never_a_panic() {
    let sound = write(&[rows(0..100)], row_groups(50));
    let cut = try_open(&[sound.slice(..sound.len() - 100)], options(10)).await;
    assert!(matches!(cut, Err(TableError::NotParquet { .. })));
    // The end of the file with the middle missing: the footer is whole and points to what is not there.
    let mut gap = sound.slice(..4).to_vec();
    gap.extend_from_slice(&sound[sound.len() / 2..]);
    let found = try_open(&[gap.into()], options(10)).await;
    assert!(matches!(found, Err(TableError::Corrupt { .. })), "{found:?}");

    let footer_start = sound.len() - sound.len() / 4;
    let mut corrupt_count = 0;
    for position in (footer_start..sound.len() - 4).step_by(13) {
        let mut damaged = sound.to_vec();
        damaged[position] ^= 0x55;
        if let Ok(table) = try_open(&[damaged.into()], options(10)).await {
            (0..table.schema().fields().len()).for_each(|column| drop(table.statistics(column)));
        } else {
            corrupt_count += 1;
        }
    }
    assert!(corrupt_count > 10, "{corrupt_count}");
}
