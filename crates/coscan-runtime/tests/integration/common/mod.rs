//! Small tables in memory, behind any store that a test provides.

pub(crate) mod clustered;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{Array, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use coscan_runtime::ScanStream;
use coscan_runtime::core::PolicyKind;
use coscan_runtime::storage::stores::{MeteredStore, StoreMetrics};
use coscan_runtime::storage::table::{FileOptions, ParquetTable, TableFile};
use coscan_runtime::{BufferManager, ManagerReport, Options, ScanError};
use coscan_testing::{Faults, parquet_file};
use futures::TryStreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use tokio::runtime::Handle;

/// Rows of a chunk of the test table.
pub(crate) const CHUNK_ROWS: u64 = 1000;

/// A size that is enough for everything.
pub(crate) const LARGE: u64 = 64 << 20;

/// The bytes of a Parquet file of `rows` rows: `id` counts from 0, `twice` is the double, `text` spells it out.
pub(crate) fn file_bytes(rows: u64, compression: Compression) -> Vec<u8> {
    paged_file_bytes(rows, compression, CHUNK_ROWS as usize)
}

/// The bytes of the file in data pages of `page_rows` rows. The more there are, the more chunks a row group can be
/// split into.
pub(crate) fn paged_file_bytes(rows: u64, compression: Compression, page_rows: usize) -> Vec<u8> {
    grouped_file_bytes(rows, compression, page_rows, CHUNK_ROWS as usize)
}

/// The bytes of the file in row groups of `group_rows` rows.
pub(crate) fn grouped_file_bytes(
    rows: u64,
    compression: Compression,
    page_rows: usize,
    group_rows: usize,
) -> Vec<u8> {
    let fields =
        [("id", DataType::Int64), ("twice", DataType::Int64), ("text", DataType::Utf8View)];
    let fields: Vec<_> =
        fields.into_iter().map(|(name, kind)| Field::new(name, kind, false)).collect();
    let schema = Arc::new(Schema::new(fields));
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group_rows))
        .set_data_page_row_count_limit(page_rows)
        .set_write_batch_size(page_rows)
        .set_dictionary_enabled(false)
        .set_compression(compression)
        .build();
    let ids = 0..i64::try_from(rows).unwrap();
    let batch = RecordBatch::try_new(
        schema,
        vec![
            Arc::new(Int64Array::from_iter_values(ids.clone())),
            Arc::new(Int64Array::from_iter_values(ids.clone().map(|id| id * 2))),
            Arc::new(StringViewArray::from_iter_values(ids.map(text_of))),
        ],
    );
    parquet_file(&[batch.unwrap()], properties)
}

/// The value of column `text` for an id.
pub(crate) fn text_of(id: i64) -> String {
    format!("row number {id} of the table")
}

/// A store with one test file, and counts of the requests to it.
pub(crate) struct Fixture {
    pub files: Arc<InMemory>,
    pub metrics: Arc<StoreMetrics>,
    pub rows: u64,
}

impl Fixture {
    pub(crate) async fn new(rows: u64) -> Self {
        Self::of_bytes(rows, file_bytes(rows, Compression::UNCOMPRESSED)).await
    }

    /// A fixture with a file that is made elsewhere.
    pub(crate) async fn of_bytes(rows: u64, bytes: Vec<u8>) -> Self {
        let fixture = Self { files: Arc::default(), metrics: StoreMetrics::with_log(), rows };
        fixture.replace_file(bytes).await;
        fixture
    }

    /// Puts other bytes in place of the file.
    pub(crate) async fn replace_file(&self, bytes: Vec<u8>) {
        self.files.put(&Path::from("table.parquet"), bytes.into()).await.unwrap();
    }

    /// The table, read through `store` around the counted files.
    pub(crate) async fn table_behind(
        &self,
        wrap: impl FnOnce(Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore>,
    ) -> Arc<ParquetTable> {
        self.table_of_chunks(CHUNK_ROWS, wrap).await
    }

    /// The table in chunks of this number of rows. A row group of the file has [`CHUNK_ROWS`].
    pub(crate) async fn table_of_chunks(
        &self,
        chunk_rows: u64,
        wrap: impl FnOnce(Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore>,
    ) -> Arc<ParquetTable> {
        self.table_opened(FileOptions { chunk_rows, ..FileOptions::default() }, wrap).await
    }

    /// The table, opened with these options.
    pub(crate) async fn table_opened(
        &self,
        options: FileOptions,
        wrap: impl FnOnce(Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore>,
    ) -> Arc<ParquetTable> {
        let counted = MeteredStore::new(Arc::clone(&self.files) as _, Arc::clone(&self.metrics));
        let meta = self.files.head(&Path::from("table.parquet")).await.unwrap();
        let file = TableFile {
            store: wrap(Arc::new(counted)),
            store_url: "memory:///".parse().unwrap(),
            meta,
        };
        let table = ParquetTable::open(vec![file], options).await.unwrap();
        self.metrics.reset();
        Arc::new(table)
    }

    /// The table, and what goes wrong when it is read: nothing so far.
    pub(crate) async fn table_with_faults(&self) -> (Faults, Arc<ParquetTable>) {
        let faults = Faults::default();
        let table = self.table_behind(|store| faults.around(store)).await;
        (faults, table)
    }

    pub(crate) async fn table(&self) -> Arc<ParquetTable> {
        self.table_behind(|store| store).await
    }

    pub(crate) fn all_rows(&self) -> Range<u64> {
        0..self.rows
    }
}

/// A manager that reads on the runtime of the test, whose clock may be a virtual one.
pub(crate) fn manager_with(options: Options) -> BufferManager {
    BufferManager::on_runtime(options, &Handle::current()).unwrap()
}

/// A manager with a policy and a pool of this many bytes.
pub(crate) fn manager(policy: PolicyKind, pool_bytes: u64) -> BufferManager {
    manager_with(Options::with_pool_bytes(pool_bytes, 4 << 20).policy(policy))
}

/// Bytes of memory that a manager counts for a table that is registered with it.
pub(crate) fn registered_bytes(table: &Arc<ParquetTable>) -> u64 {
    let manager = manager_with(Options::with_pool_bytes(LARGE, LARGE));
    let _registered = manager.register(Arc::clone(table));
    manager.report().metadata_bytes
}

/// Stored bytes of all columns of the largest chunk: the smallest pool that serves every scan.
pub(crate) fn largest_chunk_bytes(table: &ParquetTable) -> u64 {
    let layout = table.layout();
    let columns = 0..table.schema().fields().len();
    let groups: Vec<_> = columns.map(|column| table.group_of_column(column)).collect();
    let pages = |chunk| groups.iter().flat_map(move |&group| layout.slice(chunk, group).iter());
    let bytes = |chunk| pages(chunk).map(|&page| layout.bytes_of(page)).sum();
    layout.chunks().map(bytes).max().unwrap_or(0)
}

/// The bytes of a column of a row group in the test file.
pub(crate) fn column_range(table: &ParquetTable, row_group: usize, column: usize) -> Range<u64> {
    let (start, length) =
        table.parquet_metadata(0).row_group(row_group).column(column).byte_range();
    start..start + length
}

/// The values of the first column, an `Int64`, in the order in which they came. Batches are dropped as they come.
pub(crate) async fn ids(stream: ScanStream) -> Result<Vec<i64>, ScanError> {
    let take = |mut ids: Vec<i64>, batch: RecordBatch| async move {
        ids.extend(int64s(&batch, 0));
        Ok(ids)
    };
    stream.try_fold(Vec::new(), take).await
}

/// The values of an `Int64` column.
pub(crate) fn int64s(batch: &RecordBatch, column: usize) -> Vec<i64> {
    let array = batch.column(column).as_any().downcast_ref::<Int64Array>().unwrap();
    (0..array.len()).map(|row| array.value(row)).collect()
}

/// The values, sorted.
pub(crate) fn sorted(mut values: Vec<i64>) -> Vec<i64> {
    values.sort_unstable();
    values
}

/// Whether these are the ids of these rows, in any order.
pub(crate) fn are_rows(ids: Result<Vec<i64>, ScanError>, rows: Range<u64>) -> bool {
    sorted(ids.unwrap()).into_iter().eq(rows.start as i64..rows.end as i64)
}

/// The result, which must come, since nothing may hang. With the clock paused the hour passes at once.
pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    let hour = Duration::from_secs(3600);
    tokio::time::timeout(hour, work).await.expect("nothing hangs")
}

/// Waits until something is so.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    in_time(async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

/// Asserts that the manager holds nothing once the loads in flight have ended.
pub(crate) async fn assert_free(manager: &BufferManager) {
    assert_idle(manager).await;
    manager.evict_unneeded();
    let report = manager.report();
    assert_eq!((report.pool_held_bytes, report.decoded_bytes), (0, 0));
}

/// Asserts that the manager holds nothing but pages and idle columns once the loads in flight have ended.
pub(crate) async fn assert_idle(manager: &BufferManager) {
    until(|| manager.report().loads_in_flight == 0).await;
    // What was kept decoded goes with its file, which is released in steps.
    let is_idle = |report: ManagerReport| report.decoded_bytes == report.decoded_idle_bytes;
    until(|| is_idle(manager.report())).await;
    let report = manager.report();
    assert_eq!(
        (report.scans, report.chunks_in_use, report.operator_bytes),
        (0, 0, 0),
        "{report:?}"
    );
    assert!(report.held_bytes_max <= report.memory_bytes, "{report:?}");
}
