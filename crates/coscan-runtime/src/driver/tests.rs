#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use coscan_storage::table::{FileOptions, ParquetTable, TableFile};
use futures::{FutureExt, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::ArrowWriter;
use tokio::runtime::Handle;

use super::handle::Driver;
use crate::{BufferManager, Options, ScanError};

const ROWS: usize = 1000;

async fn table() -> Arc<ParquetTable> {
    let ids = Int64Array::from_iter_values(0..ROWS as i64);
    let batch = RecordBatch::try_from_iter([("id", Arc::new(ids) as _)]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let path = Path::from("table.parquet");
    store.put(&path, writer.into_inner().unwrap().into()).await.unwrap();
    let meta = store.head(&path).await.unwrap();
    let file = TableFile { store, store_url: "memory:///".parse().unwrap(), meta };
    Arc::new(ParquetTable::open(vec![file], FileOptions::default()).await.unwrap())
}

/// As if core had found a broken invariant.
fn panic_inside(driver: &Arc<Driver>) {
    let panicked = catch_unwind(AssertUnwindSafe(|| driver.command(|_, _| panic!("on purpose"))));
    panicked.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_panic_inside_fails_all_scans_and_leaves_no_worker_waiting() {
    let manager =
        BufferManager::on_runtime(Options::with_memory_bytes(1 << 20), &Handle::current()).unwrap();
    let table = manager.register(table().await);
    let driver = manager.operator_memory().driver;
    let mut working = manager.scan(&table, &[0], &[0..ROWS as u64]).unwrap();
    working.next().await.unwrap().unwrap();
    // No load ends before the panic: no other task runs.
    manager.evict_unneeded();
    let mut waiting = manager.scan(&table, &[0], &[0..ROWS as u64]).unwrap();
    assert!(waiting.next().now_or_never().is_none());
    let idle = manager.scan(&table, &[0], &[0..ROWS as u64]).unwrap();

    panic_inside(&driver);
    for mut stream in [working, waiting, idle] {
        let answer = stream.next().await;
        assert!(matches!(answer, Some(Err(ScanError::Broken))), "{answer:?}");
        assert!(stream.next().await.is_none());
    }
    let refused = manager.scan(&table, &[0], &[0..ROWS as u64]).unwrap_err();
    assert!(refused.to_string().contains("make a new one"), "{refused}");
    // As if the panic had come while a table was being registered.
    assert!(driver.registering(|_, _| ()).is_none());
    let late = manager.register(Arc::clone(table.table()));
    assert!(matches!(manager.scan(&late, &[0], &[]), Err(ScanError::Broken)));
    drop(late);
    // Late returns and reports find nothing to break.
    drop(table);
    tokio::task::yield_now().await;
    let report = manager.report();
    assert_eq!((report.scans, report.decoded_bytes, report.pool_held_bytes), (0, 0, 0));
}
