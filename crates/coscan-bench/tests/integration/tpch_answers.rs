//! The 22 queries of TPC-H have the same answers in plain DataFusion, in coscan, in coscan with a pool of two chunks,
//! and in coscan on tables in order, with one and with four partitions. The answers are those of DuckDB, at scale 0.01
//! with the parameters of the validation run (`slt/tpch/make_answers.py`).
//!
//! All queries of a configuration run at the same time, so that they share scans.
//!
//! `COSCAN_TPCH_SCALE=1` runs them at another scale, with answers of DuckDB in the directory `COSCAN_TPCH_ANSWERS` if
//! that is set, else with those of plain DataFusion with one partition.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatchReader;
use coscan_bench::tpch;
use coscan_bench::tpch::queries::{TEMPLATES, Template};
use coscan_datafusion::{CoscanOptions, ManagedDatabase, ManagedStatement, run_managed_statement};
use coscan_runtime::{BufferManager, Options};
use coscan_testing::{RandomChanges, random_changes};
use datafusion::config::Dialect;
use datafusion::datasource::MemTable;
use datafusion::physical_plan::displayable;
use datafusion::prelude::SessionContext;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::support::{Answer, Tables, stored_answer, texts};

/// The scale of the stored answers.
const SCALE: f64 = 0.01;
/// The rows of a chunk at [`SCALE`], where `lineitem` has 60 thousand rows.
const CHUNK_ROWS: f64 = 2048.0;
const CHUNK_ROWS_MAX: f64 = 131_072.0;
/// The memory for operators of all queries, at scale 1.
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

/// The requested scale.
fn scale() -> f64 {
    let asked = std::env::var("COSCAN_TPCH_SCALE").ok();
    asked.map_or(SCALE, |scale| scale.parse().expect("COSCAN_TPCH_SCALE is a number"))
}

/// The tables, in files with row groups as small as chunks.
fn tables() -> Tables<'static> {
    static DATA: OnceLock<TempDir> = OnceLock::new();
    let data = DATA.get_or_init(|| {
        let (made, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (name, path) in tpch::tables(made.path(), scale(), &|_, _| {}).unwrap() {
            let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap());
            let reader = reader.unwrap().build().unwrap();
            let schema = reader.schema();
            in_directory(data.path()).write(name, schema, reader.map(Result::unwrap));
        }
        data
    });
    in_directory(data.path())
}

fn in_directory(directory: &Path) -> Tables<'_> {
    Tables {
        directory,
        keys: &KEYS,
        chunk_rows: (CHUNK_ROWS * scale() / SCALE).clamp(CHUNK_ROWS, CHUNK_ROWS_MAX) as u64,
        operator_bytes: (scale() * OPERATOR_BYTES) as u64,
    }
}

fn large_pool() -> Options {
    tables().options((64 << 20).max((scale() * 1e9) as u64))
}

async fn check(engine: &str, options: Option<Options>, in_order: bool) {
    crate::support::check(engine, tables(), options, in_order, queries().await).await;
}

/// The name, the text and the answer of each query.
async fn queries() -> &'static [(String, String, Answer)] {
    static QUERIES: OnceCell<Vec<(String, String, Answer)>> = OnceCell::const_new();
    QUERIES
        .get_or_init(|| async {
            let plain = tables().session(1, None, false).await;
            let mut queries = Vec::new();
            for template in TEMPLATES {
                let sql = template.sql(&template.validation_parameters(scale()));
                let answer = right_answer(&template, &sql, &plain).await;
                queries.push((format!("Q{}", template.number), sql, answer));
            }
            queries
        })
        .await
}

/// The answer of DuckDB. At another scale, if there is none, the answer of plain DataFusion.
async fn right_answer(template: &Template, sql: &str, plain: &SessionContext) -> Answer {
    let stored = concat!(env!("CARGO_MANIFEST_DIR"), "/../../slt/tpch").to_owned();
    let directory = match std::env::var("COSCAN_TPCH_ANSWERS") {
        Ok(directory) => Some(directory),
        Err(_) => (scale() == SCALE).then_some(stored),
    };
    if let Some(directory) = directory {
        return stored_answer(&Path::new(&directory).join(format!("q{:02}.tsv", template.number)));
    }
    let frame = plain.sql(sql).await.unwrap();
    let names = frame.schema().fields().iter().map(|field| field.name().clone()).collect();
    let batches = frame.collect().await.unwrap();
    std::iter::once(names).chain(batches.iter().flat_map(texts)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn plain_datafusion_gives_the_answers_of_duckdb() {
    check("datafusion", None, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn coscan_gives_the_answers_of_duckdb() {
    check("coscan", Some(large_pool()), false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn coscan_with_a_pool_of_two_chunks_gives_the_answers_of_duckdb() {
    check("two chunks", Some(tables().two_chunks(large_pool()).await), false).await;
}

/// The tables in a database, in which one of a hundred rows was changed, and the same rows in plain DataFusion.
async fn changed_tables() -> (SessionContext, SessionContext) {
    let (changed, plain) = (SessionContext::new(), SessionContext::new());
    let files = tables().session(1, None, false).await;
    let coscan = CoscanOptions::new(&BufferManager::new(large_pool()).unwrap());
    coscan.clone().install(&changed).unwrap();
    let database = ManagedDatabase::in_memory(coscan);
    database.add_to(&changed).unwrap();
    for (number, (name, key)) in KEYS.into_iter().enumerate() {
        let rows = files.table(name).await.unwrap();
        changed.register_table("loaded", rows.into_view()).unwrap();
        execute(&changed, &format!("CREATE TABLE {name} AS SELECT * FROM loaded")).await;
        changed.deregister_table("loaded").unwrap();
        execute(&changed, &format!("VACUUM FULL {name}")).await;
        let schema = files.table(name).await.unwrap().schema().clone();
        let columns: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let loaded = changed.table(name).await.unwrap().count().await.unwrap();
        let changes = RandomChanges {
            table: name,
            keys: &[key],
            columns: &columns,
            statements: 10,
            one_in: 997,
        };
        for change in random_changes(number as u64, changes) {
            execute(&changed, &change).await;
        }
        if loaded > 10_000 {
            assert_ne!(changed.table(name).await.unwrap().count().await.unwrap(), loaded, "{name}");
        }
        let rows = changed.table(name).await.unwrap();
        let schema = Arc::new(rows.schema().as_arrow().clone());
        let rows = MemTable::try_new(schema, vec![rows.collect().await.unwrap()]).unwrap();
        plain.register_table(name, Arc::new(rows)).unwrap();
    }
    (changed, plain)
}

async fn execute(context: &SessionContext, sql: &str) {
    let state = context.state();
    let statement = state.sql_to_statement(sql, &Dialect::Generic).unwrap();
    match run_managed_statement(context, statement).await.unwrap() {
        ManagedStatement::Executed(_) => {}
        ManagedStatement::Plan(plan) => {
            let rows = context.execute_logical_plan(plan).await.unwrap();
            rows.collect().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changed_tables_give_the_answers_of_plain_datafusion_on_their_rows() {
    let (changed, plain) = changed_tables().await;
    let mut queries = Vec::new();
    for template in TEMPLATES {
        let sql = template.sql(&template.validation_parameters(scale()));
        let frame = plain.sql(&sql).await.unwrap();
        let names = frame.schema().fields().iter().map(|field| field.name().clone()).collect();
        let batches = frame.collect().await.unwrap();
        let answer = std::iter::once(names).chain(batches.iter().flat_map(texts)).collect();
        queries.push((format!("Q{}", template.number), sql, answer));
    }
    crate::support::check_session("changed tables", &changed, &queries).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn coscan_on_tables_in_order_gives_the_answers_of_duckdb() {
    for partitions in [1, 4] {
        let context = tables().session(partitions, Some(large_pool()), true).await;
        let joins_in_order = "SELECT count(*) FROM orders, lineitem WHERE o_orderkey = l_orderkey";
        let plan = context.sql(joins_in_order).await.unwrap().create_physical_plan().await.unwrap();
        let plan = displayable(plan.as_ref()).indent(false).to_string();
        // With one partition, the engine always joins by hash, which needs no order.
        assert_eq!(plan.matches("needed_by=SortMergeJoin").count(), 2 * (partitions / 4), "{plan}");
    }
    check("tables in order", Some(large_pool()), true).await;
}
