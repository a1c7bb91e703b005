//! Every chunk of every column decodes to the output of parquet's own reader, or to an error.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use coscan_core::{ChunkIndex, Index, PageIndex};
use coscan_storage::table::{ColumnDecoder, DecodeError, FileOptions, PageLayout};
use parquet::basic::Compression;
use parquet::file::properties::{WriterProperties, WriterVersion};

use crate::table::support::{
    assert_decodes_as_reference, decode, open, options, read_all, row_groups, rows, small_pages,
    write,
};

#[tokio::test]
async fn several_row_groups_a_chunk() {
    let files =
        [write(&[rows(0..1000)], row_groups(150)), write(&[rows(1000..1400)], row_groups(400))];
    let table = open(&files, options(300)).await;
    let counts: Vec<_> = table.layout().chunks().map(|chunk| table.layout().rows(chunk)).collect();
    assert_eq!(counts, [0..300, 300..600, 600..1000, 1000..1400]);
    assert_eq!(table.chunk_file(ChunkIndex(3)), 1);
    assert_decodes_as_reference(&table, &files).await;
}

#[tokio::test]
async fn a_huge_row_group_with_pages_that_do_not_align() {
    for properties in [
        small_pages().build(),
        small_pages().set_dictionary_enabled(false).build(),
        small_pages().set_writer_version(WriterVersion::PARQUET_2_0).build(),
    ] {
        let files = [write(&[rows(0..3000)], properties)];
        let table = open(&files, options(700)).await;
        assert_eq!(table.layout().chunk_count(), 4);
        assert_decodes_as_reference(&table, &files).await;
    }
}

#[tokio::test]
async fn one_huge_row_group_between_others() {
    let (small, large) = (rows(0..100), rows(100..2100));
    let mut file = Vec::new();
    let properties = Some(small_pages().build());
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(&mut file, small.schema(), properties).unwrap();
    for batch in [&small, &large, &small] {
        writer.write(batch).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    let files = [Bytes::from(file)];
    let table = open(&files, options(900)).await;
    let counts: Vec<_> = table.layout().chunks().map(|chunk| table.layout().rows(chunk)).collect();
    assert_eq!(counts, [0..100, 100..1100, 1100..2100, 2100..2200]);
    assert_decodes_as_reference(&table, &files).await;
}

#[tokio::test]
async fn row_layout() {
    let files = [write(&[rows(0..1000)], row_groups(150))];
    let table = open(
        &files,
        FileOptions { chunk_rows: 300, layout: PageLayout::Row, ..FileOptions::default() },
    )
    .await;
    assert_eq!((table.layout().group_count(), table.layout().page_count()), (1, 7));
    assert_decodes_as_reference(&table, &files).await;
}

#[tokio::test]
async fn all_compressions() {
    let compressions = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(Default::default()),
        Compression::LZ4_RAW,
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
    ];
    for compression in compressions {
        let files = [write(&[rows(0..1000)], small_pages().set_compression(compression).build())];
        assert_decodes_as_reference(&open(&files, options(400)).await, &files).await;
    }
}

#[tokio::test]
async fn without_arrow_schema_and_without_indexes() {
    use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
    let batch = rows(0..1000);
    let mut file = Vec::new();
    let properties = WriterProperties::builder()
        .set_offset_index_disabled(true)
        .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
        .build();
    let writer_options =
        ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let mut writer =
        ArrowWriter::try_new_with_options(&mut file, batch.schema(), writer_options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let files = [Bytes::from(file)];
    let table = open(&files, options(100)).await;
    assert_eq!(table.layout().chunk_count(), 1, "cannot be split without an offset index");
    assert_eq!(table.schema().field_with_name("text").unwrap().data_type(), &DataType::Utf8View);
    assert_decodes_as_reference(&table, &files).await;
}

#[tokio::test]
async fn nested_nulls_in_one_file_only() {
    let file = |nullable: bool, values: Vec<Option<i32>>| {
        let inner = Arc::new(Field::new("a", DataType::Int32, nullable));
        let array: ArrayRef = Arc::new(Int32Array::from(values));
        let column: ArrayRef = Arc::new(StructArray::from(vec![(inner, array)]));
        let schema = Schema::new(vec![Field::new("s", column.data_type().clone(), nullable)]);
        write(&[RecordBatch::try_new(Arc::new(schema), vec![column]).unwrap()], row_groups(10))
    };
    let files = [file(false, vec![Some(1), Some(2)]), file(true, vec![None, Some(4)])];
    let table = open(&files, options(10)).await;
    assert!(table.schema().field(0).is_nullable());
    let pages = read_all(&table).await;
    for chunk in table.layout().chunks() {
        let found = decode(&table, &pages, chunk, 0, None, 10).unwrap();
        assert_eq!(found.data_type(), table.schema().field(0).data_type());
        let nulls = found.as_any().downcast_ref::<StructArray>().unwrap().column(0).null_count();
        assert_eq!((found.len(), nulls), (2, chunk.as_usize()));
    }
}

#[tokio::test]
async fn a_selection_outside_the_chunk_or_out_of_order_is_refused() {
    let table = open(&[write(&[rows(0..100)], row_groups(100))], options(100)).await;
    let pages = read_all(&table).await;
    for selection in [vec![0..101], vec![5..6, 4..5], vec![5..7, 6..8]] {
        let found = decode(&table, &pages, ChunkIndex(0), 0, Some(&selection), 10);
        assert!(
            matches!(found, Err(DecodeError::InvalidSelection { .. })),
            "{selection:?}: {found:?}"
        );
    }
}

#[tokio::test]
async fn estimates_are_near_and_rather_above_what_arrays_take() {
    let files = [write(&[rows(0..3000)], small_pages().build())];
    let table = open(&files, options(1000)).await;
    let pages = read_all(&table).await;
    for chunk in table.layout().chunks() {
        for (column, field) in table.schema().fields().iter().enumerate() {
            let array = decode(&table, &pages, chunk, column, None, 10_000).unwrap();
            let actual = array.to_data().get_slice_memory_size().unwrap() as u64;
            let estimate = table.decoded_bytes_estimate(chunk, column);
            let name = field.name();
            assert!(estimate * 10 >= actual * 9, "{name}: {estimate} estimated, {actual} taken");
            assert!(estimate <= actual * 6 + 1000, "{name}: {estimate} estimated, {actual} taken");
        }
    }
}

#[tokio::test]
async fn damaged_pages_are_errors_and_never_panics() {
    let compressed =
        WriterProperties::builder().set_compression(Compression::ZSTD(Default::default()));
    for properties in [small_pages().build(), compressed.build()] {
        let table = open(&[write(&[rows(0..1000)], properties)], options(400)).await;
        let sound = read_all(&table).await;
        let mut error_count = 0;
        for (page, bytes) in &sound {
            for position in [0, 1, 3, bytes.len() / 2, bytes.len() - 1] {
                let mut damaged = sound.clone();
                let mut changed = bytes.to_vec();
                changed[position] ^= 0xff;
                damaged.insert(*page, changed.into());
                let chunk = table.layout().chunks_of(*page)[0];
                let column = table.layout().group_of(*page).as_usize();
                match decode(&table, &damaged, chunk, column, None, 100) {
                    Ok(array) => {
                        let rows = table.layout().rows(chunk);
                        assert_eq!(array.len() as u64, rows.end - rows.start, "never fewer rows");
                    }
                    Err(DecodeError::Corrupt { column: name, chunk: found, .. }) => {
                        assert_eq!((&name, found), (table.schema().field(column).name(), chunk));
                        error_count += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
        assert!(error_count > sound.len(), "{error_count} errors of {} pages", sound.len());
    }
}

#[tokio::test]
async fn missing_and_swapped_pages_are_errors() {
    let table = open(&[write(&[rows(0..1000)], small_pages().build())], options(400)).await;
    let mut pages = read_all(&table).await;
    let slice = table.layout().slice(ChunkIndex(1), table.group_of_column(0));
    let last = *slice.last().unwrap();
    let cut = pages[&last].slice(1..);
    pages.insert(last, cut);
    let error = decode(&table, &pages, ChunkIndex(1), 0, None, 100).unwrap_err();
    assert!(error.to_string().contains("memory:///table/0.parquet"), "{error}");
    assert!(error.to_string().contains("`key`"), "{error}");
}

/// A file of INT96 timestamps and a list of the old kind, a repeated column without a group around it.
fn old_file() -> Bytes {
    use parquet::data_type::{Int32Type, Int96, Int96Type};
    let message = "message m { REQUIRED INT96 at; REPEATED INT32 items; }";
    let schema = parquet::schema::parser::parse_message_type(message).unwrap();
    let mut file = Vec::new();
    let properties = Arc::new(small_pages().build());
    let mut writer =
        parquet::file::writer::SerializedFileWriter::new(&mut file, Arc::new(schema), properties)
            .unwrap();
    let mut row_group = writer.next_row_group().unwrap();
    let mut column = row_group.next_column().unwrap().unwrap();
    let timestamps: Vec<_> =
        (0..1000).map(|row| Int96::from(vec![row, 0, 2_440_589 + row])).collect();
    column.typed::<Int96Type>().write_batch(&timestamps, None, None).unwrap();
    column.close().unwrap();
    let mut column = row_group.next_column().unwrap().unwrap();
    // Lists of 0, 1 and 2 items in turn.
    let items: Vec<i32> = (0..999).collect();
    let (mut definitions, mut repetitions) = (Vec::new(), Vec::new());
    for row in 0..1000 {
        definitions.extend(match row % 3 {
            0 => vec![0],
            1 => vec![1],
            _ => vec![1, 1],
        });
        repetitions.extend(if row % 3 == 2 { vec![0, 1] } else { vec![0] });
    }
    column
        .typed::<Int32Type>()
        .write_batch(&items, Some(&definitions), Some(&repetitions))
        .unwrap();
    column.close().unwrap();
    row_group.close().unwrap();
    writer.close().unwrap();
    file.into()
}

#[tokio::test]
async fn old_timestamps_and_lists() {
    let files = [old_file()];
    let table = open(&files, options(300)).await;
    assert_eq!(table.layout().chunk_count(), 3);
    let nanoseconds = DataType::Timestamp(arrow_schema::TimeUnit::Nanosecond, None);
    assert_eq!(table.schema().field(0).data_type(), &nanoseconds);
    assert_decodes_as_reference(&table, &files).await;
}

#[tokio::test]
async fn many_row_groups_of_strings_and_dictionaries_in_one_batch() {
    let files = [write(&[rows(0..1000)], row_groups(50))];
    let table = open(&files, options(1000)).await;
    let expected = crate::table::support::reference(&table, &files);
    let pages = read_all(&table).await;
    for column in 0..table.schema().fields().len() {
        let found = decode(&table, &pages, ChunkIndex(0), column, None, 1000).unwrap();
        assert_eq!(&found, expected.column(column));
    }
}

#[tokio::test]
async fn decoders_may_move_between_threads() {
    fn future_is_send<T: Send>(_: &T) {}
    let table = open(&[write(&[rows(0..10)], row_groups(10))], options(10)).await;
    future_is_send(&table.read(&table.requests(&[PageIndex(0)], 1)[0]));
    future_is_send(&coscan_storage::table::ParquetTable::open(vec![], options(10)));
    fn is_send<T: Send>() {}
    fn is_shared<T: Send + Sync>() {}
    is_send::<ColumnDecoder>();
    is_shared::<coscan_storage::table::ParquetTable>();
}
