//! Files whose columns are not those of the table.

use std::sync::Arc;

use arrow::compute::{cast, concat};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int64Type};
use arrow_array::*;
use arrow_schema::{DataType, Field, Fields, Schema};
use bytes::Bytes;
use coscan_core::{ChunkIndex, Index};
use coscan_storage::table::{
    ConstantColumn, DecodeError, FileOptions, PageLayout, ParquetFile, ParquetTable, TableColumns,
    TableError,
};

use crate::table::support::{decode, open, options, read_all, row_groups, store, write};

fn file(columns: Vec<(&str, ArrayRef)>) -> Bytes {
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    write(&[RecordBatch::try_from_iter_with_nullable(columns).unwrap()], row_groups(2))
}

fn int64(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

/// All rows of a column, in batches of two, with every other row selected if `every_other`.
async fn column(table: &ParquetTable, name: &str, every_other: bool) -> ArrayRef {
    let pages = read_all(table).await;
    let column = table.schema().index_of(name).unwrap();
    let mut arrays = Vec::new();
    for chunk in table.layout().chunks() {
        let rows = table.layout().rows(chunk);
        let picked: Vec<_> =
            (0..rows.end - rows.start).step_by(2).map(|row| row..row + 1).collect();
        let selection = every_other.then_some(&picked[..]);
        arrays.push(decode(table, &pages, chunk, column, selection, 2).unwrap());
    }
    concat(&arrays.iter().map(AsRef::as_ref).collect::<Vec<_>>()).unwrap()
}

/// Bounds and nulls of each chunk of a column of numbers.
fn bounds(table: &ParquetTable, name: &str) -> Vec<(Option<i64>, Option<i64>, Option<u64>)> {
    let found = table.statistics(table.schema().index_of(name).unwrap()).unwrap();
    let value = |array: &ArrayRef, chunk: usize| {
        let array = cast(array, &DataType::Int64).unwrap();
        array.as_primitive::<Int64Type>().iter().nth(chunk).unwrap()
    };
    let nulls = |chunk| found.null_count.is_valid(chunk).then(|| found.null_count.value(chunk));
    let chunks = table.layout().chunks().map(Index::as_usize);
    chunks.map(|chunk| (value(&found.min, chunk), value(&found.max, chunk), nulls(chunk))).collect()
}

#[tokio::test]
async fn columns_are_found_by_name_widened_and_null_where_they_are_missing() {
    let narrow: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
    let unsigned: ArrayRef = Arc::new(UInt8Array::from(vec![250, 251]));
    let float: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 1.5, 2.5]));
    let double: ArrayRef = Arc::new(Float64Array::from(vec![0.1, 0.2]));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
    let files = [
        file(vec![("number", narrow), ("float", float)]),
        file(vec![("text", text), ("float", double), ("number", unsigned)]),
        file(vec![("number", int64(&[Some(i64::MAX), Some(-1)]))]),
    ];
    for layout in [PageLayout::Column, PageLayout::Row] {
        let table =
            open(&files, FileOptions { chunk_rows: 100, layout, ..FileOptions::default() }).await;
        let types: Vec<_> = table
            .schema()
            .fields()
            .iter()
            .map(|field| (field.name().as_str(), field.data_type(), field.is_nullable()))
            .collect();
        let expected = [
            ("number", &DataType::Int64, true),
            ("float", &DataType::Float64, true),
            ("text", &DataType::Utf8View, true),
        ];
        assert_eq!(types, expected);

        let number = [Some(1), None, Some(3), Some(250), Some(251), Some(i64::MAX), Some(-1)];
        assert_eq!(&column(&table, "number", false).await, &int64(&number));
        let float = [Some(0.5), Some(1.5), Some(2.5), Some(0.1), Some(0.2), None, None];
        let float: ArrayRef = Arc::new(Float64Array::from(float.to_vec()));
        assert_eq!(&column(&table, "float", false).await, &float);
        let text: Vec<_> = vec![None, None, None, Some("x"), Some("y"), None, None];
        let text: ArrayRef = Arc::new(StringViewArray::from(text));
        assert_eq!(&column(&table, "text", false).await, &text);
        // The chunks have 3, 2 and 2 rows.
        let picked = [Some(1), Some(3), Some(250), Some(i64::MAX)];
        assert_eq!(&column(&table, "number", true).await, &int64(&picked));
        assert_eq!(column(&table, "text", true).await.null_count(), 3);

        let expected = [
            (Some(1), Some(3), Some(1)),
            (Some(250), Some(251), Some(0)),
            (Some(-1), Some(i64::MAX), Some(0)),
        ];
        assert_eq!(bounds(&table, "number"), expected);
        let text = table.statistics(2).unwrap();
        assert_eq!(text.null_count, UInt64Array::from(vec![3, 0, 2]));
        assert_eq!((text.min.is_null(0), text.min.as_string_view().value(1)), (true, "x"));
        assert_eq!(table.file_column(1, 0), Some(2));
        assert_eq!(table.file_column(2, 1), None);
        let group = table.group_of_column(2);
        let slice = table.layout().slice(ChunkIndex(0), group);
        assert_eq!(slice.is_empty(), layout == PageLayout::Column, "nothing to read of it");
    }
}

#[tokio::test]
async fn a_column_is_not_null_only_if_all_files_have_it() {
    let file = |columns: Vec<(&str, ArrayRef)>| {
        write(&[RecordBatch::try_from_iter(columns).unwrap()], row_groups(10))
    };
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let both = file(vec![("a", Arc::clone(&numbers)), ("b", Arc::clone(&numbers))]);
    let one = file(vec![("a", numbers)]);
    for files in [[both.clone(), one.clone()], [one, both]] {
        let table = open(&files, options(10)).await;
        let nullable: Vec<_> =
            table.schema().fields().iter().map(|field| field.is_nullable()).collect();
        assert_eq!(nullable, [false, true]);
    }
}

#[tokio::test]
async fn structs_in_lists_get_the_fields_of_all_files() {
    let strukt = |fields: Vec<(&str, ArrayRef)>| {
        let (names, arrays): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
        let fields: Fields = names
            .iter()
            .zip(&arrays)
            .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
            .collect();
        let structs = StructArray::new(fields.clone(), arrays, None);
        let item = Arc::new(Field::new("item", DataType::Struct(fields), true));
        let offsets = arrow_buffer::OffsetBuffer::from_lengths([2, 0, 1]);
        Arc::new(ListArray::new(item, offsets, Arc::new(structs), None)) as ArrayRef
    };
    let narrow: ArrayRef = Arc::new(Int16Array::from(vec![1, 2, 3]));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let files = [
        file(vec![("list", strukt(vec![("n", narrow)]))]),
        file(vec![("list", strukt(vec![("t", text), ("n", int64(&[Some(4), None, Some(6)]))]))]),
    ];
    let table = open(&files, options(10)).await;
    let found = column(&table, "list", false).await;
    let values = found.as_list::<i32>().values().as_struct();
    let numbers = values.column_by_name("n").unwrap();
    assert_eq!(numbers, &int64(&[Some(1), Some(2), Some(3), Some(4), None, Some(6)]));
    let texts = values.column_by_name("t").unwrap().as_string::<i32>();
    assert_eq!(texts.iter().collect::<Vec<_>>()[2..5], [None, Some("a"), Some("b")]);
    assert_eq!(found.as_list::<i32>().value_length(4), 0);
}

async fn declared(files: &[Bytes], fields: Vec<Field>) -> Result<ParquetTable, TableError> {
    let mut opened = Vec::new();
    for listed in store(files).await.1 {
        opened.push(ParquetFile::open(listed, options(100)).await.unwrap());
    }
    let declared = Some(Arc::new(Schema::new(fields)));
    ParquetTable::with_columns(opened, TableColumns { declared, ..TableColumns::default() })
}

#[tokio::test]
async fn declared_columns_are_cast_or_null_and_others_are_left_out() {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["7", "8", "nine"]));
    let files = [file(vec![("a", text), ("extra", int64(&[None; 3])), ("b", int64(&[None; 3]))])];
    let fields = vec![
        Field::new("b", DataType::Utf8View, true),
        Field::new("missing", DataType::Date32, true),
        Field::new("a", DataType::Int32, true),
    ];
    let table = declared(&files, fields).await.unwrap();
    assert_eq!(table.schema().fields().len(), 3);
    assert_eq!(column(&table, "missing", false).await.null_count(), 3);
    assert_eq!(column(&table, "b", false).await.data_type(), &DataType::Utf8View);
    // "7" to "nine" as texts is no range of numbers.
    assert_eq!(bounds(&table, "a"), [(None, None, Some(0))]);
    let pages = read_all(&table).await;
    let good = decode(&table, &pages, ChunkIndex(0), 2, Some(&[0..2]), 10).unwrap();
    assert_eq!(good.as_primitive::<types::Int32Type>().values(), &[7, 8]);
    let error = decode(&table, &pages, ChunkIndex(0), 2, None, 10).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, DecodeError::Cast { .. }), "{error:?}");
    assert!(text.contains("column `a` of memory:///table/0.parquet cannot be read as Int32"));
    assert!(text.contains("'nine'"), "{text}");
}

#[tokio::test]
async fn declared_columns_that_no_value_could_have_are_refused() {
    let files = [file(vec![("a", int64(&[Some(1)]))])];
    let error = declared(&files, vec![Field::new("a", DataType::Struct(Fields::empty()), true)]);
    let error = error.await.unwrap_err();
    assert!(error.to_string().contains("column `a` of memory:///table/0.parquet is Int64"));
    let error = declared(&files, vec![Field::new("b", DataType::Int64, false)]).await.unwrap_err();
    assert!(matches!(error, TableError::MissingColumn { .. }), "{error}");
}

#[tokio::test]
async fn constant_columns_have_a_value_a_file() {
    let bytes = [
        file(vec![("a", int64(&[Some(1), Some(2), Some(3)]))]),
        file(vec![("a", int64(&[Some(4)]))]),
    ];
    let mut files = Vec::new();
    for listed in store(&bytes).await.1 {
        files.push(ParquetFile::open(listed, options(100)).await.unwrap());
    }
    let day = DataType::Dictionary(DataType::UInt16.into(), DataType::Utf8.into());
    let constants = vec![
        ConstantColumn {
            field: Arc::new(Field::new("day", day.clone(), false)),
            values: Arc::new(StringArray::from(vec!["mon", "tue"])),
        },
        ConstantColumn {
            field: Arc::new(Field::new("n", DataType::Int64, true)),
            values: int64(&[Some(9), None]),
        },
    ];
    let table =
        ParquetTable::with_columns(files, TableColumns { constants, ..TableColumns::default() });
    let table = table.unwrap();
    let names: Vec<_> = table.schema().fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["a", "day", "n"]);
    let days = column(&table, "day", false).await;
    assert_eq!(days.data_type(), &day);
    let days = cast(&days, &DataType::Utf8).unwrap();
    let days: Vec<_> = days.as_string::<i32>().iter().flatten().collect();
    assert_eq!(days, ["mon", "mon", "mon", "tue"]);
    assert_eq!(&column(&table, "n", true).await, &int64(&[Some(9), Some(9), None]));
    assert_eq!(bounds(&table, "n"), [(Some(9), Some(9), Some(0)), (None, None, Some(1))]);
    let day = table.statistics(1).unwrap();
    assert_eq!(day.min.data_type(), table.schema().field(1).data_type());
    assert_eq!(table.zone_statistics(2).unwrap().min.len(), table.zones().len());
}

#[tokio::test]
async fn small_dictionaries_of_many_row_groups_do_not_overflow() {
    // 100 values a row group, 300 in all: more than 127 keys, were they in one batch.
    let batches: Vec<_> = (0..3)
        .map(|group| {
            let texts: Vec<_> = (0..100).map(|row| format!("{group}/{row}")).collect();
            let texts = StringArray::from(texts);
            let keys = Int8Array::from_iter_values(0..100);
            let column = DictionaryArray::<Int8Type>::new(keys, Arc::new(texts));
            RecordBatch::try_from_iter([("d", Arc::new(column) as ArrayRef)]).unwrap()
        })
        .collect();
    let table = open(&[write(&batches, row_groups(100))], options(1000)).await;
    let pages = read_all(&table).await;
    let mut found = Vec::new();
    for chunk in table.layout().chunks() {
        let array = decode(&table, &pages, chunk, 0, None, 1000).unwrap();
        assert_eq!(array.data_type(), table.schema().field(0).data_type());
        let array = cast(&array, &DataType::Utf8).unwrap();
        found.extend(array.as_string::<i32>().iter().flatten().map(ToOwned::to_owned));
    }
    let expected: Vec<_> =
        (0..3).flat_map(|group| (0..100).map(move |row| format!("{group}/{row}"))).collect();
    assert_eq!(found, expected);
}
