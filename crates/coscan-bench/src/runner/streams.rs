//! All streams of a run at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use tokio::task::JoinSet;

use super::{Engine, IoCount, QueryRun, Read, Run, RunError};
use crate::metrics::ReadPoint;
use crate::process;
use crate::workload::{Query, Stream, StreamQuery};

/// Runs one query alone and returns its time. For a cold time the engine must be new.
///
/// # Errors
/// The error of the query.
pub async fn time_query(
    engine: &dyn Engine,
    query: &Query,
    table: &str,
) -> Result<Duration, RunError> {
    Ok(ask(engine, None, &query.label(), &query.sql(table)).await?.0)
}

/// Runs a query, and returns the time from its start to its last row, and its rows.
async fn ask(
    engine: &dyn Engine,
    stream: Option<usize>,
    label: &str,
    sql: &str,
) -> Result<(Duration, Vec<RecordBatch>), RunError> {
    let start = Instant::now();
    match engine.query(sql).await {
        Ok(answer) => Ok((start.elapsed(), answer)),
        Err(source) => Err(RunError::Query {
            engine: engine.name().to_owned(),
            stream,
            label: label.to_owned(),
            sql: sql.to_owned(),
            source,
        }),
    }
}

/// Runs all streams at the same time, each with its queries one after another, over `table`.
///
/// The run ends when all streams that do not repeat have ended, and the others their last query. If all repeat, each
/// runs its queries once.
///
/// # Errors
/// The error of the first query that fails, which ends the run.
pub async fn run_streams<Q: StreamQuery>(
    engine: Arc<dyn Engine>,
    streams: &[Stream<Q>],
    table: &str,
) -> Result<Run<Q>, RunError> {
    run_counted(engine, streams, table, &Arc::default()).await
}

/// Does the same as [`run_streams`], and counts the answers while it runs.
pub(crate) async fn run_counted<Q: StreamQuery>(
    engine: Arc<dyn Engine>,
    streams: &[Stream<Q>],
    table: &str,
    answered: &Arc<AtomicUsize>,
) -> Result<Run<Q>, RunError> {
    // Reads before the run, such as those of footers, are not part of it.
    engine.take_reads();
    let memory_is_of_run = process::reset_memory_peak();
    let started = Usage::now(engine.as_ref());
    let start = Instant::now();
    let lasting = streams.iter().filter(|stream| !stream.repeats).count();
    let lasting_left = Arc::new(AtomicUsize::new(lasting));

    let mut tasks = JoinSet::new();
    for (index, mut stream) in streams.iter().cloned().enumerate() {
        stream.repeats &= lasting > 0;
        let task = StreamTask {
            engine: Arc::clone(&engine),
            index,
            table: table.to_owned(),
            start,
            lasting_left: Arc::clone(&lasting_left),
            answered: Arc::clone(answered),
        };
        tasks.spawn(task.run(stream));
    }
    let mut finished = Vec::with_capacity(streams.len());
    let (mut total, mut ended) = (Duration::ZERO, started);
    while let Some(joined) = tasks.join_next().await {
        let stopped = |source| RunError::Stopped { engine: engine.name().to_string(), source };
        // Returning drops the set, which ends the other streams.
        let stream: FinishedStream<Q> = joined.map_err(stopped)??;
        if !stream.repeats {
            (total, ended) = (start.elapsed(), Usage::now(engine.as_ref()));
        }
        finished.push(stream);
    }
    finished.sort_by_key(|stream| stream.index);
    let lasting_streams = finished.iter().filter(|stream| !stream.repeats);

    Ok(Run {
        engine: engine.name().to_string(),
        total,
        stream_times: lasting_streams.map(|stream| stream.time).collect(),
        io: IoCount {
            bytes: ended.io.bytes - started.io.bytes,
            requests: ended.io.requests - started.io.requests,
        },
        cpu: ended.cpu.saturating_sub(started.cpu),
        memory_peak_bytes: process::memory_peak_bytes().filter(|_| memory_is_of_run),
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

/// The resources used up to some time.
#[derive(Clone, Copy)]
struct Usage {
    io: IoCount,
    cpu: Duration,
}

impl Usage {
    fn now(engine: &dyn Engine) -> Self {
        Self { io: engine.io(), cpu: process::cpu_time() }
    }
}

struct FinishedStream<Q> {
    index: usize,
    repeats: bool,
    time: Duration,
    queries: Vec<QueryRun<Q>>,
}

/// The context of a running stream.
struct StreamTask {
    engine: Arc<dyn Engine>,
    index: usize,
    table: String,
    /// The start of the run.
    start: Instant,
    /// The number of streams that do not repeat and have not ended.
    lasting_left: Arc<AtomicUsize>,
    /// The number of answers in all streams.
    answered: Arc<AtomicUsize>,
}

impl StreamTask {
    /// Runs the queries of a stream. If it repeats, runs them again until all streams that do not repeat have ended.
    /// Runs at least one query.
    async fn run<Q: StreamQuery>(self, stream: Stream<Q>) -> Result<FinishedStream<Q>, RunError> {
        // A timer has whole milliseconds, which would delay short queries.
        if !stream.start_delay.is_zero() {
            tokio::time::sleep_until((self.start + stream.start_delay).into()).await;
        }
        let stream_start = Instant::now();
        let mut queries = Vec::with_capacity(stream.queries.len());
        loop {
            queries.push(self.run_query(&stream, queries.len() % stream.queries.len()).await?);
            self.answered.fetch_add(1, Ordering::Relaxed);
            if !stream.think.is_zero() {
                tokio::time::sleep(stream.think).await;
            }
            let is_last = match stream.repeats {
                true => self.lasting_left.load(Ordering::Relaxed) == 0,
                false => queries.len() == stream.queries.len(),
            };
            if is_last {
                break;
            }
        }
        if !stream.repeats {
            self.lasting_left.fetch_sub(1, Ordering::Relaxed);
        }
        let time = stream_start.elapsed();
        Ok(FinishedStream { index: self.index, repeats: stream.repeats, time, queries })
    }

    async fn run_query<Q: StreamQuery>(
        &self,
        stream: &Stream<Q>,
        place: usize,
    ) -> Result<QueryRun<Q>, RunError> {
        let query = stream.queries[place].clone();
        let sql = query.sql(&self.table);
        let start = self.start.elapsed();
        let (latency, answer) =
            ask(self.engine.as_ref(), Some(self.index), &query.label(), &sql).await?;
        let (stream, repeats) = (self.index, stream.repeats);
        Ok(QueryRun { query, stream, place, repeats, sql, start, latency, answer })
    }
}
