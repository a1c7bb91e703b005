//! One experiment: the same streams of queries on several engines, with equal answers.
//!
//! [`Experiment::prepare`] opens the table and draws the streams, [`Prepared::standalone`] times each kind of query
//! alone, [`Prepared::run`] runs the streams on one engine.

mod run;
mod touched;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use coscan_core::{Index, PageIndex};
use coscan_storage::table::{FileOptions, ParquetTable, TableFile};

use crate::engines::Source;
use crate::runner::EngineError;
use crate::workload::{ConstantChoice, KEY, Kind, Stream, StreamGroup, WorkloadOptions};
pub use run::EngineRun;
use touched::{ChunkKeys, Role, Touched, touched_pages};

/// The size of coscan's pool of stored pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PoolSize {
    /// This many bytes.
    Bytes(u64),
    /// This part of the bytes that the queries touch, each counted once, but at least one chunk of them.
    PartOfTouched(f64),
}

/// The experiment: workload, data and device.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The table and the device.
    pub source: Source,
    /// The name of the table in queries.
    pub table: String,
    /// The location of `orders`, in the same store, for queries that read it.
    pub orders: Option<String>,
    /// The streams that run at the same time.
    pub groups: Vec<StreamGroup>,
    /// The constants of the queries.
    pub constants: ConstantChoice,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The time between the starts of two streams. `None` for a tenth of the time that the longest query takes alone
    /// (CS07 has 3 s at 35 s).
    pub stagger: Option<Duration>,
    /// The size of coscan's pool.
    pub pool: PoolSize,
    /// coscan's memory for decoded columns, in bytes.
    pub decode_bytes: u64,
    /// coscan's memory for joins, aggregates and sorts, in bytes, in addition to both. Plain DataFusion has no limit.
    pub operator_bytes: u64,
    /// The options of coscan's table: the size of chunks and the layout of pages.
    pub table_options: FileOptions,
    /// Whether every engine reads all data that the queries touch once before it is measured.
    pub warm: bool,
}

/// An experiment whose table is open.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The workload.
    pub experiment: Experiment,
    /// The streams. They all start at the same time until the stagger is known.
    pub streams: Vec<Stream>,
    /// The bytes that the queries touch, each counted once. Without streams, the bytes of all columns.
    pub touched_bytes: u64,
    /// The maximum of these bytes in one chunk, which is the smallest pool that serves all queries.
    pub chunk_bytes_max: u64,
    /// The bytes of the whole table.
    pub table_bytes: u64,
    /// The number of rows of the table.
    pub table_rows: u64,
    /// The number of chunks of the table.
    pub chunk_count: usize,
    /// The smallest and the largest key, or `None` without streams.
    pub keys: Option<RangeInclusive<i64>>,
}

impl Experiment {
    /// Opens the table and draws the streams.
    ///
    /// # Errors
    /// If the table cannot be opened or has no integer column `l_orderkey`, or there is nothing to run.
    pub async fn prepare(self) -> Result<Prepared, EngineError> {
        let table = self.open_table(&self.source.location).await?;
        let chunks = ChunkKeys::new(&table, Role::Lineitem)?;
        let first = chunks.min.iter().flatten().min();
        let (Some(first), Some(last)) = (first, chunks.max.iter().flatten().max()) else {
            return Err(
                format!("column {KEY} has no statistics; write the files with statistics").into()
            );
        };
        let workload = WorkloadOptions {
            groups: self.groups.clone(),
            constants: self.constants,
            seed: self.seed,
            stagger: self.stagger.unwrap_or_default(),
            keys: first..=last,
        };
        let streams = workload.streams()?;
        if is_any(&streams, |kind| kind == Kind::Ordered) && !chunks.are_in_order() {
            return Err(format!(
                "the rows are not in the order of {KEY}; sort the files, or leave out queries in order (O)"
            )
            .into());
        }
        let touched = touched_pages(&table, Role::Lineitem, &chunks, &streams)?;
        let orders = self.touched_of_orders(&streams).await?;
        let mut prepared = self.prepared(&table, &touched);
        prepared.touched_bytes += orders.bytes;
        prepared.chunk_bytes_max = prepared.chunk_bytes_max.max(orders.chunk_bytes_max);
        Ok(Prepared { streams, keys: Some(first..=last), ..prepared })
    }

    /// The parts of `orders` that the queries touch.
    async fn touched_of_orders(&self, streams: &[Stream]) -> Result<Touched, EngineError> {
        if !is_any(streams, Kind::reads_orders) {
            return Ok(Touched::default());
        }
        let Some(location) = &self.orders else {
            return Err("some queries read orders; say where that table is (--orders)".into());
        };
        let table = self.open_table(location).await?;
        let chunks = ChunkKeys::new(&table, Role::Orders)?;
        let pages = touched_pages(&table, Role::Orders, &chunks, streams)?;
        Ok(Touched::new(table.layout(), &pages))
    }

    /// Opens the table for queries of the caller, which may be on any Parquet table. There are no streams.
    ///
    /// # Errors
    /// If the table cannot be opened.
    pub async fn prepare_without_streams(self) -> Result<Prepared, EngineError> {
        let table = self.open_table(&self.source.location).await?;
        let pages = (0..table.layout().page_count()).map(PageIndex::from_usize).collect();
        Ok(self.prepared(&table, &pages))
    }

    async fn open_table(&self, location: &str) -> Result<ParquetTable, EngineError> {
        let source = Source { location: location.to_owned(), device: self.source.device.clone() };
        let listing = source.list().await?;
        let file = |meta| TableFile {
            store: Arc::clone(&listing.store),
            store_url: listing.store_url.clone(),
            meta,
        };
        let files = listing.files.iter().cloned().map(file).collect();
        Ok(ParquetTable::open(files, self.table_options).await?)
    }

    /// The experiment without streams on a table of which these pages are touched.
    fn prepared(self, table: &ParquetTable, touched: &BTreeSet<PageIndex>) -> Prepared {
        let layout = table.layout();
        let touched = Touched::new(layout, touched);
        Prepared {
            streams: Vec::new(),
            touched_bytes: touched.bytes,
            chunk_bytes_max: touched.chunk_bytes_max,
            table_bytes: table.parquet_files().iter().map(|file| file.version().size()).sum(),
            table_rows: layout.row_count(),
            chunk_count: layout.chunk_count(),
            keys: None,
            experiment: self,
        }
    }
}

fn is_any(streams: &[Stream], is: impl Fn(Kind) -> bool) -> bool {
    let mut queries = streams.iter().flat_map(|stream| &stream.queries);
    queries.any(|query| is(query.kind))
}
