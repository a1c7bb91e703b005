//! Tables that change, beside the same tables at rest: what merging changes costs a scan, how many rows a second are
//! changed, what a checkpoint takes, how long opening takes, streams of queries while all of that goes on, and the throughput
//! test of TPC-H beside its refresh functions.

mod merging;
mod rates;
mod refresh;
mod report;
mod section;
mod streams;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coscan_datafusion::{
    CoscanOptions, DatabaseOptions, ManagedDatabase, ManagedStatement, run_managed_statement,
};
use coscan_runtime::{BufferManager, Options};
use coscan_storage::stores::{LimitedStore, Limits, Stores};
use datafusion::arrow::array::RecordBatch;
use datafusion::prelude::{SessionConfig, SessionContext};
use object_store::local::LocalFileSystem;
use url::Url;

use crate::runner::EngineError;

pub use report::{
    CheckpointTimes, MergingReport, OpeningReport, RateReport, RefreshReport, StreamsReport,
    UpdatesReport,
};
pub use section::{Section, UnknownSection};

/// Measurements of a database of its own, in a directory that is made for them.
#[derive(Clone, Debug)]
pub struct Updates {
    /// What is measured.
    pub sections: BTreeSet<Section>,
    /// The scale factor of TPC-H.
    pub scale_factor: f64,
    /// The name and the file of each of its tables.
    pub tables: Vec<(&'static str, PathBuf)>,
    /// The directory of the database, which must not exist.
    pub directory: PathBuf,
    /// The memory of coscan, in bytes.
    pub memory_bytes: u64,
    /// Runs of each query whose processor time is measured.
    pub rounds: usize,
    /// How long each rate is measured, in seconds.
    pub seconds: f64,
    /// Streams of queries that run beside changes.
    pub streams: usize,
    /// Queries of each stream.
    pub queries: usize,
    /// The bandwidth of the device for these streams, in bytes a second.
    pub bandwidth: Option<u64>,
}

impl Updates {
    /// Runs the measurements. `on_step` is told what is being measured, `on_section` the measures of each section.
    ///
    /// # Errors
    /// If the database cannot be written, or an answer is not that of its snapshot.
    pub async fn run(
        &self,
        on_step: &dyn Fn(&str),
        on_section: &dyn Fn(&str),
    ) -> Result<UpdatesReport, EngineError> {
        let has = |section| self.sections.contains(&section);
        let mut report = UpdatesReport::default();
        let opened = Opened::new(&self.directory, self.memory_bytes, None).await?;
        on_step("loading lineitem");
        let Some((_, lineitem)) = self.tables.iter().find(|(name, _)| *name == "lineitem") else {
            return Err("there is no table lineitem".into());
        };
        let load = format!("CREATE TABLE rest AS SELECT * FROM '{}'", lineitem.display());
        opened.run(&load).await?;
        opened.run("CREATE TABLE changed AS SELECT * FROM rest").await?;
        if has(Section::Queries) {
            report.merging = merging::measure(&opened, self.rounds, on_step).await?;
            on_section(&MergingReport::table(&report.merging));
        }
        if has(Section::Checkpoint) {
            on_step("a checkpoint");
            opened.run("UPDATE changed SET l_tax = l_tax WHERE l_linenumber = 1").await?;
            let times = opened.checkpoint("changed").await?;
            on_section(&times.to_string());
            report.checkpoint = Some(times);
        }
        if has(Section::Statements) {
            report.rates = rates::measure(&opened, self.seconds, on_step).await?;
            on_section(&RateReport::table(&report.rates));
        }
        on_step("opening the database again");
        drop(opened);
        let opening = Opened::time(&self.directory, self.memory_bytes).await?;
        on_section(&opening.to_string());
        report.opening = Some(opening);
        if has(Section::Streams) {
            on_step("streams beside changes");
            let streams = streams::measure(self).await?;
            on_section(&streams.to_string());
            report.streams = Some(streams);
        }
        if has(Section::Refresh) {
            let refresh = refresh::measure(self, on_step).await?;
            on_section(&refresh.to_string());
            report.refresh = Some(refresh);
        }
        Ok(report)
    }
}

/// A database that is open, and a session on it.
struct Opened {
    manager: BufferManager,
    coscan: CoscanOptions,
    database: ManagedDatabase,
    context: SessionContext,
}

impl Opened {
    /// Opens the database without work in the background, on a device of this bandwidth.
    async fn new(
        directory: &Path,
        memory_bytes: u64,
        bandwidth: Option<u64>,
    ) -> Result<Self, EngineError> {
        let manager = BufferManager::new(Options::with_memory_bytes(memory_bytes))?;
        let mut coscan = CoscanOptions::new(&manager);
        if let Some(bytes_per_second) = bandwidth {
            let limits = Limits { bytes_per_second: Some(bytes_per_second), ..Limits::default() };
            let stores = Stores::new();
            let local = Arc::new(LocalFileSystem::new());
            stores.register(&Url::parse("file:///")?, Arc::new(LimitedStore::new(local, limits)));
            coscan = coscan.with_stores(stores);
        }
        let options = DatabaseOptions {
            background: false,
            checkpoint_bytes_per_second: None,
            ..DatabaseOptions::default()
        };
        let database = ManagedDatabase::open_with(coscan.clone(), directory, options).await?;
        let context = session(&coscan, &database)?;
        Ok(Self { manager, coscan, database, context })
    }

    /// Another session on its tables.
    fn session(&self) -> Result<SessionContext, EngineError> {
        session(&self.coscan, &self.database)
    }

    /// Opens the database and closes it, and says how long that took.
    async fn time(directory: &Path, memory_bytes: u64) -> Result<OpeningReport, EngineError> {
        let log_bytes = std::fs::read_dir(directory.join("wal"))?
            .map(|entry| entry.and_then(|entry| entry.metadata()).map(|file| file.len()))
            .sum::<Result<u64, _>>()?;
        let start = std::time::Instant::now();
        drop(Self::new(directory, memory_bytes, None).await?);
        Ok(OpeningReport { segment_bytes: log_bytes, seconds: start.elapsed().as_secs_f64() })
    }

    async fn run(&self, sql: &str) -> Result<Vec<RecordBatch>, EngineError> {
        execute(&self.context, sql).await
    }

    /// Checkpoints a table, and says how long that took.
    async fn checkpoint(&self, table: &str) -> Result<CheckpointTimes, EngineError> {
        let Some(table) = self.database.table(table)? else {
            return Err(format!("there is no table {table}").into());
        };
        let start = std::time::Instant::now();
        let counts = self.database.checkpoint(&table).await?;
        Ok(CheckpointTimes { rows: counts.rows_written, seconds: start.elapsed().as_secs_f64() })
    }
}

/// A session on the tables of a database.
fn session(
    coscan: &CoscanOptions,
    database: &ManagedDatabase,
) -> Result<SessionContext, EngineError> {
    let config = SessionConfig::new().with_target_partitions(crate::process::cores());
    let context = SessionContext::new_with_config(config).enable_url_table();
    coscan.clone().install(&context)?;
    database.add_to(&context)?;
    Ok(context)
}

/// Executes a statement, as a shell does.
async fn execute(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>, EngineError> {
    let state = context.state();
    let dialect = state.config().options().sql_parser.dialect;
    let statement = state.sql_to_statement(sql, &dialect)?;
    match run_managed_statement(context, statement).await? {
        ManagedStatement::Executed(batches) => Ok(batches),
        ManagedStatement::Plan(plan) => {
            Ok(context.execute_logical_plan(plan).await?.collect().await?)
        }
    }
}
