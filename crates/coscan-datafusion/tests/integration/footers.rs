//! Unused footers are dropped when memory is short, and read again when they are needed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use coscan_datafusion::{CoscanOptions, SharedTableProvider};
use coscan_runtime::core::PolicyKind;
use coscan_runtime::{BufferManager, Options};
use coscan_storage::stores::{DirectFileStore, StoreMetrics};
use coscan_storage::table::ParquetTable;
use datafusion::prelude::{ParquetReadOptions, SessionContext, col};

use crate::support::{TABLE_OPTIONS, counted, create, explain, manager, plain, plan, run};

const TABLES: i64 = 10;
const COLUMNS: i64 = 60;
const ROWS: i64 = 500;

/// Writes a file that is mostly footer, with few rows of many columns in small row groups.
fn write(path: &Path, first: i64) {
    let column = |column: i64| -> (String, ArrayRef) {
        let values = (0..ROWS).map(|row| first + row + column);
        (format!("c{column}"), Arc::new(values.collect::<Int64Array>()))
    };
    let batch = RecordBatch::try_from_iter((0..COLUMNS).map(column)).unwrap();
    crate::support::write(path, &batch, 20);
}

fn path(data: &Path, table: i64) -> std::path::PathBuf {
    data.join(format!("t{table}.parquet"))
}

fn session(manager: &BufferManager) -> (SessionContext, Arc<StoreMetrics>) {
    let (stores, metrics) = counted(DirectFileStore::new());
    let context = plain();
    let coscan = CoscanOptions::new(manager).with_stores(stores).with_table_options(TABLE_OPTIONS);
    coscan.with_direct_bytes_max(0).install(&context).unwrap();
    (context, metrics)
}

/// The memory that one footer takes.
async fn footer_bytes(data: &Path) -> u64 {
    write(&path(data, 0), 0);
    let manager = manager(PolicyKind::Relevance);
    let (context, _) = session(&manager);
    create(&context, "t0", &path(data, 0)).await;
    manager.report().metadata_bytes
}

fn sum(table: i64) -> i64 {
    (0..ROWS).map(|row| 1000 * table + row + 7).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_whose_footers_do_not_fit_into_memory_all_answer() {
    let data = tempfile::tempdir().unwrap();
    let one = footer_bytes(data.path()).await;
    let options = Options { idle_timeout: Duration::MAX, ..Options::with_memory_bytes(4 * one) };
    let manager = BufferManager::new(options).unwrap();
    let (context, metrics) = session(&manager);
    for table in 0..TABLES {
        write(&path(data.path(), table), 1000 * table);
        create(&context, &format!("t{table}"), &path(data.path(), table)).await;
        assert!(manager.report().metadata_bytes <= 4 * one);
    }
    for round in 0..2 {
        for table in 0..TABLES {
            let rows = run(&context, &format!("SELECT sum(c7) FROM t{table}")).await;
            assert_eq!(rows, [sum(table).to_string()], "round {round}, table {table}");
            assert!(manager.report().metadata_bytes <= 4 * one);
        }
    }
    let report = manager.report();
    assert!(
        report.metadata_bytes >= one && report.held_bytes_max <= report.memory_bytes,
        "{report:?}"
    );
    let (last, before) = (TABLES - 1, metrics.snapshot());
    run(&context, &format!("SELECT sum(c7) FROM t{last}")).await;
    assert_eq!(metrics.snapshot().requests, before.requests, "what was used last is still there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn footers_give_way_to_operators_but_not_while_a_plan_uses_them() {
    let data = tempfile::tempdir().unwrap();
    let one = footer_bytes(data.path()).await;
    let manager = BufferManager::new(Options::with_memory_bytes(16 * one)).unwrap();
    let (context, metrics) = session(&manager);
    for table in 0..3 {
        write(&path(data.path(), table), 1000 * table);
        create(&context, &format!("t{table}"), &path(data.path(), table)).await;
    }
    let in_use = plan(&context, "SELECT c7 FROM t1").await;
    let held = manager.report().metadata_bytes;
    let memory = manager.operator_memory();
    // This leaves the floor of the pool and one footer.
    let bytes = 15 * one - one - one / 2;
    assert!(memory.try_take(bytes), "{:?}", manager.report());
    let left = manager.report().metadata_bytes;
    assert!(left < held && left >= one, "{left} of {held}");
    memory.give(bytes);
    let reads = metrics.snapshot().requests;
    let rows = datafusion::physical_plan::collect(in_use, context.task_ctx()).await.unwrap();
    assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), ROWS as usize);
    assert!(metrics.snapshot().requests > reads);
    for table in 0..3 {
        let rows = run(&context, &format!("SELECT sum(c7) FROM t{table}")).await;
        assert_eq!(rows, [sum(table).to_string()]);
    }
    assert!(manager.report().metadata_bytes > left, "they were read again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_replaced_after_its_footer_was_dropped_is_an_error_until_it_is_listed_again() {
    let data = tempfile::tempdir().unwrap();
    let one = footer_bytes(data.path()).await;
    let manager = BufferManager::new(Options::with_memory_bytes(16 * one)).unwrap();
    let (context, _) = session(&manager);
    create(&context, "t0", &path(data.path(), 0)).await;
    run(&context, "SELECT sum(c7) FROM t0").await;
    let memory = manager.operator_memory();
    let bytes = 14 * one + one / 2;
    assert!(memory.try_take(bytes));
    memory.give(bytes);
    assert!(manager.report().metadata_bytes < one / 4, "what core knows of the table stays");
    write(&path(data.path(), 0), 5000);
    let error =
        crate::support::slt::run(&context, "SELECT sum(c7) FROM t0").await.unwrap_err().to_string();
    assert!(error.contains("changed"), "{error}");
    coscan_datafusion::refresh(&context, "t0").await.unwrap();
    assert_eq!(run(&context, "SELECT sum(c7) FROM t0").await, [sum(5).to_string()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn footers_of_the_engines_own_tables_give_way_while_pages_stay() {
    let data = tempfile::tempdir().unwrap();
    let one = footer_bytes(data.path()).await;
    let options = Options {
        idle_timeout: Duration::MAX,
        pool_bytes_min: 4 * one,
        ..Options::with_memory_bytes(16 * one)
    };
    let manager = BufferManager::new(options).unwrap();
    let (context, metrics) = session(&manager);
    for table in 0..3 {
        let path = path(data.path(), table);
        write(&path, 1000 * table);
        let (path, options) = (path.display().to_string(), ParquetReadOptions::default());
        context.register_parquet(format!("t{table}"), path, options).await.unwrap();
    }
    let query = async |table: i64| {
        let sql = format!("SELECT sum(c7) FROM t{table} WHERE c7 >= 0");
        assert_eq!(run(&context, &sql).await, [sum(table).to_string()]);
    };
    for table in 0..3 {
        query(table).await;
    }
    assert!(manager.report().metadata_bytes >= 3 * one, "more than a part of the budget");
    let (pages, memory) = (manager.report().pool_held_bytes, manager.operator_memory());
    assert!(pages > 0, "{:?}", manager.report());
    // Tasks of the last query that are about to end hold its footer until then.
    let taken = async {
        while !memory.try_take(11 * one) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let taken = tokio::time::timeout(Duration::from_secs(60), taken).await;
    assert!(taken.is_ok(), "{:?}", manager.report());
    assert!(manager.report().metadata_bytes < 2 * one, "{:?}", manager.report());
    assert_eq!(manager.report().pool_held_bytes, pages);
    memory.give(11 * one);
    let read = metrics.snapshot().bytes;
    for table in 0..3 {
        query(table).await;
    }
    assert_eq!(metrics.snapshot().bytes, read, "the session has the footers, the pool the pages");
    assert!(manager.report().metadata_bytes >= 3 * one, "they are there again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn footers_of_registered_tables_are_counted_and_give_way() {
    let data = tempfile::tempdir().unwrap();
    let one = footer_bytes(data.path()).await;
    let options = Options { pool_bytes_min: 4 * one, ..Options::with_memory_bytes(16 * one) };
    let manager = BufferManager::new(options).unwrap();
    let location = [path(data.path(), 0).display().to_string()];
    let table = ParquetTable::open_locations(manager.stores(), &location, TABLE_OPTIONS).await;
    let table = manager.register(Arc::new(table.unwrap()));
    let any = SharedTableProvider::new(&manager, &table).unwrap();
    assert_eq!(manager.report().metadata_bytes, one);
    let ordered = any.with_orders(&[vec![col("c7").sort(true, false)]]).await.unwrap();
    let (context, _) = session(&manager);
    context.register_table("t", Arc::new(any)).unwrap();
    context.register_table("o", Arc::new(ordered)).unwrap();
    let queries = ["SELECT sum(c7) FROM t WHERE c7 >= 0", "SELECT sum(c7) FROM o WHERE c7 >= 0"];
    assert_eq!(run(&context, queries[0]).await, [sum(0).to_string()]);
    let pages = manager.report().pool_held_bytes;
    let memory = manager.operator_memory();
    assert!(!memory.try_take(12 * one), "the program holds the table: {:?}", manager.report());
    drop(table);
    // This leaves the memory that core takes for the table. The query's last task may end a moment
    // after its rows.
    let most = 12 * one - one / 4;
    let taken = async {
        while !memory.try_take(most) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let taken = tokio::time::timeout(Duration::from_secs(60), taken).await;
    assert!(taken.is_ok(), "{:?}", manager.report());
    let report = manager.report();
    assert!(report.metadata_bytes < one / 4 && report.pool_held_bytes == pages, "{report:?}");
    memory.give(most);
    for sql in queries {
        assert_eq!(run(&context, sql).await, [sum(0).to_string()]);
    }
    assert!(
        explain(&context, "EXPLAIN SELECT c7 FROM o ORDER BY c7").await.contains("order=table")
    );
}
