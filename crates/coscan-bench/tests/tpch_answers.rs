//! The 22 queries of TPC-H have the same answers in plain DataFusion, in coscan, in coscan with a pool of two chunks,
//! and in coscan on tables in order, with one and with four partitions. The answers at scale 0.01 with the parameters
//! of the validation run are those of DuckDB (`slt/tpch/make_answers.py`).
//!
//! All queries of a configuration run at the same time, so that they share scans.
//!
//! `COSCAN_TPCH_SCALE=1` runs them at another scale; the answers are then those of plain DataFusion with one partition.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use coscan_bench::tpch;
use coscan_bench::tpch::queries::{TEMPLATES, Template};
use coscan_core::GroupIndex;
use coscan_datafusion::{Coscan, SharedTableProvider};
use coscan_runtime::{BufferManager, Options};
use coscan_storage::table::FileOptions;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// The scale of the stored answers.
const SCALE: f64 = 0.01;
/// At [`SCALE`], where `lineitem` has 60 thousand rows.
const CHUNK_ROWS: f64 = 2048.0;
const CHUNK_ROWS_MAX: f64 = 131_072.0;
const DECODE_BYTES: u64 = 256 << 20;
/// For operators of all queries, at scale 1.
const OPERATOR_BYTES: f64 = 6e9;

/// The tables by the column whose order their rows have.
const KEYS: [(&str, &str); 8] = [
    ("lineitem", "l_orderkey"),
    ("orders", "o_orderkey"),
    ("customer", "c_custkey"),
    ("part", "p_partkey"),
    ("partsupp", "ps_partkey"),
    ("supplier", "s_suppkey"),
    ("nation", "n_nationkey"),
    ("region", "r_regionkey"),
];

/// The scale asked for.
fn scale() -> f64 {
    let asked = std::env::var("COSCAN_TPCH_SCALE").ok();
    asked.map_or(SCALE, |scale| scale.parse().expect("COSCAN_TPCH_SCALE is a number"))
}

/// Rows of a chunk, and of a row group.
fn chunk_rows() -> u64 {
    (CHUNK_ROWS * scale() / SCALE).clamp(CHUNK_ROWS, CHUNK_ROWS_MAX) as u64
}

/// The tables, in files with row groups as small as chunks.
fn data() -> &'static Path {
    static DATA: OnceLock<TempDir> = OnceLock::new();
    DATA.get_or_init(|| {
        let (made, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (name, path) in tpch::tables(made.path(), scale(), &|_, _| {}).unwrap() {
            divide(&path, &data.path().join(format!("{name}.parquet")));
        }
        data
    })
    .path()
}

fn divide(from: &Path, to: &Path) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(from).unwrap()).unwrap();
    let rows = chunk_rows() as usize;
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(rows)).build();
    let mut writer =
        ArrowWriter::try_new(File::create(to).unwrap(), reader.schema().clone(), Some(properties))
            .unwrap();
    for batch in reader.with_batch_size(rows).build().unwrap() {
        writer.write(&batch.unwrap()).unwrap();
    }
    writer.close().unwrap();
}

/// A session on the tables. With `in_order`, these declare the order of their rows, and joins that can use it do.
async fn session(partitions: usize, options: Option<Options>, in_order: bool) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(partitions);
    config.options_mut().optimizer.prefer_hash_join = !in_order;
    let context = SessionContext::new_with_config(config);
    if let Some(options) = options {
        let manager = BufferManager::new(options).unwrap();
        let table_options = FileOptions { chunk_rows: chunk_rows(), ..FileOptions::default() };
        let coscan = Coscan::new(&manager).with_table_options(table_options);
        coscan.with_direct_bytes_max(0).install(&context).unwrap();
    }
    for (name, key) in KEYS {
        let order = if in_order { format!("WITH ORDER ({key} ASC)") } else { String::new() };
        let path = data().join(format!("{name}.parquet")).display().to_string();
        let create =
            format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET {order} LOCATION '{path}'");
        context.sql(&create).await.unwrap().collect().await.unwrap();
    }
    context
}

/// A pool of this size, and memory for the operators of all queries.
fn options(pool_bytes: u64) -> Options {
    let usual = Options::with_pool_bytes(pool_bytes, DECODE_BYTES);
    let operator_bytes = (scale() * OPERATOR_BYTES) as u64;
    Options { memory_bytes: usual.memory_bytes + operator_bytes, ..usual }
}

fn large_pool() -> Options {
    options((64 << 20).max((scale() * 1e9) as u64))
}

/// Runs all queries at the same time and compares each answer with the one that is right.
async fn check(engine: &str, context: &SessionContext) {
    let running = TEMPLATES.map(|template| {
        let context = context.clone();
        let sql = template.sql(&template.validation_parameters());
        let answer = async move { context.sql(&sql).await?.collect().await };
        (template, tokio::spawn(answer))
    });
    let mut differences = Vec::new();
    for (template, answer) in running {
        let compared = match answer.await.unwrap() {
            Ok(answer) => compare(&right_answer(&template).await, &answer),
            Err(error) => Err(error.to_string()),
        };
        if let Err(difference) = compared {
            differences.push(format!("Q{} on {engine}: {difference}", template.number));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The names of the columns, then the rows: those of DuckDB, or at another scale those of plain DataFusion.
async fn right_answer(template: &Template) -> Vec<Vec<String>> {
    static PLAIN: OnceCell<SessionContext> = OnceCell::const_new();
    if scale() == SCALE {
        return stored_answer(template);
    }
    let context = PLAIN.get_or_init(|| session(1, None, false)).await;
    let sql = template.sql(&template.validation_parameters());
    let frame = context.sql(&sql).await.unwrap();
    let names = frame.schema().fields().iter().map(|field| field.name().clone()).collect();
    let batches = frame.collect().await.unwrap();
    std::iter::once(names).chain(batches.iter().flat_map(texts)).collect()
}

/// The rows of a batch as text.
fn texts(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::new().with_null("NULL");
    let columns = batch.columns().iter();
    let columns = columns.map(|array| ArrayFormatter::try_new(array.as_ref(), &options).unwrap());
    let columns: Vec<_> = columns.collect();
    let row = |row| columns.iter().map(|column| column.value(row).to_string()).collect();
    (0..batch.num_rows()).map(row).collect()
}

fn stored_answer(template: &Template) -> Vec<Vec<String>> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../slt/tpch");
    let path: PathBuf = [directory, &format!("q{:02}.tsv", template.number)].iter().collect();
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// Compares rows in their order: no query has equal rows by its order. Integers, dates and texts must be equal. The
/// engines have other types for quotients, with as few as six decimals, so numbers with a fraction may differ by 1e-6,
/// or by a part of 1e-9 if that is more.
fn compare(expected: &[Vec<String>], actual: &[RecordBatch]) -> Result<(), String> {
    let (names, expected) = expected.split_first().unwrap();
    let mut rows = expected.iter();
    for batch in actual {
        let schema = batch.schema();
        let columns: Vec<_> = schema.fields().iter().map(|field| field.name().clone()).collect();
        if columns != *names {
            return Err(format!("expected columns {names:?}, got {columns:?}"));
        }
        for values in texts(batch) {
            let Some(expected) = rows.next() else {
                return Err(format!("more rows than {}: {values:?}", expected.len()));
            };
            let equal = |(array, (expected, actual)): (&dyn Array, (&String, &String))| {
                expected == actual || has_fraction(array) && are_near(expected, actual)
            };
            let arrays = batch.columns().iter().map(AsRef::as_ref);
            if expected.len() != values.len()
                || !arrays.zip(expected.iter().zip(&values)).all(equal)
            {
                return Err(format!("expected {expected:?}, got {values:?}"));
            }
        }
    }
    rows.next().map_or(Ok(()), |missing| Err(format!("no row {missing:?}")))
}

fn has_fraction(array: &dyn Array) -> bool {
    array.data_type().is_floating() || matches!(array.data_type(), DataType::Decimal128(..))
}

fn are_near(expected: &str, actual: &str) -> bool {
    let (Ok(expected), Ok(actual)) = (expected.parse::<f64>(), actual.parse::<f64>()) else {
        return false;
    };
    (expected - actual).abs() <= f64::max(1e-6, 1e-9 * expected.abs())
}

/// The largest stored size of a chunk with all its columns.
async fn chunk_bytes_max(context: &SessionContext) -> u64 {
    let mut bytes_max = 0;
    for (name, _) in KEYS {
        let provider = context.table_provider(name).await.unwrap();
        let shared = provider.downcast_ref::<SharedTableProvider>().unwrap();
        let shared = shared.table().await.unwrap();
        let layout = shared.table().layout();
        for chunk in layout.chunks() {
            let groups = (0..layout.group_count() as u32).map(GroupIndex);
            let pages = groups.flat_map(|group| layout.slice(chunk, group).to_vec());
            bytes_max = bytes_max.max(pages.map(|page| layout.bytes_of(page)).sum());
        }
    }
    bytes_max
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn plain_datafusion_gives_the_answers_of_duckdb() {
    for partitions in [1, 4] {
        check("datafusion", &session(partitions, None, false).await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn coscan_gives_the_answers_of_duckdb() {
    for partitions in [1, 4] {
        check("coscan", &session(partitions, Some(large_pool()), false).await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn coscan_with_a_pool_of_two_chunks_gives_the_answers_of_duckdb() {
    let pool_bytes = 2 * chunk_bytes_max(&session(1, Some(large_pool()), false).await).await;
    for partitions in [1, 4] {
        let options = Some(options(pool_bytes));
        check("two chunks", &session(partitions, options, false).await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn coscan_on_tables_in_order_gives_the_answers_of_duckdb() {
    for partitions in [1, 4] {
        let context = session(partitions, Some(large_pool()), true).await;
        let joins_in_order = "SELECT count(*) FROM orders, lineitem WHERE o_orderkey = l_orderkey";
        let plan = context.sql(joins_in_order).await.unwrap().create_physical_plan().await.unwrap();
        let plan = displayable(plan.as_ref()).indent(false).to_string();
        // With one partition, the engine joins by hash whatever it prefers, and that needs no order.
        assert_eq!(plan.matches("needed_by=SortMergeJoin").count(), 2 * (partitions / 4), "{plan}");
        check("tables in order", &context).await;
    }
}
