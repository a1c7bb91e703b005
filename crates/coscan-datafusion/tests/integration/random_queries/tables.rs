//! Small tables of many files and chunks, with NULLs and duplicates: in order, unordered, clustered on a foreign key,
//! partitioned, or empty.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int16Array,
    Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt32Array,
};
use arrow::compute::{concat_batches, sort_to_indices, take_record_batch};
use coscan_datafusion::{CoscanOptions, ManagedDatabase};
use coscan_testing::{RandomChanges, random_changes};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;

use crate::support::{Seeded, execute};

/// The possible use of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Int,
    Decimal,
    Float,
    Text,
    Date,
    Time,
    Bool,
}

/// The values of a column, which columns of other tables may have, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Domain {
    Parent,
    Item,
    Key,
    None,
}

impl Domain {
    /// The approximate number of values.
    pub(crate) fn values(self) -> f64 {
        match self {
            Self::Parent => 300.0,
            Self::Item => 60.0,
            Self::Key => 150.0,
            Self::None => 1.0,
        }
    }
}

/// A table, with the properties that queries use.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [(&'static str, Kind, Domain)],
    /// Columns whose values no two rows have in common.
    pub(crate) unique: &'static [&'static str],
    pub(crate) rows: f64,
    partitions: &'static str,
    order: &'static str,
    /// The column by which its replica is sorted.
    replica_by: &'static str,
}

/// The tables, of which the last one is empty.
pub(crate) const TABLES: [Table; 7] = [
    Table {
        name: "parent",
        columns: &[
            ("p_id", Kind::Int, Domain::Parent),
            ("p_key", Kind::Int, Domain::Key),
            ("p_date", Kind::Date, Domain::None),
            ("p_text", Kind::Text, Domain::None),
            ("p_price", Kind::Decimal, Domain::None),
        ],
        unique: &["p_id"],
        rows: 300.0,
        partitions: "",
        order: "WITH ORDER (p_id)",
        replica_by: "p_date",
    },
    Table {
        name: "child",
        columns: &[
            ("c_parent", Kind::Int, Domain::Parent),
            ("c_line", Kind::Int, Domain::None),
            ("c_item", Kind::Int, Domain::Item),
            ("c_count", Kind::Int, Domain::None),
            ("c_price", Kind::Decimal, Domain::None),
            ("c_value", Kind::Float, Domain::None),
            ("c_flag", Kind::Text, Domain::None),
            ("c_date", Kind::Date, Domain::None),
        ],
        unique: &["c_parent", "c_line"],
        rows: 1000.0,
        partitions: "",
        order: "WITH ORDER (c_parent, c_line)",
        replica_by: "c_date",
    },
    Table {
        name: "item",
        columns: &[
            ("i_id", Kind::Int, Domain::Item),
            ("i_key", Kind::Int, Domain::Key),
            ("i_name", Kind::Text, Domain::None),
            ("i_value", Kind::Float, Domain::None),
            ("i_good", Kind::Bool, Domain::None),
        ],
        unique: &["i_id"],
        rows: 60.0,
        partitions: "",
        order: "",
        replica_by: "i_key",
    },
    Table {
        name: "rising",
        columns: &[
            ("r_key", Kind::Int, Domain::Key),
            ("r_id", Kind::Int, Domain::Parent),
            ("r_text", Kind::Text, Domain::None),
            ("r_date", Kind::Date, Domain::None),
        ],
        unique: &["r_id"],
        rows: 500.0,
        partitions: "",
        order: "WITH ORDER (r_key ASC NULLS LAST)",
        replica_by: "r_id",
    },
    Table {
        name: "falling",
        columns: &[
            ("f_date", Kind::Date, Domain::None),
            ("f_id", Kind::Int, Domain::Parent),
            ("f_key", Kind::Int, Domain::Key),
            ("f_value", Kind::Float, Domain::None),
        ],
        unique: &["f_id"],
        rows: 400.0,
        partitions: "",
        order: "WITH ORDER (f_date DESC)",
        replica_by: "f_id",
    },
    Table {
        name: "mixed",
        columns: &[
            ("m_id", Kind::Int, Domain::Parent),
            ("m_key", Kind::Int, Domain::Key),
            ("m_small", Kind::Int, Domain::None),
            ("m_unsigned", Kind::Int, Domain::None),
            ("m_float", Kind::Float, Domain::None),
            ("m_flag", Kind::Bool, Domain::None),
            ("m_null", Kind::Int, Domain::None),
            ("m_text", Kind::Text, Domain::None),
            ("m_time", Kind::Time, Domain::None),
            ("m_part", Kind::Text, Domain::None),
        ],
        unique: &["m_id"],
        rows: 400.0,
        partitions: "PARTITIONED BY (m_part)",
        order: "",
        replica_by: "m_key",
    },
    Table {
        name: "nothing",
        columns: &[
            ("n_id", Kind::Int, Domain::Parent),
            ("n_key", Kind::Int, Domain::Key),
            ("n_text", Kind::Text, Domain::None),
        ],
        unique: &["n_id"],
        rows: 1.0,
        partitions: "",
        order: "WITH ORDER (n_id)",
        replica_by: "n_key",
    },
];

/// The properties of tables that are declared to a session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Declared {
    Nothing,
    Order,
    OrderAndReplicas,
}

/// Creates the tables, whose files must exist.
pub(crate) async fn create(context: &SessionContext, data: &Path, declared: Declared) {
    for Table { name, partitions, order, .. } in &TABLES {
        let location = data.join(name).display().to_string();
        let order = if declared == Declared::Nothing { "" } else { order };
        let options = match declared {
            Declared::OrderAndReplicas => format!("OPTIONS ('replicas' '{location}_replica/')"),
            Declared::Nothing | Declared::Order => String::new(),
        };
        let create = format!(
            "CREATE EXTERNAL TABLE {name} STORED AS PARQUET {partitions} {order} LOCATION '{location}/' {options}"
        );
        crate::support::run(context, &create).await;
    }
}

/// Creates the tables in a database, with some of their rows changed. Equal seeds give equal rows.
pub(crate) async fn create_changed(context: &SessionContext, data: &Path, seed: u64) {
    let coscan = CoscanOptions::of(&context.copied_config()).unwrap();
    let files = SessionContext::new();
    create(&files, data, Declared::Nothing).await;
    let database = ManagedDatabase::in_memory(coscan.as_ref().clone());
    database.add_to(context).unwrap();
    for (number, Table { name, columns, unique, .. }) in TABLES.iter().enumerate() {
        let rows = files.table(*name).await.unwrap();
        let schema = rows.schema().as_arrow().clone();
        let table = database.create_table(name, &schema).await.unwrap();
        let rows = rows.collect().await.unwrap();
        let loaded = Arc::new(MemTable::try_new(Arc::new(schema), vec![rows]).unwrap());
        // Some rows are in a file, and the others in memory.
        for is_file in [true, false] {
            context.register_table("loaded", Arc::clone(&loaded) as _).unwrap();
            let part = format!("{} % 3 {} 0", unique[0], if is_file { ">" } else { "=" });
            let insert = format!("INSERT INTO {name} SELECT * FROM loaded WHERE {part}");
            execute(context, &insert).await.unwrap();
            context.deregister_table("loaded").unwrap();
            if is_file {
                database.checkpoint(&table).await.unwrap();
            }
        }
        let columns: Vec<_> = columns.iter().map(|(column, ..)| *column).collect();
        let seed = seed + 100 * number as u64;
        let changes = RandomChanges {
            table: name,
            keys: unique,
            columns: &columns,
            statements: 12,
            one_in: 60,
        };
        for change in random_changes(seed, changes) {
            // Some set a column to NULL that must not be.
            if let Err(error) = execute(context, &change).await {
                assert!(error.to_string().contains("is NOT NULL"), "{change}: {error}");
            }
        }
    }
}

/// Copies the rows of all tables into another session.
pub(crate) async fn copy(from: &SessionContext, to: &SessionContext) {
    for Table { name, .. } in &TABLES {
        let rows = from.table(*name).await.unwrap();
        let schema = Arc::new(rows.schema().as_arrow().clone());
        let rows = MemTable::try_new(schema, vec![rows.collect().await.unwrap()]).unwrap();
        to.register_table(*name, Arc::new(rows)).unwrap();
    }
}

/// Writes the tables, each in a directory of its name.
pub(crate) fn write(data: &Path, seed: u64) {
    let mut random = Seeded::new(seed);
    let parents = parent_ids(&mut random);
    for (name, rows) in [
        ("parent", parent(&mut Seeded::new(seed + 1), &parents)),
        ("child", child(&mut Seeded::new(seed + 2), &parents)),
        ("item", item(&mut Seeded::new(seed + 3))),
        ("rising", rising(&mut Seeded::new(seed + 4))),
        ("falling", falling(&mut Seeded::new(seed + 5))),
    ] {
        write_files(&mut random, &data.join(name), &rows);
        write_replica(data, name, &rows);
    }
    let mut all_mixed = Vec::new();
    for (place, part) in ["north", "south", "west"].into_iter().enumerate() {
        let directory = data.join("mixed").join(format!("m_part={part}"));
        let (first, rows) = (200 * place as u64, 60 + random.below(140) as usize);
        let rows = mixed(&mut Seeded::new(seed + first), first as i64, rows);
        write_files(&mut random, &directory, &rows);
        all_mixed.push(with_column(&rows, "m_part", part));
    }
    // The replica stores the column that the table has in the names of directories.
    write_replica(data, "mixed", &concat_batches(&all_mixed[0].schema(), &all_mixed).unwrap());
    let nothing: Vec<(&str, ArrayRef)> = vec![
        ("n_id", Arc::new(Int64Array::from_iter_values([]))),
        ("n_key", Arc::new(Int64Array::from_iter_values([]))),
        ("n_text", Arc::new(StringArray::from_iter_values([""; 0]))),
    ];
    let nothing = batch(nothing);
    write_files(&mut random, &data.join("nothing"), &nothing);
    write_replica(data, "nothing", &nothing);
}

/// Writes the rows of a table in the order of another column, and its columns in the opposite order.
fn write_replica(data: &Path, name: &str, rows: &RecordBatch) {
    let table = TABLES.iter().find(|table| table.name == name).unwrap();
    let key = rows.column_by_name(table.replica_by).unwrap();
    let indices = sort_to_indices(key, None, None).unwrap();
    let sorted = take_record_batch(rows, &indices).unwrap();
    let columns: Vec<_> = (0..rows.num_columns()).rev().collect();
    let sorted = sorted.project(&columns).unwrap();
    let mut random = Seeded::new(rows.num_rows() as u64);
    write_files(&mut random, &data.join(format!("{name}_replica")), &sorted);
}

fn with_column(rows: &RecordBatch, name: &str, value: &str) -> RecordBatch {
    let schema = rows.schema();
    let names = schema.fields().iter().map(|field| field.name().as_str()).chain([name]);
    let values = StringArray::from(vec![value; rows.num_rows()]);
    let arrays = rows.columns().iter().cloned().chain([Arc::new(values) as ArrayRef]);
    batch(names.zip(arrays).collect())
}

/// Divides rows into one to four files, some of them empty, with row groups of different sizes.
fn write_files(random: &mut Seeded, directory: &Path, rows: &RecordBatch) {
    std::fs::create_dir_all(directory).unwrap();
    let mut ends: Vec<usize> =
        (0..random.below(4)).map(|_| random.below(rows.num_rows() as u64 + 1) as usize).collect();
    ends.push(rows.num_rows());
    ends.sort_unstable();
    let mut start = 0;
    for (number, end) in ends.into_iter().enumerate() {
        let group_rows = [20, 50, 100, 100, 150][random.below(5) as usize];
        let path = directory.join(format!("{number}.parquet"));
        crate::support::write(&path, &rows.slice(start, end - start), group_rows);
        start = end;
    }
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap()
}

fn parent_ids(random: &mut Seeded) -> Vec<i64> {
    let mut id = 0;
    let mut next = |_| {
        id += 1 + random.below(3) as i64;
        id
    };
    (0..300).map(&mut next).collect()
}

fn parent(random: &mut Seeded, ids: &[i64]) -> RecordBatch {
    let rows = ids.len();
    batch(vec![
        ("p_id", Arc::new(Int64Array::from(ids.to_vec()))),
        ("p_key", column::<Int64Array, _>(random, rows, 10, |random| random.below(150) as i64)),
        ("p_date", column::<Date32Array, _>(random, rows, 0, date)),
        ("p_text", column::<StringArray, _>(random, rows, 20, text)),
        ("p_price", price(random, rows)),
    ])
}

/// Zero to seven rows for each parent, and a few for parents that do not exist.
fn child(random: &mut Seeded, parents: &[i64]) -> RecordBatch {
    let (mut ids, mut lines) = (Vec::new(), Vec::new());
    for &parent in parents {
        let id = if random.below(20) == 0 { parent + 1 } else { parent };
        let first = ids.iter().rev().take_while(|&&last| last == id).count() as i32;
        for line in 0..random.below(8) as i32 {
            ids.push(id);
            lines.push(first + line);
        }
    }
    let rows = ids.len();
    batch(vec![
        ("c_parent", Arc::new(Int64Array::from(ids))),
        ("c_line", Arc::new(Int32Array::from(lines))),
        ("c_item", column::<Int64Array, _>(random, rows, 10, |random| random.below(66) as i64)),
        ("c_count", column::<Int32Array, _>(random, rows, 0, |random| random.below(50) as i32)),
        ("c_price", price(random, rows)),
        ("c_value", column::<Float64Array, _>(random, rows, 5, float)),
        ("c_flag", column::<StringArray, _>(random, rows, 0, |random| letters(random, 1))),
        ("c_date", column::<Date32Array, _>(random, rows, 5, date)),
    ])
}

fn item(random: &mut Seeded) -> RecordBatch {
    let rows = 60;
    let ids = (0..rows as i64).map(|id| id * 17 % 60);
    batch(vec![
        ("i_id", Arc::new(ids.collect::<Int64Array>())),
        ("i_key", column::<Int64Array, _>(random, rows, 20, |random| random.below(150) as i64)),
        ("i_name", column::<StringArray, _>(random, rows, 0, text)),
        ("i_value", column::<Float64Array, _>(random, rows, 30, float)),
        ("i_good", column::<BooleanArray, _>(random, rows, 10, |random| random.below(2) == 0)),
    ])
}

fn rising(random: &mut Seeded) -> RecordBatch {
    let rows = 500;
    let mut keys: Vec<Option<i64>> = (0..450).map(|_| Some(random.below(150) as i64)).collect();
    keys.sort_unstable();
    keys.resize(rows, None);
    batch(vec![
        ("r_key", Arc::new(Int64Array::from(keys))),
        ("r_id", Arc::new((0..rows as i64).map(|id| id * 7 % 500).collect::<Int64Array>())),
        ("r_text", column::<StringArray, _>(random, rows, 20, text)),
        ("r_date", column::<Date32Array, _>(random, rows, 20, date)),
    ])
}

fn falling(random: &mut Seeded) -> RecordBatch {
    let rows = 400;
    let mut dates: Vec<_> = (0..rows).map(|_| date(random)).collect();
    dates.sort_unstable_by(|left, right| right.cmp(left));
    batch(vec![
        ("f_date", Arc::new(Date32Array::from(dates))),
        ("f_id", Arc::new((0..rows as i64).map(|id| id * 3 % 400).collect::<Int64Array>())),
        ("f_key", column::<Int64Array, _>(random, rows, 10, |random| random.below(150) as i64)),
        ("f_value", column::<Float64Array, _>(random, rows, 10, float)),
    ])
}

fn mixed(random: &mut Seeded, first: i64, rows: usize) -> RecordBatch {
    let time = |random: &mut Seeded| random.below(90 * 24) as i64 * 3_600_000_000;
    batch(vec![
        ("m_id", Arc::new((first..first + rows as i64).collect::<Int64Array>())),
        ("m_key", column::<Int64Array, _>(random, rows, 30, |random| random.below(150) as i64)),
        ("m_small", column::<Int16Array, _>(random, rows, 10, |random| random.below(9) as i16 - 4)),
        ("m_unsigned", column::<UInt32Array, _>(random, rows, 5, |random| random.below(90) as u32)),
        ("m_float", column::<Float32Array, _>(random, rows, 10, |random| float(random) as f32)),
        ("m_flag", column::<BooleanArray, _>(random, rows, 30, |random| random.below(3) == 0)),
        ("m_null", column::<Int64Array, _>(random, rows, 100, |_| 0)),
        ("m_text", column::<StringArray, _>(random, rows, 10, text)),
        ("m_time", column::<TimestampMicrosecondArray, _>(random, rows, 10, time)),
    ])
}

/// Values, of which the given hundredths are NULL.
fn column<A, T>(
    random: &mut Seeded,
    rows: usize,
    nulls: u64,
    value: impl Fn(&mut Seeded) -> T,
) -> ArrayRef
where
    A: From<Vec<Option<T>>> + arrow::array::Array + 'static,
{
    let values = (0..rows).map(|_| (random.below(100) >= nulls).then(|| value(random)));
    Arc::new(A::from(values.collect::<Vec<_>>()))
}

fn price(random: &mut Seeded, rows: usize) -> ArrayRef {
    let prices = (0..rows).map(|_| (random.below(20) > 0).then(|| random.below(10_000) as i128));
    let prices: Decimal128Array = prices.collect();
    Arc::new(prices.with_precision_and_scale(10, 2).unwrap())
}

/// A day within two years.
fn date(random: &mut Seeded) -> i32 {
    9_131 + random.below(730) as i32
}

/// A multiple of a quarter, so that sums are exact in any order.
fn float(random: &mut Seeded) -> f64 {
    random.below(400) as f64 / 4.0
}

/// One of few texts, short and long, including the empty one.
fn text(random: &mut Seeded) -> String {
    let length = [0, 1, 1, 2, 2, 2, 3, 20][random.below(8) as usize];
    letters(random, length)
}

fn letters(random: &mut Seeded, length: usize) -> String {
    (0..length).fold(String::new(), |mut letters, place| {
        let letter = if place < 3 { ["a", "b", "ü", "x"][random.below(4) as usize] } else { "z" };
        write!(letters, "{letter}").unwrap();
        letters
    })
}
