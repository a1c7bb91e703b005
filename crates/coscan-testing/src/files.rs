//! Parquet files, and tables of them in memory.

use std::sync::Arc;

use arrow_array::RecordBatch;
use coscan_storage::table::{FileOptions, ParquetTable, TableFile};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

/// The bytes of a Parquet file with the rows of these batches, of which there is at least one.
#[must_use]
pub fn parquet_file(batches: &[RecordBatch], properties: WriterProperties) -> Vec<u8> {
    let rows_max = properties.max_row_group_row_count().unwrap_or(usize::MAX);
    let schema = batches[0].schema();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties)).unwrap();
    for batch in batches {
        // The writer calls itself for each row group of a batch: a large batch would overflow the stack.
        for start in (0..batch.num_rows()).step_by(rows_max) {
            writer.write(&batch.slice(start, rows_max.min(batch.num_rows() - start))).unwrap();
        }
    }
    writer.into_inner().unwrap()
}

/// Writes a Parquet file with the rows of a batch.
pub fn write_parquet(path: &std::path::Path, batch: &RecordBatch, properties: WriterProperties) {
    std::fs::write(path, parquet_file(std::slice::from_ref(batch), properties)).unwrap();
}

/// A file of a store, to be opened as a part of a table.
pub async fn table_file(store: &Arc<dyn ObjectStore>, path: &str) -> TableFile {
    let meta = store.head(&Path::from(path)).await.unwrap();
    TableFile { store: Arc::clone(store), store_url: "memory:///".parse().unwrap(), meta }
}

/// A table of one file in memory, in chunks of this many rows.
pub async fn table_in_memory(file: Vec<u8>, chunk_rows: u64) -> Arc<ParquetTable> {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    store.put(&Path::from("table.parquet"), file.into()).await.unwrap();
    let file = table_file(&store, "table.parquet").await;
    let options = FileOptions { chunk_rows, ..FileOptions::default() };
    Arc::new(ParquetTable::open(vec![file], options).await.unwrap())
}
