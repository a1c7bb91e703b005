//! Tables of tests, and their rows as text.

use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use coscan_bench::tpch;
use coscan_datafusion::CoscanOptions;
use datafusion::prelude::{SessionConfig, SessionContext};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;
use tempfile::TempDir;

/// The scale of the tables of TPC-H.
pub(crate) const SCALE: f64 = 0.01;
/// The rows of a row group.
pub(crate) const ROW_GROUP_ROWS: u64 = 2048;

/// The tables of TPC-H, in files of small row groups.
pub(crate) fn tpch_tables() -> &'static Path {
    static DATA: OnceLock<TempDir> = OnceLock::new();
    let data = DATA.get_or_init(|| {
        let (made, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (name, path) in tpch::tables(made.path(), SCALE, &|_, _| {}).unwrap() {
            let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap());
            let reader = reader.unwrap().build().unwrap();
            let rows = ROW_GROUP_ROWS as usize;
            let properties =
                WriterProperties::builder().set_max_row_group_row_count(Some(rows)).build();
            let file = File::create(data.path().join(format!("{name}.parquet"))).unwrap();
            let mut writer = ArrowWriter::try_new(file, reader.schema(), Some(properties)).unwrap();
            reader.for_each(|batch| writer.write(&batch.unwrap()).unwrap());
            writer.close().unwrap();
        }
        data
    });
    data.path()
}

/// The stored bytes of the largest row group of all tables.
pub(crate) fn row_group_bytes_max() -> u64 {
    let groups = TABLES.iter().flat_map(|name| {
        let file = File::open(tpch_tables().join(format!("{name}.parquet"))).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        reader.metadata().row_groups().to_vec()
    });
    groups.map(|group| group.compressed_size() as u64).max().unwrap()
}

/// The names of the tables of TPC-H.
pub(crate) const TABLES: [&str; 8] =
    ["lineitem", "orders", "customer", "part", "partsupp", "supplier", "nation", "region"];

/// A session on the tables of TPC-H, with coscan or without.
pub(crate) async fn tpch_session(
    partitions: usize,
    coscan: Option<&CoscanOptions>,
) -> SessionContext {
    let context =
        SessionContext::new_with_config(SessionConfig::new().with_target_partitions(partitions));
    if let Some(coscan) = coscan {
        coscan.clone().install(&context).unwrap();
    }
    for name in TABLES {
        let path = tpch_tables().join(format!("{name}.parquet")).display().to_string();
        let create = format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{path}'");
        context.sql(&create).await.unwrap().collect().await.unwrap();
    }
    context
}

/// Sets a setting of a session.
pub(crate) async fn set(session: &SessionContext, setting: &str) {
    session.sql(&format!("SET {setting}")).await.unwrap().collect().await.unwrap();
}

/// Both sides of joins are shuffled, however small they are.
pub(crate) async fn partition_joins(session: &SessionContext) {
    set(session, "datafusion.optimizer.hash_join_single_partition_threshold = 0").await;
    set(session, "datafusion.optimizer.hash_join_single_partition_threshold_rows = 0").await;
}

/// The rows as text, sorted.
pub(crate) fn sorted_rows(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter();
        let columns = columns.map(|column| ArrayFormatter::try_new(column, &options).unwrap());
        let columns: Vec<_> = columns.collect();
        let row = |row| columns.iter().map(|column| column.value(row).to_string()).collect();
        rows.extend((0..batch.num_rows()).map(row));
    }
    rows.sort_unstable();
    rows
}
