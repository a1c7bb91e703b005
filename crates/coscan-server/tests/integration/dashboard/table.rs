//! A small table in memory.

use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use coscan_runtime::storage::table::{FileOptions, ParquetTable, TableFile};
use coscan_runtime::{BufferManager, SharedTable};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

const CHUNK_ROWS: usize = 1000;
pub(crate) const CHUNKS: usize = 8;

/// A table of two columns and [`CHUNKS`] chunks.
pub(crate) async fn table(manager: &BufferManager) -> SharedTable {
    let ids = Arc::new(Int64Array::from_iter_values(0..(CHUNKS * CHUNK_ROWS) as i64));
    let batch = RecordBatch::try_from_iter([("id", Arc::clone(&ids) as _), ("same", ids as _)]);
    let batch = batch.unwrap();
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(CHUNK_ROWS)).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let path = Path::from("numbers.parquet");
    store.put(&path, writer.into_inner().unwrap().into()).await.unwrap();
    let meta = store.head(&path).await.unwrap();
    let file = TableFile { store, store_url: "memory:///".parse().unwrap(), meta };
    let options = FileOptions { chunk_rows: CHUNK_ROWS as u64, ..FileOptions::default() };
    manager.register(Arc::new(ParquetTable::open(vec![file], options).await.unwrap()))
}
