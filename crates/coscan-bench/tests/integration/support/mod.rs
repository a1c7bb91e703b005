//! Helpers for tests of stored answers: tables of small chunks, sessions on them, and answers as text.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use coscan_core::GroupIndex;
use coscan_datafusion::{CoscanOptions, SharedTableProvider};
use coscan_runtime::{BufferManager, Options};
use coscan_storage::table::FileOptions;
use datafusion::prelude::{SessionConfig, SessionContext};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

const DECODE_BYTES: u64 = 256 << 20;

/// The names of the columns, then the rows.
pub(crate) type Answer = Vec<Vec<String>>;

/// Tables, each stored in a Parquet file.
#[derive(Clone, Copy)]
pub(crate) struct Tables<'a> {
    /// The directory of the files.
    pub directory: &'a Path,
    /// The tables by the column whose order their rows have.
    pub keys: &'a [(&'static str, &'static str)],
    pub chunk_rows: u64,
    /// Memory for the operators of all queries.
    pub operator_bytes: u64,
}

impl Tables<'_> {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.parquet"))
    }

    /// Writes a table in row groups as small as chunks.
    pub(crate) fn write(
        &self,
        name: &str,
        schema: SchemaRef,
        batches: impl Iterator<Item = RecordBatch>,
    ) {
        let rows = self.chunk_rows as usize;
        let properties =
            WriterProperties::builder().set_max_row_group_row_count(Some(rows)).build();
        let file = File::create(self.path(name)).unwrap();
        let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).unwrap();
        for batch in batches {
            // The writer recurses for each row group of a batch.
            for start in (0..batch.num_rows()).step_by(rows) {
                writer.write(&batch.slice(start, rows.min(batch.num_rows() - start))).unwrap();
            }
        }
        writer.close().unwrap();
    }

    /// A session with coscan, or without it if there are no options. With `in_order`, the tables declare the order of
    /// their rows, and joins that can use it do so.
    pub(crate) async fn session(
        &self,
        partitions: usize,
        options: Option<Options>,
        in_order: bool,
    ) -> SessionContext {
        let mut config = SessionConfig::new().with_target_partitions(partitions);
        config.options_mut().optimizer.prefer_hash_join = !in_order;
        let context = SessionContext::new_with_config(config);
        if let Some(options) = options {
            let manager = BufferManager::new(options).unwrap();
            let table_options =
                FileOptions { chunk_rows: self.chunk_rows, ..FileOptions::default() };
            let coscan = CoscanOptions::new(&manager).with_table_options(table_options);
            coscan.with_direct_bytes_max(0).install(&context).unwrap();
        }
        for (name, key) in self.keys {
            let order = if in_order { format!("WITH ORDER ({key} ASC)") } else { String::new() };
            let path = self.path(name).display().to_string();
            let create =
                format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET {order} LOCATION '{path}'");
            context.sql(&create).await.unwrap().collect().await.unwrap();
        }
        context
    }

    /// Options with a pool of this size, and memory for the operators of all queries.
    pub(crate) fn options(&self, pool_bytes: u64) -> Options {
        let usual = Options::with_pool_bytes(pool_bytes, DECODE_BYTES);
        Options { memory_bytes: usual.memory_bytes + self.operator_bytes, ..usual }
    }

    /// Options with a pool of two chunks of the table with the largest ones.
    pub(crate) async fn two_chunks(&self, large_pool: Options) -> Options {
        let context = self.session(1, Some(large_pool), false).await;
        let mut bytes_max = 0;
        for (name, _) in self.keys {
            let provider = context.table_provider(*name).await.unwrap();
            let shared = provider.downcast_ref::<SharedTableProvider>().unwrap();
            let shared = shared.table().await.unwrap();
            let layout = shared.table().layout();
            for chunk in layout.chunks() {
                let groups = (0..layout.group_count() as u32).map(GroupIndex);
                let pages = groups.flat_map(|group| layout.slice(chunk, group).to_vec());
                bytes_max = bytes_max.max(pages.map(|page| layout.bytes_of(page)).sum());
            }
        }
        self.options(2 * bytes_max)
    }
}

/// Runs queries on sessions with one and with four partitions ([`Tables::session`]).
pub(crate) async fn check(
    engine: &str,
    tables: Tables<'_>,
    options: Option<Options>,
    in_order: bool,
    queries: &[(String, String, Answer)],
) {
    for partitions in [1, 4] {
        let context = tables.session(partitions, options.clone(), in_order).await;
        check_session(engine, &context, queries).await;
    }
}

/// Runs queries at the same time, so that they share scans, and compares each answer with the expected one.
pub(crate) async fn check_session(
    engine: &str,
    context: &SessionContext,
    queries: &[(String, String, Answer)],
) {
    let running = queries.iter().map(|(name, sql, right)| {
        let (context, sql) = (context.clone(), sql.clone());
        let answer = async move { context.sql(&sql).await?.collect().await };
        (name, right, tokio::spawn(answer))
    });
    let mut differences = Vec::new();
    for (name, right, answer) in running.collect::<Vec<_>>() {
        let compared = match answer.await.unwrap() {
            Ok(answer) => compare(right, &answer),
            Err(error) => Err(error.to_string()),
        };
        if let Err(difference) = compared {
            differences.push(format!("{name} on {engine}: {difference}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Reads an answer of DuckDB, which has values separated by tabs.
pub(crate) fn stored_answer(path: &Path) -> Answer {
    let text = std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// The rows of a batch as text.
pub(crate) fn texts(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::new().with_null("NULL");
    let columns = batch.columns().iter();
    let columns = columns.map(|array| ArrayFormatter::try_new(array.as_ref(), &options).unwrap());
    let columns: Vec<_> = columns.collect();
    let row = |row| columns.iter().map(|column| column.value(row).to_string()).collect();
    (0..batch.num_rows()).map(row).collect()
}

/// Compares rows in their order, which is unique in all queries. Integers, dates and texts must be equal. The engines
/// have different types for quotients, with as few as six decimals, so numbers with a fraction may differ by 1e-6, or
/// by a part of 1e-9 if that is more.
fn compare(expected: &[Vec<String>], actual: &[RecordBatch]) -> Result<(), String> {
    let (names, expected) = expected.split_first().unwrap();
    let mut rows = expected.iter();
    for batch in actual {
        let schema = batch.schema();
        let columns: Vec<_> = schema.fields().iter().map(|field| field.name().clone()).collect();
        if columns != *names {
            return Err(format!("expected columns {names:?}, got {columns:?}"));
        }
        for values in texts(batch) {
            let Some(expected) = rows.next() else {
                return Err(format!("more rows than {}: {values:?}", expected.len()));
            };
            let equal = |(array, (expected, actual)): (&dyn Array, (&String, &String))| {
                expected == actual || has_fraction(array) && are_near(expected, actual)
            };
            let arrays = batch.columns().iter().map(AsRef::as_ref);
            if expected.len() != values.len()
                || !arrays.zip(expected.iter().zip(&values)).all(equal)
            {
                return Err(format!("expected {expected:?}, got {values:?}"));
            }
        }
    }
    rows.next().map_or(Ok(()), |missing| Err(format!("no row {missing:?}")))
}

fn has_fraction(array: &dyn Array) -> bool {
    array.data_type().is_floating() || matches!(array.data_type(), DataType::Decimal128(..))
}

fn are_near(expected: &str, actual: &str) -> bool {
    let (Ok(expected), Ok(actual)) = (expected.parse::<f64>(), actual.parse::<f64>()) else {
        return false;
    };
    (expected - actual).abs() <= f64::max(1e-6, 1e-9 * expected.abs())
}
