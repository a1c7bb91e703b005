//! Runs the queries of an experiment on its engines.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use coscan_core::PolicyKind;
use coscan_runtime::{BufferManager, ManagerReport, Options};

use super::{Experiment, PoolSize, Prepared};
use crate::engines::{EngineKind, SqlEngine};
use crate::metrics::{Standalone, average};
use crate::runner::{Engine, EngineError, Run, run_streams, time_query};
use crate::workload::{self, Kind, ORDERS, Percent, Query, Stream, standalone_queries};

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
            self.set_stagger(Duration::from_secs_f64(longest_s / 10.0));
        }
        Ok(times)
    }

    fn set_stagger(&mut self, stagger: Duration) {
        self.experiment.stagger = Some(stagger);
        workload::stagger(&mut self.streams, stagger);
    }

    /// Sets another pool.
    #[must_use]
    pub fn with_pool(&self, pool: PoolSize) -> Self {
        let mut other = self.clone();
        other.experiment.pool = pool;
        other
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
        let (engine, recording) = match (kind, record) {
            (EngineKind::Coscan(policy), Some(path)) => {
                let file = tokio::fs::File::create(path)
                    .await
                    .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
                let (manager, recording) = BufferManager::recorded(self.options(policy), file)?;
                (self.coscan(manager).await?, Some(recording))
            }
            _ => (self.engine(kind).await?, None),
        };
        let engine = Arc::new(engine);
        if self.experiment.warm {
            for query in whole_queries(&self.streams) {
                time_query(engine.as_ref(), &query, &self.experiment.table).await?;
            }
        }
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
        let Experiment { source, table, .. } = &self.experiment;
        match kind {
            EngineKind::DataFusion => {
                self.with_orders(SqlEngine::datafusion(source, table).await?).await
            }
            EngineKind::Coscan(policy) => {
                self.coscan(BufferManager::new(self.options(policy))?).await
            }
        }
    }

    async fn coscan(&self, manager: BufferManager) -> Result<SqlEngine, EngineError> {
        let Experiment { source, table, table_options, .. } = &self.experiment;
        self.with_orders(SqlEngine::coscan(source, table, manager, *table_options).await?).await
    }

    async fn with_orders(&self, engine: SqlEngine) -> Result<SqlEngine, EngineError> {
        if let Some(location) = &self.experiment.orders {
            engine.add_table(ORDERS, location).await?;
        }
        Ok(engine)
    }

    fn options(&self, policy: PolicyKind) -> Options {
        let usual = Options::with_pool_bytes(self.pool_bytes(), self.experiment.decode_bytes);
        let memory_bytes = usual.memory_bytes.saturating_add(self.experiment.operator_bytes);
        Options { memory_bytes, ..usual }.policy(policy)
    }
}

/// A query of each kind over the whole table, except for points.
fn whole_queries(streams: &[Stream]) -> Vec<Query> {
    let queries = streams.iter().flat_map(|stream| &stream.queries);
    let kinds: BTreeSet<Kind> =
        queries.map(|query| query.kind).filter(|&kind| kind != Kind::Point).collect();
    let whole = |kind| Query { kind, percent: Percent::WHOLE, keys: None };
    kinds.into_iter().map(whole).collect()
}
