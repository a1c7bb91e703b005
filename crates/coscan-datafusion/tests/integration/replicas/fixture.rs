//! Table `t`, in the order of `id`, with replica `by_day`.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::compute::{sort_to_indices, take_record_batch};
use coscan_datafusion::CoscanOptions;
use coscan_runtime::core::PolicyKind;
use coscan_storage::stores::{DirectFileStore, StoreMetrics};
use coscan_testing::write_parquet;
use datafusion::prelude::SessionContext;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::WriterProperties;
use tempfile::TempDir;

use crate::support::{TABLE_OPTIONS, counted, plain, run};

/// The number of rows of the table, in chunks of a hundred.
pub(crate) const ROWS: i64 = 4000;

/// The columns of `t`: `id` in order, `day` in none, `key` with few values and NULLs, and `text`.
pub(crate) fn rows() -> RecordBatch {
    let ids = 0..ROWS;
    let column = |value: &dyn Fn(i64) -> Option<i64>| -> ArrayRef {
        Arc::new(ids.clone().map(value).collect::<Int64Array>())
    };
    let texts = ids.clone().map(|id| Some(format!("text {id:05}")));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", column(&Some)),
        ("day", column(&|id| Some(id * 2777 % ROWS))),
        ("key", column(&|id| (id % 7 > 0).then_some(id % 13))),
        ("text", Arc::new(texts.collect::<StringArray>())),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, values)| (name, values, name == "key")),
    )
    .unwrap()
}

/// Sorts rows by a column.
pub(crate) fn sorted_by(rows: &RecordBatch, column: &str) -> RecordBatch {
    let indices = sort_to_indices(rows.column_by_name(column).unwrap(), None, None).unwrap();
    take_record_batch(rows, &indices).unwrap()
}

/// Writes row groups of a hundred rows that declare to be sorted by a column.
pub(crate) fn write_sorted(path: &Path, batch: &RecordBatch, column: i32) {
    let key = SortingColumn { column_idx: column, descending: false, nulls_first: false };
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(100))
        .set_dictionary_enabled(false)
        .set_sorting_columns(Some(vec![key]))
        .build();
    write_parquet(path, batch, properties);
}

/// A session in which `t` has replica `by_day`, the metrics of reads from its files, and the directory of `t.parquet`
/// and `by_day.parquet`.
pub(crate) struct Fixture {
    pub(crate) data: TempDir,
    pub(crate) context: SessionContext,
    pub(crate) coscan: CoscanOptions,
    pub(crate) reads: Arc<StoreMetrics>,
}

impl Fixture {
    /// Creates the fixture with all scans shared.
    pub(crate) async fn new() -> Self {
        Self::with(|coscan| coscan.with_direct_bytes_max(0)).await
    }

    /// Creates the fixture. `adjust` changes the installed options.
    pub(crate) async fn with(adjust: impl FnOnce(CoscanOptions) -> CoscanOptions) -> Self {
        let fixture = Self::without_tables(adjust);
        let path = |name: &str| fixture.data.path().join(name);
        crate::support::write(&path("t.parquet"), &rows(), 100);
        crate::support::write(&path("by_day.parquet"), &sorted_by(&rows(), "day"), 100);
        fixture.create("t.parquet", "by_day.parquet").await;
        fixture.reads.reset();
        fixture
    }

    pub(crate) fn without_tables(adjust: impl FnOnce(CoscanOptions) -> CoscanOptions) -> Self {
        let data = tempfile::tempdir().unwrap();
        let (stores, reads) = counted(DirectFileStore::new());
        let coscan =
            CoscanOptions::new(&crate::support::manager(PolicyKind::Relevance)).with_stores(stores);
        let coscan = adjust(coscan.with_table_options(TABLE_OPTIONS));
        let context = plain();
        coscan.clone().install(&context).unwrap();
        Self { data, context, coscan, reads }
    }

    /// The statement that creates `t` from a file or directory with replicas.
    pub(crate) fn statement(&self, table: &str, replicas: &str) -> String {
        let data = self.data.path().display();
        let replicas: Vec<_> =
            replicas.split(", ").map(|replica| format!("{data}/{replica}")).collect();
        format!(
            "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{data}/{table}' \
             OPTIONS ('replicas' '{}')",
            replicas.join(", ")
        )
    }

    pub(crate) async fn create(&self, table: &str, replicas: &str) {
        run(&self.context, &self.statement(table, replicas)).await;
    }

    /// The error of a statement that creates `t`.
    pub(crate) async fn refusal(&self, table: &str, replicas: &str) -> String {
        let statement = self.statement(table, replicas);
        let made = crate::support::slt::run(&self.context, &statement).await;
        made.unwrap_err().strip_backtrace()
    }

    /// A session of plain DataFusion with `t`.
    pub(crate) async fn plain(&self) -> SessionContext {
        let context = plain();
        crate::support::create(&context, "t", &self.data.path().join("t.parquet")).await;
        context
    }

    /// The text of EXPLAIN about the replica of each scan of a query.
    pub(crate) async fn replicas(&self, sql: &str) -> Vec<String> {
        let text = crate::support::explain(&self.context, &format!("EXPLAIN {sql}")).await;
        let scans = text.split("SharedScanExec: ").skip(1);
        let replica = |scan: &str| {
            let (_, rest) = scan.split_once("replica=")?;
            Some(rest[..rest.find(')')? + 1].to_owned())
        };
        scans.map(|scan| replica(scan).unwrap_or_default()).collect()
    }

    /// The names in [`Self::replicas`].
    pub(crate) async fn chosen(&self, sql: &str) -> Vec<String> {
        let name = |replica: String| replica.split(' ').next().unwrap_or_default().to_owned();
        self.replicas(sql).await.into_iter().map(name).collect()
    }
}
