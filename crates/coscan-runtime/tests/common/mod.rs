//! Small tables in memory, behind whatever store a test wants.
#![allow(dead_code, clippy::unwrap_used)]

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use coscan_runtime::ScanStream;
use coscan_runtime::core::PolicyKind;
use coscan_runtime::storage::stores::{MeteredStore, StoreMetrics};
use coscan_runtime::storage::table::{ParquetTable, TableFile, TableOptions};
use coscan_runtime::{BufferManager, Options, ScanError};
use futures::TryStreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

/// Rows of a chunk of the test table.
pub const CHUNK_ROWS: u64 = 1000;

/// The bytes of a Parquet file of `rows` rows: `id` counts from 0, `twice` is the double, `text` spells it out.
pub fn file_bytes(rows: u64) -> Vec<u8> {
    let fields =
        [("id", DataType::Int64), ("twice", DataType::Int64), ("text", DataType::Utf8View)];
    let fields: Vec<_> =
        fields.into_iter().map(|(name, kind)| Field::new(name, kind, false)).collect();
    let schema = Arc::new(Schema::new(fields));
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(CHUNK_ROWS as usize))
        .set_dictionary_enabled(false)
        .build();
    let mut writer =
        ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties)).unwrap();
    let ids = 0..i64::try_from(rows).unwrap();
    let batch = RecordBatch::try_new(
        schema,
        vec![
            Arc::new(Int64Array::from_iter_values(ids.clone())),
            Arc::new(Int64Array::from_iter_values(ids.clone().map(|id| id * 2))),
            Arc::new(StringViewArray::from_iter_values(ids.map(text_of))),
        ],
    );
    writer.write(&batch.unwrap()).unwrap();
    writer.into_inner().unwrap()
}

/// What column `text` holds for an id.
pub fn text_of(id: i64) -> String {
    format!("row number {id} of the table")
}

/// A store with one test file, and what is asked of it.
pub struct Fixture {
    pub files: Arc<InMemory>,
    pub metrics: Arc<StoreMetrics>,
    pub rows: u64,
}

impl Fixture {
    pub async fn new(rows: u64) -> Self {
        let files = Arc::new(InMemory::new());
        files.put(&Path::from("table.parquet"), file_bytes(rows).into()).await.unwrap();
        Self { files, metrics: StoreMetrics::with_log(), rows }
    }

    /// The table, read through `store` around the counted files.
    pub async fn table_behind(
        &self,
        wrap: impl FnOnce(Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore>,
    ) -> Arc<ParquetTable> {
        let counted = MeteredStore::new(Arc::clone(&self.files) as _, Arc::clone(&self.metrics));
        let meta = self.files.head(&Path::from("table.parquet")).await.unwrap();
        let file = TableFile {
            store: wrap(Arc::new(counted)),
            store_url: "memory:///".parse().unwrap(),
            meta,
        };
        let options = TableOptions { chunk_rows: CHUNK_ROWS, ..TableOptions::default() };
        let table = ParquetTable::open(vec![file], options).await.unwrap();
        self.metrics.reset();
        Arc::new(table)
    }

    pub async fn table(&self) -> Arc<ParquetTable> {
        self.table_behind(|store| store).await
    }

    pub fn all_rows(&self) -> Range<u64> {
        0..self.rows
    }
}

/// A manager with a policy and a pool of this many bytes.
pub fn manager(policy: PolicyKind, pool_bytes: u64) -> BufferManager {
    BufferManager::new(Options::with_pool_bytes(pool_bytes, 4 << 20).policy(policy)).unwrap()
}

/// The values of the first column, an `Int64`, in the order in which they came.
pub async fn ids(stream: ScanStream) -> Result<Vec<i64>, ScanError> {
    let batches: Vec<RecordBatch> = stream.try_collect().await?;
    Ok(batches.iter().flat_map(|batch| int64s(batch, 0)).collect())
}

/// The values of an `Int64` column.
pub fn int64s(batch: &RecordBatch, column: usize) -> Vec<i64> {
    let array = batch.column(column).as_any().downcast_ref::<Int64Array>().unwrap();
    (0..array.len()).map(|row| array.value(row)).collect()
}

/// Sorted.
pub fn sorted(mut values: Vec<i64>) -> Vec<i64> {
    values.sort_unstable();
    values
}
