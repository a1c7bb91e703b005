//! Runs the streams on one engine and measures.
//!
//! In call order: an [`Engine`] answers queries and counts its reads; [`time_query`] times one
//! query alone; [`run_streams`] runs all streams at once and gives a [`Run`]; [`Run::compare`]
//! checks its answers against another engine's; [`Run::report`] makes the figures.
//!
//! Stopping early is dropping: a caller that no longer waits for [`run_streams`] (Ctrl-C) ends
//! every stream and with it every query.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use futures::future::BoxFuture;
use tokio::task::JoinSet;

use crate::answers::{Difference, compare_answers};
use crate::metrics::{EngineReport, QueryReport, ReadPoint, Standalone, average};
use crate::process;
use crate::workload::{Query, Stream};

/// Whatever an engine says went wrong.
pub type EngineError = Box<dyn std::error::Error + Send + Sync>;

/// Something that answers SQL queries over one table and counts what it reads for them.
pub trait Engine: Send + Sync {
    /// The name in reports: `datafusion`, `relevance`.
    fn name(&self) -> &str;

    /// Runs one query to its last row. Dropping the future cancels the query.
    ///
    /// # Errors
    /// Whatever the engine reports.
    fn query<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, Result<Vec<RecordBatch>, EngineError>>;

    /// What it has read from the device since it was made.
    fn io(&self) -> IoCount;

    /// The reads since the last call, in the order of time.
    fn take_reads(&self) -> Vec<Read>;
}

/// Work done by the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoCount {
    /// Bytes read.
    pub bytes: u64,
    /// Requests sent.
    pub requests: u64,
}

/// One read from the device, as an engine tells it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Read {
    /// When it was sent.
    pub at: Instant,
    /// Where in the table, from 0 (its first byte) to 1 (its end).
    pub position: f64,
    /// How much.
    pub bytes: u64,
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A query failed; all others were stopped.
    #[error("{engine}: {query} failed: {source}\nquery:\n{sql}", query = place(*.stream, .label))]
    Query {
        /// The engine.
        engine: String,
        /// The stream, from 0; `None` for a query that ran alone.
        stream: Option<usize>,
        /// Its kind and range, such as F-10.
        label: String,
        /// Its text.
        sql: String,
        /// What the engine said.
        source: EngineError,
    },
    /// A stream panicked, which is a bug.
    #[error("{engine}: a stream stopped before its end: {source}")]
    Stopped {
        /// The engine.
        engine: String,
        /// What stopped it.
        source: tokio::task::JoinError,
    },
    /// The time that a kind of query takes alone is not known.
    #[error("no standalone time for {0}; time it alone before the streams")]
    Standalone(String),
}

fn place(stream: Option<usize>, label: &str) -> String {
    stream.map_or_else(
        || format!("query {label} alone"),
        |stream| format!("query {label} of stream {stream}"),
    )
}

/// One engine's run of all streams, with the answers.
#[derive(Debug)]
pub struct Run {
    /// The name of the engine.
    pub engine: String,
    /// From the start of the first stream to the end of the last.
    pub total: Duration,
    /// Each stream's running time, from its own start.
    pub stream_times: Vec<Duration>,
    /// What was read.
    pub io: IoCount,
    /// Processor time of the process.
    pub cpu: Duration,
    /// The most memory that was resident during the run, in bytes, where known.
    pub memory_peak_bytes: Option<u64>,
    /// Every query, in the order of streams and then of time.
    pub queries: Vec<QueryRun>,
    /// Every read, in the order of time.
    pub reads: Vec<ReadPoint>,
}

/// One query of a run.
#[derive(Debug)]
pub struct QueryRun {
    /// The query.
    pub query: Query,
    /// Which stream ran it, from 0.
    pub stream: usize,
    /// Its text.
    pub sql: String,
    /// When it started, from the start of the run.
    pub start: Duration,
    /// From its start to its last row.
    pub latency: Duration,
    /// Its rows.
    pub answer: Vec<RecordBatch>,
}

/// Runs one query alone and says how long it took. For a cold time the engine must be new.
///
/// # Errors
/// The query's.
pub async fn time_query(
    engine: &dyn Engine,
    query: &Query,
    table: &str,
) -> Result<Duration, RunError> {
    let sql = query.sql(table);
    let start = Instant::now();
    match engine.query(&sql).await {
        Ok(_) => Ok(start.elapsed()),
        Err(source) => Err(RunError::Query {
            engine: engine.name().to_string(),
            stream: None,
            label: query.label(),
            sql,
            source,
        }),
    }
}

/// Runs all streams at the same time, each one's queries one after another, over `table`.
///
/// # Errors
/// The first query that fails ends the run.
pub async fn run_streams(
    engine: Arc<dyn Engine>,
    streams: &[Stream],
    table: &str,
) -> Result<Run, RunError> {
    // Reads from before the run, such as footers, are not part of it.
    engine.take_reads();
    let io_before = engine.io();
    let memory_is_of_run = process::reset_memory_peak();
    let cpu_before = process::cpu_time();
    let start = Instant::now();

    let mut tasks = JoinSet::new();
    for (index, stream) in streams.iter().cloned().enumerate() {
        let (engine, table) = (Arc::clone(&engine), table.to_string());
        tasks.spawn(async move { run_stream(engine.as_ref(), index, stream, &table, start).await });
    }
    let mut finished = Vec::with_capacity(streams.len());
    while let Some(joined) = tasks.join_next().await {
        let stopped = |source| RunError::Stopped { engine: engine.name().to_string(), source };
        // Returning drops the set, which ends the other streams.
        finished.push(joined.map_err(stopped)??);
    }
    let total = start.elapsed();
    let cpu = process::cpu_time().saturating_sub(cpu_before);
    let memory_peak_bytes = process::memory_peak_bytes().filter(|_| memory_is_of_run);
    let io = engine.io();
    finished.sort_by_key(|stream| stream.index);

    Ok(Run {
        engine: engine.name().to_string(),
        total,
        stream_times: finished.iter().map(|stream| stream.time).collect(),
        io: IoCount {
            bytes: io.bytes - io_before.bytes,
            requests: io.requests - io_before.requests,
        },
        cpu,
        memory_peak_bytes,
        queries: finished.into_iter().flat_map(|stream| stream.queries).collect(),
        reads: engine.take_reads().into_iter().map(|read| read_point(read, start)).collect(),
    })
}

fn read_point(read: Read, start: Instant) -> ReadPoint {
    ReadPoint {
        t_s: read.at.saturating_duration_since(start).as_secs_f64(),
        position: read.position,
        bytes: read.bytes,
    }
}

struct FinishedStream {
    index: usize,
    time: Duration,
    queries: Vec<QueryRun>,
}

async fn run_stream(
    engine: &dyn Engine,
    index: usize,
    stream: Stream,
    table: &str,
    run_start: Instant,
) -> Result<FinishedStream, RunError> {
    tokio::time::sleep_until((run_start + stream.start_delay).into()).await;
    let stream_start = Instant::now();
    let mut queries = Vec::with_capacity(stream.queries.len());
    for query in stream.queries {
        let sql = query.sql(table);
        let start = Instant::now();
        match engine.query(&sql).await {
            Ok(answer) => queries.push(QueryRun {
                query,
                stream: index,
                sql,
                start: start - run_start,
                latency: start.elapsed(),
                answer,
            }),
            Err(source) => {
                return Err(RunError::Query {
                    engine: engine.name().to_string(),
                    stream: Some(index),
                    label: query.label(),
                    sql,
                    source,
                });
            }
        }
    }
    Ok(FinishedStream { index, time: stream_start.elapsed(), queries })
}

impl Run {
    /// Compares every answer with the one that `expected`, a run of the same streams, has for the
    /// same query.
    ///
    /// # Errors
    /// The first difference.
    pub fn compare(&self, expected: &Run) -> Result<(), Difference> {
        if self.queries.len() != expected.queries.len() {
            return Err(Difference {
                sql: String::new(),
                detail: format!(
                    "expected {} queries, ran {}",
                    expected.queries.len(),
                    self.queries.len()
                ),
            });
        }
        for (actual, expected) in self.queries.iter().zip(&expected.queries) {
            if actual.query != expected.query {
                let detail = format!("this answer is to another query:\n{}", actual.sql);
                return Err(Difference { sql: expected.sql.clone(), detail });
            }
            compare_answers(&expected.sql, &expected.answer, &actual.answer)?;
        }
        Ok(())
    }

    /// The figures of this run. `standalone` has the time that each kind of query takes alone;
    /// `answers_equal` is what [`Run::compare`] found.
    ///
    /// # Errors
    /// A kind of query without a standalone time.
    pub fn report(
        &self,
        standalone: &Standalone,
        answers_equal: bool,
    ) -> Result<EngineReport, RunError> {
        let query_report = |run: &QueryRun| {
            let (kind, percent) = (run.query.kind, run.query.percent);
            let standalone_s = standalone.get(&(kind, percent));
            Ok(QueryReport {
                kind,
                percent,
                stream: run.stream,
                start_s: run.start.as_secs_f64(),
                latency_s: run.latency.as_secs_f64(),
                standalone_s: *standalone_s
                    .ok_or_else(|| RunError::Standalone(run.query.label()))?,
            })
        };
        let queries: Vec<QueryReport> =
            self.queries.iter().map(query_report).collect::<Result<_, RunError>>()?;
        let (total_s, cpu_s) = (self.total.as_secs_f64(), self.cpu.as_secs_f64());
        Ok(EngineReport {
            engine: self.engine.clone(),
            total_s,
            stream_avg_s: average(self.stream_times.iter().map(Duration::as_secs_f64)),
            normalized_latency_avg: average(queries.iter().map(QueryReport::normalized_latency)),
            bytes_read: self.io.bytes,
            io_requests: self.io.requests,
            cpu_s,
            cpu_use: if total_s > 0.0 { cpu_s / (total_s * process::cores() as f64) } else { 0.0 },
            answers_equal,
            memory_peak_bytes: self.memory_peak_bytes,
            queries,
            reads: self.reads.clone(),
        })
    }
}
