//! 21 queries of TPC-DS, those over `store_sales` and its dimensions, have the same answers in plain DataFusion, in
//! coscan, in coscan with a pool of two chunks, and in coscan on tables in order, with one and with four partitions.
//! The answers are those of DuckDB (`slt/tpcds/make_answers.py`).
//!
//! All queries of a configuration run at the same time, so that they share scans.

mod data;

use std::path::Path;

use coscan_runtime::Options;

use crate::support::{Answer, stored_answer};
use data::tables;

const QUERIES: usize = 21;

/// The name, the text and the answer of each query.
fn queries() -> Vec<(String, String, Answer)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../slt/tpcds");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|e| e == "sql")).collect();
    files.sort();
    assert_eq!(files.len(), QUERIES, "in {directory}");
    let query = |path: &std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let sql = std::fs::read_to_string(path).unwrap();
        (name, sql, stored_answer(&Path::new(directory).join(path.with_extension("tsv"))))
    };
    files.iter().map(query).collect()
}

async fn check(engine: &str, options: Option<Options>, in_order: bool) {
    crate::support::check(engine, tables(), options, in_order, &queries()).await;
}

fn large_pool() -> Options {
    tables().options(64 << 20)
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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn coscan_on_tables_in_order_gives_the_answers_of_duckdb() {
    check("tables in order", Some(large_pool()), true).await;
}
