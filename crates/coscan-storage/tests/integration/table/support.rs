//! Files with all kinds of columns, and tables over them in memory.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::compute::{concat, concat_batches, take};
use arrow_array::builder::{Int32Builder, MapBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Int32Type, IntervalDayTimeType};
use arrow_array::*;
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields, Schema};
use bytes::Bytes;
use coscan_core::{ChunkIndex, PageIndex};
use coscan_storage::table::{
    DecodeError, FileOptions, ParquetTable, ReadError, TableError, TableFile, put_together,
};
use coscan_testing::{parquet_file, table_file};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::file::properties::WriterProperties;

pub(crate) fn options(chunk_rows: u64) -> FileOptions {
    FileOptions { chunk_rows, ..FileOptions::default() }
}

type Columns = Vec<(&'static str, ArrayRef)>;

/// Rows `start..end` of columns of many types; every nullable one has nulls.
pub(crate) fn rows(rows: Range<i64>) -> RecordBatch {
    let mut columns: Columns = vec![("key", Arc::new(Int64Array::from_iter_values(rows.clone())))];
    columns.extend(numbers(&rows));
    columns.extend(texts(&rows));
    columns.extend(times(&rows));
    columns.extend(nested(&rows));
    let columns = columns.into_iter().map(|(name, array)| (name, array, name != "key"));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// An array with a value per row, or null for one row of seven.
fn array<A: FromIterator<Option<T>>, T>(rows: &Range<i64>, value: impl Fn(i64) -> T) -> A {
    rows.clone().map(|row| (row % 7 != 3).then(|| value(row))).collect()
}

fn numbers(rows: &Range<i64>) -> Columns {
    let price: Decimal128Array = array(rows, i128::from);
    let large_price = price.clone().with_precision_and_scale(38, 4).unwrap();
    vec![
        ("number", Arc::new(array::<Int64Array, _>(rows, |row| row))),
        ("small", Arc::new(array::<Int8Array, _>(rows, |row| row as i8))),
        ("unsigned", Arc::new(array::<UInt32Array, _>(rows, |row| row as u32 * 1_400_000))),
        ("float", Arc::new(array::<Float64Array, _>(rows, |row| row as f64 / 3.0))),
        ("half", Arc::new(array::<Float16Array, _>(rows, half))),
        ("flag", Arc::new(array::<BooleanArray, _>(rows, |row| row % 3 == 0))),
        ("price", Arc::new(price.with_precision_and_scale(15, 2).unwrap())),
        ("large_price", Arc::new(large_price)),
    ]
}

fn half(row: i64) -> <Float16Type as ArrowPrimitiveType>::Native {
    let float = Float32Array::from(vec![(row % 1000) as f32]);
    arrow::compute::cast(&float, &DataType::Float16).unwrap().as_primitive::<Float16Type>().value(0)
}

fn texts(rows: &Range<i64>) -> Columns {
    let text = |row| format!("value {row} of a column without repeats");
    let fixed = rows.clone().map(|row| (row % 7 != 3).then(|| row.to_be_bytes()));
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed, 8).unwrap();
    let trees = ["ash", "birch", "cedar"];
    let dictionary: DictionaryArray<Int32Type> = array(rows, |row| trees[row as usize % 3]);
    vec![
        ("text", Arc::new(array::<StringArray, _>(rows, text))),
        ("large_text", Arc::new(array::<LargeStringArray, _>(rows, text))),
        ("text_view", Arc::new(array::<StringViewArray, _>(rows, text))),
        (
            "repeated_text",
            Arc::new(array::<StringArray, _>(rows, |row| format!("of 11: {}", row % 11))),
        ),
        ("binary", Arc::new(array::<BinaryArray, _>(rows, |row| text(row).into_bytes()))),
        ("fixed", Arc::new(fixed)),
        ("dictionary", Arc::new(dictionary)),
    ]
}

fn times(rows: &Range<i64>) -> Columns {
    let zoned = array::<TimestampMicrosecondArray, _>(rows, |row| row).with_timezone("+02:00");
    let interval = |row| IntervalDayTimeType::make_value(row as i32, 5);
    vec![
        ("date", Arc::new(array::<Date32Array, _>(rows, |row| row as i32))),
        ("seconds", Arc::new(array::<TimestampSecondArray, _>(rows, |row| row))),
        ("zoned", Arc::new(zoned)),
        ("nanos", Arc::new(array::<TimestampNanosecondArray, _>(rows, |row| row))),
        ("time", Arc::new(array::<Time64MicrosecondArray, _>(rows, |row| row))),
        ("interval", Arc::new(array::<IntervalDayTimeArray, _>(rows, interval))),
    ]
}

fn nested(rows: &Range<i64>) -> Columns {
    let items = |row: i64| (0..row % 4).map(move |item| (item != 2).then_some((row + item) as i32));
    let list = |row: i64| (row % 5 != 0).then(|| items(row));
    let pair = |row: i64| (row % 5 != 0).then(|| [Some(row as i32), (row % 3 != 0).then_some(7)]);
    let lists = rows.clone().map(list);
    vec![
        ("list", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists.clone()))),
        ("large_list", Arc::new(LargeListArray::from_iter_primitive::<Int32Type, _, _>(lists))),
        (
            "pair",
            Arc::new(FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
                rows.clone().map(pair),
                2,
            )),
        ),
        ("struct", structs(rows.clone())),
        ("map", maps(rows.clone())),
    ]
}

fn structs(rows: Range<i64>) -> ArrayRef {
    let words: StringArray =
        rows.clone().map(|row| (row % 3 != 0).then(|| format!("word {row}"))).collect();
    let items = ListArray::from_iter_primitive::<Int32Type, _, _>(
        rows.clone().map(|row| (row % 4 != 0).then(|| (0..row % 3).map(|item| Some(item as i32)))),
    );
    let fields = Fields::from(vec![
        Field::new("word", DataType::Utf8, true),
        Field::new("items", items.data_type().clone(), true),
    ]);
    let nulls: NullBuffer = rows.map(|row| row % 9 != 4).collect::<Vec<_>>().into();
    Arc::new(StructArray::new(fields, vec![Arc::new(words), Arc::new(items)], Some(nulls)))
}

fn maps(rows: Range<i64>) -> ArrayRef {
    let mut builder = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for row in rows {
        for entry in 0..row % 3 {
            builder.keys().append_value(format!("key {entry}"));
            builder.values().append_option((entry != 1).then_some(row as i32));
        }
        builder.append(row % 6 != 5).unwrap();
    }
    Arc::new(builder.finish())
}

/// A file with these batches. Row groups end as the properties say.
pub(crate) fn write(batches: &[RecordBatch], properties: WriterProperties) -> Bytes {
    // Batches are written in small steps, so that data pages may end often.
    let steps = batches.iter().flat_map(|batch| {
        let starts = (0..batch.num_rows()).step_by(64);
        starts.map(|start| batch.slice(start, 64.min(batch.num_rows() - start)))
    });
    // The first step gives the columns of a file without rows.
    let steps = std::iter::once(batches[0].slice(0, 0)).chain(steps);
    parquet_file(&steps.collect::<Vec<_>>(), properties).into()
}

/// Properties for row groups of `rows` rows.
pub(crate) fn row_groups(rows: usize) -> WriterProperties {
    WriterProperties::builder().set_max_row_group_row_count(Some(rows)).build()
}

/// Properties for one row group with small data pages that end at other rows in every column.
pub(crate) fn small_pages() -> parquet::file::properties::WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_data_page_row_count_limit(200)
        .set_data_page_size_limit(700)
        .set_dictionary_page_size_limit(600)
        .set_write_batch_size(16)
}

/// Puts files into memory, in the order given.
pub(crate) async fn store(files: &[Bytes]) -> (Arc<InMemory>, Vec<TableFile>) {
    let store = Arc::new(InMemory::new());
    let mut table_files = Vec::new();
    for (position, file) in files.iter().enumerate() {
        let path = format!("table/{position}.parquet");
        store.put(&Path::from(&*path), file.clone().into()).await.unwrap();
        let shared: Arc<dyn ObjectStore> = Arc::clone(&store) as _;
        table_files.push(table_file(&shared, &path).await);
    }
    (store, table_files)
}

pub(crate) async fn try_open(
    files: &[Bytes],
    options: FileOptions,
) -> Result<ParquetTable, TableError> {
    ParquetTable::open(store(files).await.1, options).await
}

pub(crate) async fn open(files: &[Bytes], options: FileOptions) -> ParquetTable {
    try_open(files, options).await.unwrap()
}

/// All rows of the files as parquet's own reader decodes them into the table's types.
pub(crate) fn reference(table: &ParquetTable, files: &[Bytes]) -> RecordBatch {
    let mut batches = Vec::new();
    for file in files {
        let metadata = ParquetRecordBatchReaderBuilder::try_new(file.clone()).unwrap();
        let fields = metadata.schema().fields().iter().zip(table.schema().fields());
        let hint: Vec<_> = fields
            .map(|(stored, table)| {
                stored.as_ref().clone().with_data_type(table.data_type().clone())
            })
            .collect();
        let hint = Schema::new_with_metadata(hint, metadata.schema().metadata().clone());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(hint));
        let reader =
            ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options).unwrap();
        for batch in reader.build().unwrap() {
            let columns = batch.unwrap().columns().to_vec();
            batches.push(RecordBatch::try_new(Arc::clone(table.schema()), columns).unwrap());
        }
    }
    concat_batches(table.schema(), &batches).unwrap()
}

/// Reads the stored bytes of some pages, in the order asked for.
pub(crate) async fn read_pages(
    table: &ParquetTable,
    pages: &[PageIndex],
) -> Vec<Result<Bytes, ReadError>> {
    let mut answers = Vec::new();
    for request in table.requests(pages, u64::MAX) {
        let answer = table.read(&request).await;
        answers.push((request, answer));
    }
    put_together(pages, answers)
}

/// Reads the stored bytes of all pages.
pub(crate) async fn read_all(table: &ParquetTable) -> HashMap<PageIndex, Bytes> {
    let pages: Vec<_> = (0..table.layout().page_count() as u32).map(PageIndex).collect();
    let read = read_pages(table, &pages).await;
    pages.into_iter().zip(read.into_iter().map(Result::unwrap)).collect()
}

/// A column of a chunk in one array.
pub(crate) fn decode(
    table: &ParquetTable,
    pages: &HashMap<PageIndex, Bytes>,
    chunk: ChunkIndex,
    column: usize,
    selection: Option<&[Range<u64>]>,
    batch_rows: usize,
) -> Result<ArrayRef, DecodeError> {
    let get = |page: PageIndex| pages[&page].clone();
    let mut decoder = table.decode(chunk, column, &get, selection, batch_rows)?;
    let mut arrays = Vec::new();
    for array in decoder.by_ref() {
        let array = array?;
        assert!(array.len() <= batch_rows, "{} rows in a batch of {batch_rows}", array.len());
        arrays.push(array);
    }
    assert!(decoder.next().is_none(), "a decoder that has ended stays so");
    let arrays: Vec<_> = arrays.iter().map(AsRef::as_ref).collect();
    Ok(match arrays.is_empty() {
        true => new_empty_array(table.schema().field(column).data_type()),
        false => concat(&arrays).unwrap(),
    })
}

/// Asserts that every chunk and column, whole and with a selection, is the output of parquet's own reader.
pub(crate) async fn assert_decodes_as_reference(table: &ParquetTable, files: &[Bytes]) {
    let expected = reference(table, files);
    let pages = read_all(table).await;
    assert_eq!(table.layout().row_count(), expected.num_rows() as u64);
    for chunk in table.layout().chunks() {
        let rows = table.layout().rows(chunk);
        let chunk_rows = rows.end - rows.start;
        let selections = [
            vec![0..chunk_rows],
            vec![chunk_rows - 1..chunk_rows],
            vec![0..1, 2..2, chunk_rows / 3..chunk_rows / 2],
            (0..chunk_rows).step_by(3).map(|row| row..row + 1).collect(),
            vec![],
        ];
        for (column, field) in table.schema().fields().iter().enumerate() {
            let expected = expected.column(column);
            let all = expected.slice(rows.start as usize, chunk_rows as usize);
            let found = decode(table, &pages, chunk, column, None, 100).unwrap();
            assert_eq!(found.data_type(), field.data_type());
            assert_eq!(&found, &all, "chunk {chunk}, column {}", field.name());
            for selection in &selections {
                let wanted = selection.iter().flat_map(|range| range.clone());
                let wanted: UInt64Array = wanted.map(Some).collect();
                let found = decode(table, &pages, chunk, column, Some(selection), 37).unwrap();
                let all = take(&all, &wanted, None).unwrap();
                assert_eq!(
                    &found,
                    &all,
                    "rows {selection:?} of chunk {chunk}, column {}",
                    field.name()
                );
            }
        }
    }
}
