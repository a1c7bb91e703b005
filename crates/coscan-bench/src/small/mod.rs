//! Streams of small queries on small tables, including joins. Sharing gains little for them, so that coscan must not
//! cost anything.
//!
//! Each round draws new queries and runs them on each engine. The engines alternate in going first. Engines are kept
//! for all rounds, as in a server. Ratios are computed within a round, so that disturbances of the machine affect both
//! sides.

mod queries;
mod report;
mod round;

use std::path::PathBuf;
use std::sync::Arc;

use coscan_runtime::Options;
use coscan_storage::table::FileOptions;

use crate::engines::{Device, EngineKind, SqlEngine, Tables};
use crate::runner::{Engine, EngineError};
use report::Tally;
use round::{Round, run_round};

pub use queries::{SmallQueries, SmallQuery};
pub use report::{SmallKindReport, SmallRatios, SmallReport};

/// The experiment: workload, data and device.
#[derive(Debug, Clone)]
pub struct Small {
    /// The name and the file of each table.
    pub tables: Vec<(&'static str, PathBuf)>,
    /// The TPC-H scale factor of all tables.
    pub scale_factor: f64,
    /// The device that they are read from.
    pub device: Device,
    /// coscan's pool, in bytes.
    pub pool_bytes: u64,
    /// coscan's memory for decoded columns, in bytes.
    pub decode_bytes: u64,
    /// The options of coscan's tables: the size of chunks and the layout of pages.
    pub table_options: FileOptions,
    /// Whether a query of each kind runs on every engine before the first round.
    pub warm: bool,
    /// The number of simultaneous streams.
    pub streams: usize,
    /// The number of queries of each stream in a round, one after another.
    pub queries_per_stream: usize,
    /// The number of runs of all streams on each engine.
    pub rounds: usize,
    /// The seed of the queries.
    pub seed: u64,
}

/// The reports of all engines, and the differences between answers.
#[derive(Debug)]
pub struct SmallRun {
    /// One report per engine, in the requested order.
    pub reports: Vec<SmallReport>,
    /// The first difference of each engine.
    pub differences: Vec<String>,
}

impl Small {
    /// Runs all rounds on all engines. `on_run` gets the round and the engine before each run.
    ///
    /// # Errors
    /// If a table cannot be opened or a query fails.
    pub async fn run(
        &self,
        kinds: &[EngineKind],
        on_run: &dyn Fn(usize, EngineKind),
    ) -> Result<SmallRun, EngineError> {
        let mut engines: Vec<Arc<dyn Engine>> = Vec::new();
        for &kind in kinds {
            engines.push(Arc::new(self.engine(kind).await?));
        }
        let mut tallies: Vec<_> = engines.iter().map(|_| Tally::default()).collect();
        for round in 0..self.rounds {
            let streams = self.draw(round);
            let mut rounds: Vec<Option<Round>> = engines.iter().map(|_| None).collect();
            for turn in 0..engines.len() {
                let place = (round + turn) % engines.len();
                on_run(round, kinds[place]);
                rounds[place] = Some(run_round(&engines[place], &streams).await?);
            }
            let rounds: Vec<_> = rounds.into_iter().flatten().collect();
            for (tally, actual) in tallies.iter_mut().zip(&rounds) {
                tally.add(actual, &rounds[0]);
            }
        }
        let reports = tallies.iter().zip(&engines);
        Ok(SmallRun {
            reports: reports.map(|(tally, engine)| tally.report(engine.as_ref())).collect(),
            differences: tallies.iter().zip(kinds).filter_map(Tally::difference).collect(),
        })
    }

    async fn engine(&self, kind: EngineKind) -> Result<SqlEngine, EngineError> {
        let options = Options::with_pool_bytes(self.pool_bytes, self.decode_bytes);
        let (device, table_options) = (&self.device, self.table_options);
        let tables = Tables { files: &self.tables, device, options: table_options };
        let engine = tables.engine(kind, options).await?;
        if self.warm {
            for query in SmallQueries::new(self.seed, self.scale_factor).one_of_each() {
                engine.query(&query.sql).await?;
            }
        }
        Ok(engine)
    }

    fn draw(&self, round: usize) -> Vec<Vec<SmallQuery>> {
        let seed = self.seed.wrapping_add(round as u64);
        let mut queries = SmallQueries::new(seed, self.scale_factor);
        let streams = (0..self.streams)
            .map(|_| (0..self.queries_per_stream).map(|_| queries.draw()).collect());
        streams.collect()
    }
}
