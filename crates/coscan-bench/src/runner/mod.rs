//! Runs the streams on one engine and measures.
//!
//! In call order: an [`Engine`] answers queries and counts its reads. [`time_query`] times one query alone.
//! [`run_streams`] runs all streams at the same time and returns a [`Run`]. [`Run::compare`] compares its answers with
//! those of another engine. [`Run::report`] computes the figures.
//!
//! Dropping the future of [`run_streams`] (as for Ctrl-C) ends every stream, and with it every query.

mod streams;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use coscan_core::SHARING_LEVELS;
use futures::future::BoxFuture;

use crate::answers::{Difference, compare_ordered_answers};
use crate::metrics::{EngineReport, QueryReport, ReadPoint, Standalone, average};
use crate::process;
use crate::workload::{Query, StreamQuery};

pub(crate) use streams::run_counted;
pub use streams::{run_streams, time_query};

/// Any error of an engine.
pub type EngineError = Box<dyn std::error::Error + Send + Sync>;

/// An engine that answers SQL queries over one table and counts its reads.
pub trait Engine: Send + Sync {
    /// The name in reports: `datafusion`, `relevance`.
    fn name(&self) -> &str;

    /// Runs one query to its last row. Dropping the future cancels the query.
    ///
    /// # Errors
    /// Any error of the engine.
    fn query<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, Result<Vec<RecordBatch>, EngineError>>;

    /// The reads from the device since it was created.
    fn io(&self) -> IoCount;

    /// Takes the reads since the last call, in the order of time.
    fn take_reads(&self) -> Vec<Read>;

    /// The bytes of pages that running scans were not handed yet, by the number of scans that need them: 1 first,
    /// [`SHARING_LEVELS`] or more last. `None` if the engine does not know its scans.
    fn shared_bytes(&self) -> Option<[u64; SHARING_LEVELS]> {
        None
    }
}

/// Work done by the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoCount {
    /// The number of bytes read.
    pub bytes: u64,
    /// The number of requests sent.
    pub requests: u64,
}

/// One read from the device, as reported by an engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Read {
    /// The time at which it was sent.
    pub at: Instant,
    /// The position in the table, from 0 (its first byte) to 1 (its end).
    pub position: f64,
    /// The number of bytes.
    pub bytes: u64,
}

/// The reason why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A query failed. All others were stopped.
    #[error("{engine}: {query} failed: {source}\nquery:\n{sql}", query = place(*.stream, .label))]
    Query {
        /// The engine.
        engine: String,
        /// The index of the stream, or `None` for a query that ran alone.
        stream: Option<usize>,
        /// The label of its kind and range, such as F-10.
        label: String,
        /// The text of the query.
        sql: String,
        /// The error of the engine.
        source: EngineError,
    },
    /// A stream panicked, which is a bug.
    #[error("{engine}: a stream stopped before its end: {source}")]
    Stopped {
        /// The engine.
        engine: String,
        /// The reason.
        source: tokio::task::JoinError,
    },
    /// The standalone time of a kind of query is not known.
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
pub struct Run<Q = Query> {
    /// The name of the engine.
    pub engine: String,
    /// The time from the start of the first stream to the end of the last that does not repeat.
    pub total: Duration,
    /// The running time of each stream that does not repeat, from its own start. If all repeat, those of all streams.
    pub stream_times: Vec<Duration>,
    /// The reads in the total time.
    pub io: IoCount,
    /// The processor time of the process.
    pub cpu: Duration,
    /// The peak resident memory during the run, in bytes, if known.
    pub memory_peak_bytes: Option<u64>,
    /// All queries, in the order of streams and then of time.
    pub queries: Vec<QueryRun<Q>>,
    /// All reads, in the order of time.
    pub reads: Vec<ReadPoint>,
}

/// One query of a run.
#[derive(Debug)]
pub struct QueryRun<Q = Query> {
    /// The query.
    pub query: Q,
    /// The index of its stream.
    pub stream: usize,
    /// The index of the query in its stream.
    pub place: usize,
    /// Whether its stream repeats as long as others run. Another engine may then have answered it more often, or never.
    pub repeats: bool,
    /// The text of the query.
    pub sql: String,
    /// The time from the start of the run to its start.
    pub start: Duration,
    /// The time from its start to its last row.
    pub latency: Duration,
    /// The rows of the answer.
    pub answer: Vec<RecordBatch>,
}

impl<Q: StreamQuery> Run<Q> {
    /// Compares every answer with the answer to the same query in `expected`, a run of the same streams. For streams
    /// that repeat, either run may have answers that the other does not have.
    ///
    /// # Errors
    /// The first difference.
    pub fn compare(&self, expected: &Self) -> Result<(), Difference> {
        let count = |run: &Self| run.queries.iter().filter(|query| !query.repeats).count();
        let (expected_count, actual_count) = (count(expected), count(self));
        if actual_count != expected_count {
            let detail = format!("expected {expected_count} queries, ran {actual_count}");
            return Err(Difference { sql: String::new(), detail });
        }
        let place = |query: &QueryRun<Q>| (query.stream, query.place);
        let expected: BTreeMap<_, _> =
            expected.queries.iter().map(|query| (place(query), query)).collect();
        for actual in &self.queries {
            let Some(expected) = expected.get(&place(actual)) else { continue };
            if actual.query != expected.query {
                let detail = format!("this answer is to another query:\n{}", actual.sql);
                return Err(Difference { sql: expected.sql.clone(), detail });
            }
            let order = expected.query.order_columns();
            compare_ordered_answers(&expected.sql, order, &expected.answer, &actual.answer)?;
        }
        Ok(())
    }

    /// The latencies of all queries, in seconds.
    pub(crate) fn latencies_s(&self) -> Vec<f64> {
        self.queries.iter().map(|query| query.latency.as_secs_f64()).collect()
    }

    /// The average time of a stream, in seconds.
    pub(crate) fn stream_avg_s(&self) -> f64 {
        average(self.stream_times.iter().map(Duration::as_secs_f64))
    }
}

impl Run {
    /// The figures of this run. `standalone` has the time that each kind of query takes alone. `answers_equal` is the
    /// result of [`Run::compare`].
    ///
    /// # Errors
    /// If a kind of query has no standalone time.
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
            stream_avg_s: self.stream_avg_s(),
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

/// A run of streams with one query each, of which the time, in milliseconds, and the rows are given.
#[cfg(test)]
pub(crate) fn test_run<Q: StreamQuery>(
    total_ms: u64,
    queries: impl Iterator<Item = (Q, u64, Vec<i64>)>,
) -> Run<Q> {
    let answered = |(stream, (query, latency_ms, rows)): (usize, (Q, u64, Vec<i64>))| {
        let rows: arrow::array::ArrayRef =
            std::sync::Arc::new(arrow::array::Int64Array::from(rows));
        QueryRun {
            sql: query.sql(""),
            query,
            stream,
            place: 0,
            repeats: false,
            start: Duration::ZERO,
            latency: Duration::from_millis(latency_ms),
            answer: vec![RecordBatch::try_from_iter([("n", rows)]).expect("one column")],
        }
    };
    let queries: Vec<_> = queries.enumerate().map(answered).collect();
    Run {
        engine: "e".to_owned(),
        total: Duration::from_millis(total_ms),
        stream_times: queries.iter().map(|query| query.latency).collect(),
        io: IoCount { bytes: 10, requests: 2 },
        cpu: Duration::from_secs(9),
        memory_peak_bytes: None,
        queries,
        reads: Vec::new(),
    }
}
