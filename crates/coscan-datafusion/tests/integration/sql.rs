//! Every file in `slt/` gives the same rows on plain DataFusion, on coscan, on coscan with a pool of two chunks, on
//! coscan with the partitions of each scan executed one by one, on coscan with tables that the engine made, and without
//! sharing.

use std::path::PathBuf;
use std::sync::Arc;

use coscan_datafusion::CoscanOptions;
use coscan_runtime::core::PolicyKind;
use coscan_runtime::{BufferManager, Options};
use datafusion::datasource::listing_table_factory::ListingTableFactory;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::support::slt::run_file;

const DECODE_BYTES: u64 = 256 << 20;

fn files() -> Vec<PathBuf> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../slt");
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|ending| ending == "slt")).collect();
    files.sort();
    assert!(!files.is_empty(), "there are files in {directory}");
    files
}

fn session() -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(4).with_batch_size(64);
    SessionContext::new_with_config(config)
}

async fn run_all(engine: &str, context: impl AsyncFn(&PathBuf) -> SessionContext) {
    for file in files() {
        let data = tempfile::tempdir().unwrap();
        run_file(&file, engine, &context(&file).await, data.path()).await;
    }
}

/// A session with coscan that shares every scan.
fn coscan(options: Options) -> SessionContext {
    let manager = BufferManager::new(options).unwrap();
    let coscan = CoscanOptions::new(&manager).with_table_options(crate::support::TABLE_OPTIONS);
    installed(coscan.with_direct_bytes_max(0))
}

fn installed(coscan: CoscanOptions) -> SessionContext {
    let context = session();
    coscan.install(&context).unwrap();
    context
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn plain_datafusion_gives_the_expected_rows() {
    run_all("plain", async |_| session()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn coscan_gives_the_same_rows_whatever_the_policy() {
    for policy in PolicyKind::ALL {
        let options = Options::with_pool_bytes(64 << 20, DECODE_BYTES).policy(policy);
        run_all("coscan", async |_| coscan(options.clone())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scans_that_evaluate_filters_give_the_same_rows() {
    run_all("coscan", async |_| {
        let context = coscan(Options::with_pool_bytes(64 << 20, DECODE_BYTES));
        crate::support::run(&context, "SET datafusion.execution.parquet.pushdown_filters = true")
            .await;
        context
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn partitions_executed_one_by_one_give_the_same_rows() {
    let options = Options::with_pool_bytes(64 << 20, DECODE_BYTES);
    run_all("one-by-one", async |_| {
        let context = coscan(options.clone());
        crate::support::share_no_results(&context).await; // Or aggregations read scans chunk by chunk.
        context
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tables_that_the_engine_made_give_the_same_rows() {
    let manager = crate::support::manager(PolicyKind::Relevance);
    let of_engine = async |_: &PathBuf| {
        let coscan = CoscanOptions::new(&manager).with_table_options(crate::support::TABLE_OPTIONS);
        let context = installed(coscan.with_direct_bytes_max(0));
        let factory = Arc::new(ListingTableFactory::new());
        context.state_ref().write().table_factories_mut().insert("PARQUET".to_owned(), factory);
        context
    };
    run_all("listing-tables", of_engine).await;
    let decoded = manager.report().slices_decoded;
    assert!(decoded > 1000, "scans are shared: {decoded} slices were decoded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn coscan_that_may_leave_scans_to_the_engine_gives_the_same_rows() {
    // Chunks have the default size, so a whole file is one chunk, of which a filter needs a few row
    // groups or pages.
    let manager = crate::support::manager(PolicyKind::Relevance);
    run_all("direct", async |_| installed(CoscanOptions::new(&manager))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_that_share_nothing_give_the_same_rows() {
    let manager = crate::support::manager(PolicyKind::Relevance);
    let unshared = async |_: &PathBuf| {
        let coscan = CoscanOptions::new(&manager).with_table_options(crate::support::TABLE_OPTIONS);
        let context = installed(coscan);
        crate::support::run(&context, "SET coscan.sharing = false").await;
        context
    };
    run_all("unshared", unshared).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn coscan_with_a_pool_of_two_chunks_gives_the_same_rows() {
    let two_chunks = async |file: &PathBuf| {
        let data = tempfile::tempdir().unwrap();
        let large = coscan(Options::with_pool_bytes(64 << 20, DECODE_BYTES));
        run_file(file, "coscan", &large, data.path()).await;
        let pool_bytes = 2 * crate::support::chunk_bytes_max(&large).await;
        coscan(Options::with_pool_bytes(pool_bytes.max(64), DECODE_BYTES))
    };
    run_all("two-chunks", two_chunks).await;
}
