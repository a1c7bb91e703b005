//! Runs the queries of an experiment on its engines.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use coscan_datafusion::ShareResults;
use coscan_runtime::{BufferManager, ManagerReport, Options};

use super::{PoolSize, Prepared};
use crate::engines::{EngineKind, SqlEngine, Tables, manager_options, memory_fault};
use crate::metrics::{Standalone, average};
use crate::runner::{Engine, EngineError, Run, run_streams, time_query};
use crate::workload::{self, Kind, ORDERS, Query, Stream, standalone_queries};

/// One engine's run and what its manager reported at the end.
#[derive(Debug)]
pub struct EngineRun {
    /// The run.
    pub run: Run,
    /// The report of coscan's manager, or `None` for plain DataFusion.
    pub manager: Option<ManagerReport>,
    /// The number of entries of the decision log, or the error of writing it. `None` if none was requested.
    pub recorded: Option<io::Result<u64>>,
}

impl EngineRun {
    /// What went wrong beside the answers: coscan held more than its budget, or its decisions could not be recorded.
    pub fn faults(&self) -> Vec<String> {
        let memory = self.manager.as_ref().and_then(memory_fault);
        let recording = self.recorded.as_ref().and_then(|recorded| recorded.as_ref().err());
        let recording =
            recording.map(|error| format!("its decisions could not be recorded: {error}"));
        memory.into_iter().chain(recording).collect()
    }
}

impl Prepared {
    /// The bytes of coscan's pool.
    pub fn pool_bytes(&self) -> u64 {
        match self.experiment.pool {
            PoolSize::Bytes(bytes) => bytes,
            PoolSize::PartOfTouched(part) => {
                ((self.touched_bytes as f64 * part) as u64).max(self.chunk_bytes_max)
            }
        }
    }

    /// Times queries of each kind alone on plain DataFusion, with nothing in memory (or everything, for a warm
    /// experiment). `on_query` is called before each query.
    ///
    /// # Errors
    /// If the table cannot be opened or a query fails.
    pub async fn standalone(
        &mut self,
        on_query: &dyn Fn(&Query),
    ) -> Result<Standalone, EngineError> {
        let mut samples: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for query in standalone_queries(&self.streams) {
            on_query(&query);
            let engine = self.engine(EngineKind::DataFusion).await?;
            if self.experiment.warm {
                time_query(&engine, &query, &self.experiment.table).await?;
            }
            let time = time_query(&engine, &query, &self.experiment.table).await?;
            samples.entry((query.kind, query.percent)).or_default().push(time.as_secs_f64());
        }
        let times: Standalone = samples
            .into_iter()
            .map(|(kind, samples)| (kind, average(samples.into_iter())))
            .collect();
        if self.experiment.stagger.is_none() {
            let longest_s = times.values().copied().fold(0.0, f64::max);
            let stagger = Duration::from_secs_f64(longest_s / 10.0);
            self.experiment.stagger = Some(stagger);
            workload::stagger(&mut self.streams, stagger);
        }
        Ok(times)
    }

    /// Sets another pool.
    #[must_use]
    pub fn with_pool(&self, pool: PoolSize) -> Self {
        let mut other = self.clone();
        other.experiment.pool = pool;
        other
    }

    /// Sets other streams, whose queries are those of the experiment.
    pub(crate) fn with_streams(&self, streams: Vec<Stream>) -> Self {
        Self { streams, ..self.clone() }
    }

    /// Keeps the streams of one group only, with the same pool.
    #[must_use]
    pub fn only(&self, group: usize) -> Self {
        let mut only = self.clone();
        only.streams.retain(|stream| stream.group == group);
        workload::stagger(&mut only.streams, self.experiment.stagger.unwrap_or_default());
        only
    }

    /// Runs the streams on one engine. The decisions of coscan are recorded in the file `record`, if there is one.
    ///
    /// # Errors
    /// If the table cannot be opened, a query fails or the file cannot be created.
    pub async fn run(
        &self,
        kind: EngineKind,
        record: Option<&Path>,
    ) -> Result<EngineRun, EngineError> {
        let (engine, recording) = match (kind.policy(), record) {
            (Some(policy), Some(path)) => {
                let file = tokio::fs::File::create(path)
                    .await
                    .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
                let options = self.options().policy(policy);
                let (manager, recording) = BufferManager::recorded(options, file)?;
                (self.tables().open(Some(manager)).await?.with_kind(kind), Some(recording))
            }
            _ => (self.engine(kind).await?, None),
        };
        let engine = Arc::new(engine);
        if self.experiment.warm {
            // Data is warm, results are not.
            engine.set_share_results(ShareResults::Never);
            for query in whole_queries(&self.streams) {
                time_query(engine.as_ref(), &query, &self.experiment.table).await?;
            }
        }
        engine.set_share_results(kind.share_results());
        let shared: Arc<dyn Engine> = Arc::clone(&engine) as _;
        let run = run_streams(shared, &self.streams, &self.experiment.table).await?;
        let manager = engine.manager_report();
        let recorded = match recording {
            Some(recording) => Some(recording.finish().await),
            None => None,
        };
        Ok(EngineRun { run, manager, recorded })
    }

    pub(crate) async fn engine(&self, kind: EngineKind) -> Result<SqlEngine, EngineError> {
        self.tables().engine(kind, self.options()).await
    }

    fn tables(&self) -> Tables<'_> {
        let experiment = &self.experiment;
        let mut locations = vec![(experiment.table.as_str(), experiment.source.location.clone())];
        locations.extend(experiment.orders.clone().map(|orders| (ORDERS, orders)));
        let (device, options) = (&experiment.source.device, experiment.table_options);
        Tables { locations, device, options }
    }

    fn options(&self) -> Options {
        let experiment = &self.experiment;
        manager_options(self.pool_bytes(), experiment.decode_bytes, experiment.operator_bytes)
    }
}

/// A query of each kind over the whole table, except for points.
fn whole_queries(streams: &[Stream]) -> Vec<Query> {
    let queries = streams.iter().flat_map(|stream| &stream.queries);
    let kinds: BTreeSet<Kind> =
        queries.map(|query| query.kind).filter(|&kind| kind != Kind::Point).collect();
    kinds.into_iter().map(Query::whole).collect()
}
