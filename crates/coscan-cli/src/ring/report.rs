//! The measurements of the demonstration.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use coscan_bench::answers::compare_answers;
use coscan_bench::metrics::percentile;
use coscan_bench::runner::{QueryRun, Run};
use coscan_sim::report::draw::columns::{Align, Block, beside};
use coscan_sim::report::draw::numbers::{count, decimal, megabytes};
use serde::Serialize;

use crate::child::Counts;
use crate::sizes::show_bytes;

/// The figures of one mode, all servers together.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    mode: String,
    /// The time until the last stream has ended, in seconds.
    total_s: f64,
    store_bytes: u64,
    store_requests: u64,
    peer_bytes: u64,
    /// The bytes that were sent between servers and not needed by the receiver.
    peer_bytes_in_vain: u64,
    /// The processor time of the servers, in seconds.
    cpu_s: f64,
    /// The time until the last stream of each server has ended, in seconds.
    server_s: Vec<f64>,
    /// The median latency, in seconds, of the queries that read the least of the table, and the value that 99 of 100 of
    /// them do not exceed.
    short_median_s: f64,
    short_p99_s: f64,
    answers_equal: bool,
    /// The first answer that differs from that of the first mode.
    #[serde(skip)]
    pub(super) difference: Option<String>,
    #[serde(skip)]
    runs: Vec<Run>,
    /// Whether answers of other modes are compared with its own.
    #[serde(skip)]
    is_first: bool,
}

impl Report {
    /// The difference between two counts. Answers are compared with those of `first`, if there is one.
    pub(super) fn new(
        mode: String,
        runs: Vec<Run>,
        (before, after): (Counts, Counts),
        first: Option<&Self>,
    ) -> Self {
        let difference = first.and_then(|first| difference(&first.runs, &runs));
        let server_s: Vec<_> = runs.iter().map(|run| run.total.as_secs_f64()).collect();
        let short = short_queries(&runs);
        Self {
            mode,
            total_s: server_s.iter().copied().fold(0.0, f64::max),
            store_bytes: after.store_bytes - before.store_bytes,
            store_requests: after.store_requests - before.store_requests,
            peer_bytes: after.peer_bytes - before.peer_bytes,
            peer_bytes_in_vain: (after.sent_bytes - before.sent_bytes)
                .saturating_sub(after.taken_bytes - before.taken_bytes),
            cpu_s: after.cpu_s - before.cpu_s,
            server_s,
            short_median_s: percentile(&short, 50),
            short_p99_s: percentile(&short, 99),
            answers_equal: difference.is_none(),
            difference,
            runs,
            is_first: first.is_none(),
        }
    }

    /// The figures in a line.
    pub(super) fn line(&self) -> String {
        format!(
            "{:<10} {:>7.1} s   {:>8} from the store in {:>6} requests   {:>8} from other servers   {}",
            self.mode,
            self.total_s,
            show_bytes(self.store_bytes),
            count(self.store_requests),
            show_bytes(self.peer_bytes),
            match (self.is_first, self.answers_equal) {
                (true, _) => "",
                (_, true) => "answers equal",
                (_, false) => "ANSWERS DIFFER",
            },
        )
    }
}

/// The latencies of the queries that read the least of the table, in seconds.
fn short_queries(runs: &[Run]) -> Vec<f64> {
    let queries = || runs.iter().flat_map(|run| &run.queries);
    let least = queries().map(|run| run.query.percent).min();
    let short = queries().filter(|run| Some(run.query.percent) == least);
    short.map(|run| run.latency.as_secs_f64()).collect()
}

/// A query and its answer.
type Answer<'a> = (&'a String, &'a Vec<RecordBatch>);

/// The answers of servers, by stream and by place in the stream.
fn answers<'a>(runs: &'a [Run]) -> BTreeMap<(usize, usize), Answer<'a>> {
    let of_server = |(server, run): (usize, &'a Run)| {
        let place = move |query: &QueryRun| (query.stream * runs.len() + server, query.place);
        run.queries.iter().map(move |query| (place(query), (&query.sql, &query.answer)))
    };
    runs.iter().enumerate().flat_map(of_server).collect()
}

/// The first answer of `runs` that differs from the answer of `expected` to the same query, independently of the
/// distribution of streams.
fn difference(expected: &[Run], runs: &[Run]) -> Option<String> {
    let (expected, actual) = (answers(expected), answers(runs));
    if expected.len() != actual.len() {
        return Some(format!("{} queries were answered, not {}", actual.len(), expected.len()));
    }
    let mut pairs = expected.into_values().zip(actual.into_values());
    pairs.find_map(|((sql, expected), (other, answer))| {
        if sql != other {
            return Some(format!("this is an answer to another query:\n{other}"));
        }
        compare_answers(sql, expected, answer).err().map(|difference| difference.to_string())
    })
}

/// All figures side by side.
pub(super) fn table(reports: &[Report]) -> String {
    let rows = [
        "total time [s]",
        "from the store [MB]",
        "requests to the store",
        "from other servers [MB]",
        "of these in vain [MB]",
        "processor time of the servers [s]",
        "queries of least rows, median [s]",
        "the same, 99th percentile [s]",
        "answers as in the first column",
    ];
    let names = rows.map(str::to_owned).to_vec();
    let columns = reports.iter().map(|report| {
        let values = vec![
            decimal(report.total_s),
            megabytes(report.store_bytes),
            count(report.store_requests),
            megabytes(report.peer_bytes),
            megabytes(report.peer_bytes_in_vain),
            decimal(report.cpu_s),
            decimal(report.short_median_s),
            decimal(report.short_p99_s),
            match (report.is_first, report.answers_equal) {
                (true, _) => "-",
                (_, true) => "yes",
                (_, false) => "NO",
            }
            .to_owned(),
        ];
        Block::new(&report.mode, "", &[values], Align::Right)
    });
    let names = Block::new("", "", &[names], Align::Left);
    beside(&names, &columns.collect::<Vec<_>>())
}
