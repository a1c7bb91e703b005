//! Streams of small queries on small tables, joins among them: where sharing gains little, coscan must cost nothing.
//!
//! Each round draws new queries and runs them on each engine in turn; who goes first takes turns. Engines stay for all
//! rounds, as a server does. Ratios are those of a round, so that what disturbs the machine disturbs both sides.

mod queries;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use coscan_runtime::{BufferManager, Options};
use coscan_storage::table::FileOptions;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::answers::{Difference, compare_answers};
use crate::engines::{Device, EngineKind, Source, SqlEngine};
use crate::metrics::percentile;
use crate::runner::{Engine, EngineError, RunError};

pub use queries::{SmallQueries, SmallQuery};

/// What is run, and on what.
#[derive(Debug, Clone)]
pub struct Small {
    /// `lineitem`.
    pub lineitem: PathBuf,
    /// The other tables.
    pub others: Vec<(&'static str, PathBuf)>,
    /// How large they are.
    pub scale_factor: f64,
    /// What they are read from.
    pub device: Device,
    /// coscan's pool, in bytes.
    pub pool_bytes: u64,
    /// coscan's memory for decoded columns, in bytes.
    pub decode_bytes: u64,
    /// How coscan lays tables out.
    pub table_options: FileOptions,
    /// Whether a query of each kind runs on every engine before the first round.
    pub warm: bool,
    /// Streams that run at the same time.
    pub streams: usize,
    /// Queries of each stream in a round, one after another.
    pub queries_per_stream: usize,
    /// How often all streams run on each engine.
    pub rounds: usize,
    /// Where drawing starts.
    pub seed: u64,
}

/// What one engine did in all rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SmallReport {
    /// The name of the engine or policy.
    pub engine: String,
    /// The median time of a query, in seconds.
    pub median_s: f64,
    /// The 90th percentile of the times of queries, in seconds.
    pub p90_s: f64,
    /// The 99th percentile of the times of queries, in seconds.
    pub p99_s: f64,
    /// From the start of a round to the end of its last query, in seconds: the median of the rounds.
    pub total_s: f64,
    /// The same as multiples of what the first engine took: the median of the rounds.
    pub ratios: SmallRatios,
    /// Bytes read from the device.
    pub bytes_read: u64,
    /// Whether every answer equals that of the first engine.
    pub answers_equal: bool,
    /// The queries of each kind.
    pub kinds: Vec<SmallKindReport>,
}

/// What an engine took, divided by what the first engine took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SmallRatios {
    /// Of the median time of a query.
    pub median: f64,
    /// Of the 90th percentile.
    pub p90: f64,
    /// Of the 99th percentile.
    pub p99: f64,
    /// Of the whole round.
    pub total: f64,
}

/// The queries of one kind on one engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SmallKindReport {
    /// What they do.
    pub kind: String,
    /// How many ran.
    pub count: usize,
    /// The median time, in seconds.
    pub median_s: f64,
    /// The 99th percentile, in seconds.
    pub p99_s: f64,
}

/// All that ran, and what was different, if answers were.
#[derive(Debug)]
pub struct SmallRun {
    /// One an engine, in the order asked for.
    pub reports: Vec<SmallReport>,
    /// The first difference of each engine.
    pub differences: Vec<String>,
}

impl Small {
    /// Runs all rounds on all engines. `on_run` is told the round and the engine before each run.
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
        let location = self.lineitem.display().to_string();
        let source = Source { location, device: self.device.clone() };
        let engine = match kind {
            EngineKind::DataFusion => SqlEngine::datafusion(&source, "lineitem").await?,
            EngineKind::Coscan(policy) => {
                let options = Options::with_pool_bytes(self.pool_bytes, self.decode_bytes);
                let manager = BufferManager::new(options.policy(policy))?;
                SqlEngine::coscan(&source, "lineitem", manager, self.table_options).await?
            }
        };
        for (name, path) in &self.others {
            engine.add_table(name, &path.display().to_string()).await?;
        }
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

/// One run of all streams on one engine.
struct Round {
    total: Duration,
    /// In the order of streams and then of time.
    queries: Vec<Answered>,
}

struct Answered {
    query: SmallQuery,
    latency: Duration,
    answer: Vec<RecordBatch>,
}

async fn run_round(
    engine: &Arc<dyn Engine>,
    streams: &[Vec<SmallQuery>],
) -> Result<Round, EngineError> {
    let started = Instant::now();
    let mut running = JoinSet::new();
    for (index, stream) in streams.iter().cloned().enumerate() {
        let engine = Arc::clone(engine);
        running.spawn(async move { (index, run_stream(engine.as_ref(), index, stream).await) });
    }
    let mut ended = BTreeMap::new();
    while let Some(joined) = running.join_next().await {
        let (index, answered) = joined?;
        ended.insert(index, answered?);
    }
    let total = started.elapsed();
    Ok(Round { total, queries: ended.into_values().flatten().collect() })
}

async fn run_stream(
    engine: &dyn Engine,
    index: usize,
    stream: Vec<SmallQuery>,
) -> Result<Vec<Answered>, RunError> {
    let mut answered = Vec::with_capacity(stream.len());
    for query in stream {
        let started = Instant::now();
        let answer = engine.query(&query.sql).await.map_err(|source| RunError::Query {
            engine: engine.name().to_owned(),
            stream: Some(index),
            label: format!("\"{}\"", query.kind),
            sql: query.sql.clone(),
            source,
        })?;
        answered.push(Answered { latency: started.elapsed(), query, answer });
    }
    Ok(answered)
}

/// What an engine did so far.
#[derive(Default)]
struct Tally {
    totals_s: Vec<f64>,
    latencies_s: Vec<f64>,
    kinds: BTreeMap<&'static str, Vec<f64>>,
    ratios: Vec<SmallRatios>,
    difference: Option<Difference>,
}

impl Tally {
    fn add(&mut self, round: &Round, base: &Round) {
        self.totals_s.push(round.total.as_secs_f64());
        self.ratios.push(round.ratios_to(base));
        for (actual, expected) in round.queries.iter().zip(&base.queries) {
            self.latencies_s.push(actual.latency.as_secs_f64());
            self.kinds.entry(actual.query.kind).or_default().push(actual.latency.as_secs_f64());
            if self.difference.is_none() {
                let compared =
                    compare_answers(&expected.query.sql, &expected.answer, &actual.answer);
                self.difference = compared.err();
            }
        }
    }

    fn difference((tally, kind): (&Self, &EngineKind)) -> Option<String> {
        tally.difference.as_ref().map(|difference| format!("{kind}: {difference}"))
    }

    fn report(&self, engine: &dyn Engine) -> SmallReport {
        let ratio = |of: fn(&SmallRatios) -> f64| {
            percentile(&self.ratios.iter().map(of).collect::<Vec<_>>(), 50)
        };
        let kind = |(kind, latencies_s): (&&str, &Vec<f64>)| SmallKindReport {
            kind: (*kind).to_owned(),
            count: latencies_s.len(),
            median_s: percentile(latencies_s, 50),
            p99_s: percentile(latencies_s, 99),
        };
        SmallReport {
            engine: engine.name().to_owned(),
            median_s: percentile(&self.latencies_s, 50),
            p90_s: percentile(&self.latencies_s, 90),
            p99_s: percentile(&self.latencies_s, 99),
            total_s: percentile(&self.totals_s, 50),
            ratios: SmallRatios {
                median: ratio(|ratios| ratios.median),
                p90: ratio(|ratios| ratios.p90),
                p99: ratio(|ratios| ratios.p99),
                total: ratio(|ratios| ratios.total),
            },
            bytes_read: engine.io().bytes,
            answers_equal: self.difference.is_none(),
            kinds: self.kinds.iter().map(kind).collect(),
        }
    }
}

impl Round {
    fn ratios_to(&self, base: &Round) -> SmallRatios {
        let latencies = |round: &Round| {
            round.queries.iter().map(|query| query.latency.as_secs_f64()).collect::<Vec<_>>()
        };
        let (own, base_latencies) = (latencies(self), latencies(base));
        let ratio = |percent| percentile(&own, percent) / percentile(&base_latencies, percent);
        SmallRatios {
            median: ratio(50),
            p90: ratio(90),
            p99: ratio(99),
            total: self.total.as_secs_f64() / base.total.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array};

    use super::*;

    fn round(total_ms: u64, queries: &[(u64, i64)]) -> Round {
        let answered = |&(ms, number): &(u64, i64)| {
            let column: ArrayRef = Arc::new(Int64Array::from(vec![number]));
            let batch = RecordBatch::try_from_iter([("n", column)]).expect("one column");
            Answered {
                query: SmallQuery { kind: "k", sql: "SELECT n".to_owned() },
                latency: Duration::from_millis(ms),
                answer: vec![batch],
            }
        };
        let queries = queries.iter().map(answered).collect();
        Round { total: Duration::from_millis(total_ms), queries }
    }

    #[test]
    fn ratios_are_those_of_rounds_and_answers_are_compared() {
        let base = round(100, &[(10, 1), (20, 2), (40, 3)]);
        let mut tally = Tally::default();
        tally.add(&round(200, &[(10, 1), (10, 2), (20, 3)]), &base);
        assert!(tally.difference.is_none());
        let ratios = tally.ratios[0];
        assert_eq!((ratios.median, ratios.p99, ratios.total), (0.5, 0.5, 2.0));
        assert_eq!(tally.kinds["k"].len(), 3);
        tally.add(&round(100, &[(10, 1), (20, 7), (40, 3)]), &base);
        let text = Tally::difference((&tally, &EngineKind::DataFusion)).expect("a difference");
        assert!(text.contains("expected (2), got (7)"), "{text}");
    }
}
