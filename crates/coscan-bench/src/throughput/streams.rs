//! Runs all streams at the same time on one engine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::ThroughputQuery;
use super::sharing::{INTERVAL, Samples, SharingMoment};
use crate::process;
use crate::runner::{Engine, EngineError, IoCount, RunError};

/// One run of all streams on one engine.
pub(super) struct Run {
    /// The time from the start of the streams to the end of the last one.
    pub(super) total: Duration,
    /// The time of each stream.
    pub(super) stream_times: Vec<Duration>,
    /// The reads of the run.
    pub(super) io: IoCount,
    /// The processor time of the process.
    pub(super) cpu: Duration,
    /// The peak resident memory, in bytes, if known.
    pub(super) memory_peak_bytes: Option<u64>,
    /// The sharing potential over time. Empty if the engine does not know its scans.
    pub(super) sharing: Vec<SharingMoment>,
    /// The queries in the order of streams and then of time.
    pub(super) queries: Vec<Answered>,
}

/// A query and its answer.
pub(super) struct Answered {
    pub(super) query: ThroughputQuery,
    /// The index of its stream.
    pub(super) stream: usize,
    pub(super) latency: Duration,
    pub(super) answer: Vec<RecordBatch>,
}

/// Runs all streams at the same time, with the queries of each one after another. The first error ends the run.
/// `on_answer` gets the number of queries answered so far.
pub(super) async fn run_streams(
    engine: &Arc<dyn Engine>,
    streams: &[Vec<ThroughputQuery>],
    on_answer: &dyn Fn(usize),
) -> Result<Run, EngineError> {
    // The log of reads is not used, and neither are reads before the run.
    engine.take_reads();
    let memory_is_of_run = process::reset_memory_peak();
    let (io, cpu) = (engine.io(), process::cpu_time());
    let started = Instant::now();
    let mut running = JoinSet::new();
    let (sender, mut answers) = mpsc::unbounded_channel();
    for (index, stream) in streams.iter().cloned().enumerate() {
        let (engine, sender) = (Arc::clone(engine), sender.clone());
        running.spawn(async move {
            let queries = run_stream(engine.as_ref(), index, stream, &sender).await?;
            Ok::<_, RunError>((index, started.elapsed(), queries))
        });
    }
    drop(sender);
    let mut ended = BTreeMap::new();
    let mut answered = 0;
    let mut samples = Samples::new(started);
    let mut looks = tokio::time::interval(INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while ended.len() < streams.len() {
        tokio::select! {
            Some(()) = answers.recv() => {
                answered += 1;
                on_answer(answered);
            }
            Some(joined) = running.join_next() => {
                // Returning drops the set, which ends the other streams.
                let (index, time, queries) = joined??;
                ended.insert(index, (time, queries));
            }
            _ = looks.tick() => samples.take(engine.as_ref()),
        }
    }
    let total = started.elapsed();
    let io_now = engine.io();
    let (stream_times, queries): (Vec<_>, Vec<_>) = ended.into_values().unzip();
    Ok(Run {
        total,
        stream_times,
        io: IoCount { bytes: io_now.bytes - io.bytes, requests: io_now.requests - io.requests },
        cpu: process::cpu_time().saturating_sub(cpu),
        memory_peak_bytes: process::memory_peak_bytes().filter(|_| memory_is_of_run),
        sharing: samples.into_moments(),
        queries: queries.into_iter().flatten().collect(),
    })
}

async fn run_stream(
    engine: &dyn Engine,
    stream: usize,
    queries: Vec<ThroughputQuery>,
    answers: &UnboundedSender<()>,
) -> Result<Vec<Answered>, RunError> {
    let mut answered = Vec::with_capacity(queries.len());
    for query in queries {
        let started = Instant::now();
        let answer = engine.query(&query.sql).await.map_err(|source| RunError::Query {
            engine: engine.name().to_owned(),
            stream: Some(stream),
            label: format!("Q{}", query.number),
            sql: query.sql.clone(),
            source,
        })?;
        answered.push(Answered { latency: started.elapsed(), query, stream, answer });
        // The receiver is dropped if another stream has failed.
        let _ = answers.send(());
    }
    Ok(answered)
}
