//! Tables that are sorted by a key, in several files.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use coscan_runtime::core::Index;
use coscan_runtime::storage::stores::{MeteredStore, StoreMetrics};
use coscan_runtime::storage::table::{FileOptions, ParquetTable, TableFile};
use coscan_testing::parquet_file;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

/// A store with the files of a table: `key`, `row` (its number in the table), `text` (of the row).
pub(crate) struct Clustered {
    pub files: Arc<InMemory>,
    pub metrics: Arc<StoreMetrics>,
    /// The keys of the table, row by row.
    pub keys: Vec<i64>,
    paths: Vec<Path>,
}

impl Clustered {
    /// Makes a file for each of these numbers of rows, in row groups of `group_rows` rows and data pages of a hundred.
    pub(crate) async fn new(keys: Vec<i64>, file_rows: &[usize], group_rows: usize) -> Self {
        let values = Arc::new(Int64Array::from(keys.clone()));
        let mut clustered = Self::of_values(values, file_rows, group_rows).await;
        clustered.keys = keys;
        clustered
    }

    /// Makes the files with keys of any type.
    pub(crate) async fn of_values(
        values: ArrayRef,
        file_rows: &[usize],
        group_rows: usize,
    ) -> Self {
        let files = Arc::new(InMemory::new());
        let mut paths = Vec::new();
        let mut start = 0;
        for (file, &rows) in file_rows.iter().enumerate() {
            let path = Path::from(format!("part-{file}.parquet"));
            let bytes = file_bytes(&values, start..start + rows, group_rows);
            files.put(&path, bytes.into()).await.unwrap();
            paths.push(path);
            start += rows;
        }
        assert_eq!(start, values.len(), "the files have all rows");
        Self { files, metrics: StoreMetrics::with_log(), keys: Vec::new(), paths }
    }

    /// The table, read through `wrap` around the counted files.
    pub(crate) async fn table_behind(
        &self,
        options: FileOptions,
        wrap: impl FnOnce(Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore>,
    ) -> Arc<ParquetTable> {
        let counted = MeteredStore::new(Arc::clone(&self.files) as _, Arc::clone(&self.metrics));
        let store = wrap(Arc::new(counted));
        let mut files = Vec::new();
        for path in &self.paths {
            let meta = self.files.head(path).await.unwrap();
            let store_url = "memory:///".parse().unwrap();
            files.push(TableFile { store: Arc::clone(&store), store_url, meta });
        }
        let table = ParquetTable::open(files, options).await.unwrap();
        self.metrics.reset();
        Arc::new(table)
    }

    pub(crate) async fn table(&self, options: FileOptions) -> Arc<ParquetTable> {
        self.table_behind(options, |store| store).await
    }

    /// The rows of the keys between each two of these, which ascend.
    pub(crate) fn rows_between(&self, keys: &[i64]) -> Vec<Range<u64>> {
        let row = |key: &i64| self.keys.partition_point(|other| other < key) as u64;
        keys.windows(2).map(|pair| row(&pair[0])..row(&pair[1])).collect()
    }
}

/// The value of `text` in a row.
pub(crate) fn text_of(row: i64) -> String {
    format!("this is row {row} of the table")
}

fn file_bytes(keys: &ArrayRef, rows: Range<usize>, group_rows: usize) -> Vec<u8> {
    let numbers = || rows.clone().map(|row| row as i64);
    let batch = RecordBatch::try_from_iter([
        ("key", keys.slice(rows.start, rows.len())),
        ("row", Arc::new(Int64Array::from_iter_values(numbers())) as _),
        ("text", Arc::new(StringViewArray::from_iter_values(numbers().map(text_of))) as _),
    ])
    .unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group_rows))
        .set_data_page_row_count_limit(100)
        .set_write_batch_size(50)
        .set_dictionary_enabled(false)
        .set_compression(Compression::UNCOMPRESSED)
        .build();
    parquet_file(&[batch], properties)
}

/// Bytes of all pages of some columns of a table.
pub(crate) fn column_bytes(table: &ParquetTable, columns: &[usize]) -> u64 {
    let layout = table.layout();
    let groups = columns.iter().map(|&column| table.group_of_column(column));
    let slices = groups.flat_map(|group| {
        layout.chunks().flat_map(move |chunk| layout.slice(chunk, group).iter().copied())
    });
    let mut pages: Vec<_> = slices.collect();
    pages.sort_unstable_by_key(|page| page.as_usize());
    pages.dedup();
    pages.into_iter().map(|page| layout.bytes_of(page)).sum()
}
