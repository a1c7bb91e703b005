//! Scans of snapshots with changes: each row that a snapshot has once, with its values, and files shared with other
//! snapshots.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field};
use coscan_runtime::core::{Order, PolicyKind, SplitMix64};
use coscan_runtime::storage::pdt::{Insert, InsertId, Place, Sid};
use coscan_runtime::storage::table::{
    FileChanges, ParquetTable, TableChanges, TableColumns, Value,
};
use coscan_runtime::{BufferManager, Options, ScanRequest, ScanStream, SharedTable};
use futures::TryStreamExt;
use futures::future::join_all;

use crate::common::{
    CHUNK_ROWS, Fixture, LARGE, assert_free, ids, in_time, manager, manager_with, text_of,
};

const CHUNKS: u64 = 8;
const ROWS: u64 = CHUNKS * CHUNK_ROWS;

/// The number of a row, and its values.
type Row = (u64, Option<i64>, Option<i64>, Option<String>);

/// A snapshot, and its rows by their numbers.
#[derive(Clone)]
struct Version {
    table: SharedTable,
    rows: Arc<BTreeMap<u64, Row>>,
}

/// The columns of the file, numbers of rows, and room for inserted rows.
fn changeable(table: &ParquetTable, inserted_rows_max: u64) -> ParquetTable {
    let columns = TableColumns {
        row_numbers: Some(Arc::new(Field::new("row", DataType::UInt64, false))),
        inserted_rows_max: Some(inserted_rows_max),
        declared: Some(Arc::new(nullable(table))),
        ..TableColumns::default()
    };
    ParquetTable::with_columns(table.parquet_files().to_vec(), columns).unwrap()
}

fn nullable(table: &ParquetTable) -> arrow_schema::Schema {
    let fields = table.schema().fields().iter();
    let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
    arrow_schema::Schema::new(fields.collect::<Vec<_>>())
}

fn number(value: Option<i64>) -> Value {
    Value::of(&(Arc::new(Int64Array::from(vec![value])) as _), 0)
}

fn text(value: Option<&str>) -> Value {
    Value::of(&(Arc::new(StringViewArray::from(vec![value])) as _), 0)
}

fn stored_row(row: u64) -> Row {
    let id = row.cast_signed();
    (row, Some(id), Some(2 * id), Some(text_of(id)))
}

/// A value that the file does not have there.
fn random_value(random: &mut SplitMix64) -> Option<i64> {
    (random.below(5) > 0).then(|| -1 - random.below(1000).cast_signed())
}

/// Random changes, and the rows that they leave.
fn random_changes(random: &mut SplitMix64, room: u64) -> (TableChanges, BTreeMap<u64, Row>) {
    let mut changes = FileChanges::new(ROWS);
    let mut rows: BTreeMap<u64, Row> = (0..ROWS).map(|row| (row, stored_row(row))).collect();
    for _ in 0..random.below(300) {
        let Some((&at, _)) = rows.range(random.below(ROWS)..).next() else { continue };
        let Some(row) = rows.get_mut(&at) else { continue };
        let value = random_value(random);
        match random.below(4) {
            0 => {
                changes.delete(Sid(at)).unwrap();
                rows.remove(&at);
            }
            1 => {
                changes.patch(Sid(at), 0, number(value)).unwrap();
                row.1 = value;
            }
            2 => {
                changes.patch(Sid(at), 1, number(value)).unwrap();
                row.2 = value;
            }
            _ => {
                let spelled = value.map(|value| format!("patched with the number {value}"));
                changes.patch(Sid(at), 2, text(spelled.as_deref())).unwrap();
                row.3 = spelled;
            }
        }
    }
    for _ in 0..random.below(3) {
        let chunk = random.below(CHUNKS) * CHUNK_ROWS;
        for at in chunk..chunk + CHUNK_ROWS {
            if rows.remove(&at).is_some() {
                changes.delete(Sid(at)).unwrap();
            }
        }
    }
    let mut inserted = FileChanges::new(0);
    let count = [0, random.below(50), random.below(room + 1)][random.below(3) as usize];
    for at in 0..count {
        let value = random_value(random);
        let row = [number(value), number(Some(3)), text(Some("inserted"))];
        inserted.insert(Insert::new(InsertId(at), Place::Tail, row)).unwrap();
        rows.insert(ROWS + at, (ROWS + at, value, Some(3), Some("inserted".to_owned())));
    }
    let changes = TableChanges {
        files: vec![Some(Arc::new(changes))],
        inserted: Some(Arc::new(inserted)),
        held: None,
    };
    (changes, rows)
}

/// Ranges of rows, ascending.
fn random_ranges(random: &mut SplitMix64, end: u64) -> Vec<Range<u64>> {
    let mut bounds: Vec<u64> = (0..2 * (1 + random.below(3))).map(|_| random.below(end)).collect();
    bounds.sort_unstable();
    bounds.chunks(2).map(|bounds| bounds[0]..bounds[1]).collect()
}

fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let columns = batch.columns();
    let ids = columns[0].as_primitive::<Int64Type>();
    let twice = columns[1].as_primitive::<Int64Type>();
    let texts = columns[2].as_string_view();
    let numbers = columns[3].as_primitive::<UInt64Type>();
    let number = |array: &Int64Array, row| array.is_valid(row).then(|| array.value(row));
    let text = |row| texts.is_valid(row).then(|| texts.value(row).to_owned());
    let row = |row| (numbers.value(row), number(ids, row), number(twice, row), text(row));
    (0..batch.num_rows()).map(row).collect()
}

async fn read(stream: ScanStream) -> Vec<Row> {
    let batches: Vec<_> = stream.try_collect().await.unwrap();
    batches.iter().flat_map(rows_of).collect()
}

async fn check(manager: &BufferManager, version: Version, seed: u64) {
    let mut random = SplitMix64(seed);
    let end = version.table.table().layout().row_count();
    let ranges = match random.below(2) {
        0 => std::iter::once(0..end).collect(),
        _ => random_ranges(&mut random, end),
    };
    let workers = 1 + usize::try_from(random.below(3)).unwrap();
    let order = if random.below(2) == 0 { Order::Any } else { Order::InOrder };
    let expected: Vec<Row> = ranges
        .iter()
        .flat_map(|rows| version.rows.range(rows.clone()))
        .map(|(_, row)| row.clone())
        .collect();
    let columns = ScanRequest::of_columns(&version.table, vec![0, 1, 2, 3]);
    let request = ScanRequest { rows: ranges, order, workers, ..columns };
    let scan = manager.start_scan(&version.table, request).unwrap();
    let streams = (0..workers).map(|worker| tokio::spawn(read(scan.worker(worker))));
    let given = in_time(join_all(streams)).await;
    let mut given: Vec<Row> = given.into_iter().flat_map(|rows| rows.unwrap()).collect();
    if order == Order::Any || workers > 1 {
        given.sort_unstable();
    }
    assert!(given == expected, "seed {seed}: {} rows for {}", given.len(), expected.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_row_of_a_snapshot_comes_once_with_its_values() {
    for seed in 0..60 {
        let mut random = SplitMix64(seed);
        let kind = PolicyKind::ALL[seed as usize % PolicyKind::ALL.len()];
        // A chunk gives several batches.
        let batch_rows = 100 + random.below(400) as usize;
        let options = Options { batch_rows, ..Options::with_memory_bytes(LARGE).policy(kind) };
        let manager = manager_with(options);
        let room = [0, 1024, 3000][random.below(3) as usize];
        let table = changeable(&*Fixture::new(ROWS).await.table().await, room);
        let base = manager.register(Arc::new(table));
        let rows = (0..ROWS).map(|row| (row, stored_row(row))).collect();
        let mut versions = vec![Version { table: base.clone(), rows: Arc::new(rows) }];
        for _ in 0..2 {
            let (changes, rows) = random_changes(&mut random, room);
            let table = base.with_changes(changes).unwrap();
            versions.push(Version { table, rows: Arc::new(rows) });
        }
        let scans = (0..6).map(|scan| {
            let version = versions[scan % versions.len()].clone();
            check(&manager, version, seed * 1000 + scan as u64)
        });
        join_all(scans).await;
        drop((versions, base));
        assert_free(&manager).await;
    }
}

/// A snapshot of a file without these rows.
fn without(table: &ParquetTable, deleted: &[u64]) -> Arc<ParquetTable> {
    let deleted = FileChanges::from_deleted(ROWS, deleted.iter().copied()).unwrap();
    let changes = TableChanges { files: vec![Some(Arc::new(deleted))], ..TableChanges::default() };
    Arc::new(table.with_changes(changes).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_share_the_pages_of_their_files() {
    let manager = manager(PolicyKind::Relevance, LARGE);
    let fixture = Fixture::new(ROWS).await;
    let table = fixture.table().await;
    let all = manager.register(Arc::clone(&table));
    let some = manager.register(without(&table, &[0, 1, 4000, ROWS - 1]));
    for (table, rows, reads) in [(all, ROWS, true), (some, ROWS - 4, false)] {
        fixture.metrics.reset();
        let scan = manager.start_scan(&table, ScanRequest::of_columns(&table, vec![0])).unwrap();
        assert_eq!(in_time(ids(scan.worker(0))).await.unwrap().len() as u64, rows);
        assert_eq!(fixture.metrics.snapshot().bytes > 0, reads);
    }
}

#[tokio::test]
async fn rows_that_a_file_does_not_have_cannot_be_changed() {
    let table = Fixture::new(ROWS).await.table().await;
    let deleted = FileChanges::from_deleted(u64::MAX, [3, ROWS]).unwrap();
    let changes = TableChanges { files: vec![Some(Arc::new(deleted))], ..TableChanges::default() };
    let refused = table.with_changes(changes).unwrap_err().to_string();
    assert!(refused.contains(&format!("row {ROWS} of")), "{refused}");
}
