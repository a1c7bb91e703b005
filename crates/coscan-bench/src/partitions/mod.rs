//! One scan on increasing numbers of partitions: how much faster it gets, and whether all partitions have work until
//! its end.
//!
//! TPC-H Q1 and Q6 run over a whole table in memory, on each engine in turn.

mod probe;

use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use datafusion::physical_plan::collect;
use serde::{Deserialize, Serialize};

use crate::answers::compare_answers;
use crate::engines::{EngineKind, SqlEngine};
use crate::experiment::Prepared;
use crate::rounds::{in_turn, interleaved};
use crate::runner::{Engine, EngineError};
use crate::workload::{Kind, Query};
use probe::Probe;

/// A query on one engine with a number of partitions, in the round of its median time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionsReport {
    /// The name of the engine or policy.
    pub engine: String,
    /// The query, such as `TPC-H Q1`.
    pub query: String,
    /// The number of partitions that the engine was configured with.
    pub partitions: usize,
    /// The time from the start of the query to its last row, in seconds.
    pub time_s: f64,
    /// The time with the first number of partitions divided by this one.
    pub speed: f64,
    /// The time from the first poll of any partition of the scan to the end of the last one, in seconds.
    pub scan_s: f64,
    /// The partitions of the scan.
    pub scans: Vec<PartitionReport>,
    /// Whether the answer of every round equals that of the first engine.
    pub answers_equal: bool,
}

/// A partition of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PartitionReport {
    /// The rows that it read.
    pub rows: u64,
    /// The number of rows in chunks of coscan, of average size.
    pub chunks: f64,
    /// The part of the scan's time, 0 to 1, before the start of the partition, while it waited for rows to be read, and
    /// after its end. Waiting for a processor does not count.
    pub idle: f64,
}

impl PartitionsReport {
    /// The minimum and the maximum number of chunks of a partition.
    pub fn chunks(&self) -> (f64, f64) {
        let chunks = || self.scans.iter().map(|scan| scan.chunks);
        (chunks().fold(f64::INFINITY, f64::min), chunks().fold(0.0, f64::max))
    }

    /// The part of the scan's time for which the partition with the least work was idle.
    pub fn idle_max(&self) -> f64 {
        self.scans.iter().map(|scan| scan.idle).fold(0.0, f64::max)
    }
}

/// One run of a query.
struct Round {
    time: Duration,
    probe: Probe,
    answer: Vec<RecordBatch>,
}

impl Prepared {
    /// Runs Q1 and Q6 over the whole table with each number of partitions, `rounds` times on each of `kinds` in turn.
    /// Each engine answers both once before. `on_run` gets the query and the number of partitions.
    ///
    /// # Errors
    /// If the table cannot be opened or a query fails.
    pub async fn partitions(
        &self,
        kinds: &[EngineKind],
        partitions: &[usize],
        rounds: usize,
        on_run: &dyn Fn(&str, usize),
    ) -> Result<Vec<PartitionsReport>, EngineError> {
        let mut engines = Vec::new();
        for &kind in kinds {
            engines.push(self.engine(kind).await?);
        }
        let chunk_rows_avg = self.table_rows as f64 / self.chunk_count.max(1) as f64;
        let mut reports: Vec<PartitionsReport> = Vec::new();
        for kind in [Kind::Slow, Kind::Fast] {
            let sql = Query::whole(kind).sql(&self.experiment.table);
            in_turn(0, &engines, async |engine| run(engine, 1, &sql).await).await?;
            for &partitions in partitions {
                on_run(kind.words(), partitions);
                let run = async |engine: &SqlEngine| run(engine, partitions, &sql).await;
                let runs = interleaved(rounds, &engines, run).await?;
                let Some(expected) = runs.first().map(|runs| runs[0].answer.clone()) else { break };
                for (engine, mut runs) in engines.iter().zip(runs) {
                    let is_equal =
                        |run: &Round| compare_answers(&sql, &expected, &run.answer).is_ok();
                    let answers_equal = runs.iter().all(is_equal);
                    runs.sort_by_key(|run| run.time);
                    let median = &runs[runs.len() / 2];
                    let (scan, scans) = median.probe.report(chunk_rows_avg);
                    let time_s = median.time.as_secs_f64();
                    let (engine, query) = (engine.name().to_owned(), kind.words().to_owned());
                    let is_same = |other: &&PartitionsReport| {
                        (&other.engine, &other.query) == (&engine, &query)
                    };
                    let first_s = reports.iter().find(is_same).map_or(time_s, |first| first.time_s);
                    reports.push(PartitionsReport {
                        engine,
                        query,
                        partitions,
                        time_s,
                        speed: first_s / time_s,
                        scan_s: scan.as_secs_f64(),
                        scans,
                        answers_equal,
                    });
                }
            }
        }
        Ok(reports)
    }
}

async fn run(engine: &SqlEngine, partitions: usize, sql: &str) -> Result<Round, EngineError> {
    let session = engine.session(partitions);
    let started = Instant::now();
    let frame = session.sql(sql).await?;
    let tasks = frame.task_ctx();
    let (plan, probe) = Probe::above_scan(frame.create_physical_plan().await?)?;
    let answer = collect(plan, tasks.into()).await?;
    Ok(Round { time: started.elapsed(), probe, answer })
}
