//! One round of all streams at the same time on one engine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use tokio::task::JoinSet;

use super::queries::SmallQuery;
use crate::runner::{Engine, EngineError, RunError};

/// One run of all streams on one engine.
pub(super) struct Round {
    /// The time from the start of the round to the end of its last query.
    pub(super) total: Duration,
    /// The queries in the order of streams and then of time.
    pub(super) queries: Vec<Answered>,
}

/// A query and its answer.
pub(super) struct Answered {
    pub(super) query: SmallQuery,
    pub(super) latency: Duration,
    pub(super) answer: Vec<RecordBatch>,
}

/// Runs all streams at the same time, with the queries of each one after another. The first error ends the round.
pub(super) async fn run_round(
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
