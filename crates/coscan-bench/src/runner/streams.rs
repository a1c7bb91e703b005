//! All streams of a run at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::{Engine, IoCount, QueryRun, Read, Run, RunError};
use crate::metrics::ReadPoint;
use crate::process;
use crate::workload::Stream;

/// Runs all streams at the same time, each with its queries one after another, over `table`.
///
/// The run ends when all streams that do not repeat have ended, and the others their last query. If all repeat, each
/// runs its queries once.
///
/// # Errors
/// The error of the first query that fails, which ends the run.
pub async fn run_streams(
    engine: Arc<dyn Engine>,
    streams: &[Stream],
    table: &str,
) -> Result<Run, RunError> {
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
        let (engine, table) = (Arc::clone(&engine), table.to_string());
        let lasting_left = Arc::clone(&lasting_left);
        tasks.spawn(async move {
            let task = StreamTask { engine: engine.as_ref(), index, table: &table, start };
            task.run(stream, &lasting_left).await
        });
    }
    let mut finished = Vec::with_capacity(streams.len());
    let (mut total, mut ended) = (Duration::ZERO, started);
    while let Some(joined) = tasks.join_next().await {
        let stopped = |source| RunError::Stopped { engine: engine.name().to_string(), source };
        // Returning drops the set, which ends the other streams.
        let stream: FinishedStream = joined.map_err(stopped)??;
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

struct FinishedStream {
    index: usize,
    repeats: bool,
    time: Duration,
    queries: Vec<QueryRun>,
}

/// The context of a running stream.
struct StreamTask<'a> {
    engine: &'a dyn Engine,
    index: usize,
    table: &'a str,
    /// The start of the run.
    start: Instant,
}

impl StreamTask<'_> {
    /// Runs the queries of a stream. If it repeats, runs them again until all streams that do not repeat have ended.
    /// Runs at least one query.
    async fn run(
        self,
        stream: Stream,
        lasting_left: &AtomicUsize,
    ) -> Result<FinishedStream, RunError> {
        tokio::time::sleep_until((self.start + stream.start_delay).into()).await;
        let stream_start = Instant::now();
        let mut queries = Vec::with_capacity(stream.queries.len());
        loop {
            queries.push(self.run_query(&stream, queries.len() % stream.queries.len()).await?);
            if !stream.think.is_zero() {
                tokio::time::sleep(stream.think).await;
            }
            let is_last = match stream.repeats {
                true => lasting_left.load(Ordering::Relaxed) == 0,
                false => queries.len() == stream.queries.len(),
            };
            if is_last {
                break;
            }
        }
        if !stream.repeats {
            lasting_left.fetch_sub(1, Ordering::Relaxed);
        }
        let time = stream_start.elapsed();
        Ok(FinishedStream { index: self.index, repeats: stream.repeats, time, queries })
    }

    async fn run_query(&self, stream: &Stream, place: usize) -> Result<QueryRun, RunError> {
        let query = stream.queries[place].clone();
        let sql = query.sql(self.table);
        let start = Instant::now();
        match self.engine.query(&sql).await {
            Ok(answer) => Ok(QueryRun {
                query,
                stream: self.index,
                place,
                repeats: stream.repeats,
                sql,
                start: start - self.start,
                latency: start.elapsed(),
                answer,
            }),
            Err(source) => Err(RunError::Query {
                engine: self.engine.name().to_string(),
                stream: Some(self.index),
                label: query.label(),
                sql,
                source,
            }),
        }
    }
}
