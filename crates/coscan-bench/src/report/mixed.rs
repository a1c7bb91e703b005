//! Streams of several groups at the same time compared with each group alone, as plain text.

use std::collections::BTreeSet;
use std::iter;

use coscan_sim::report::draw::columns::{Align, Block};
use coscan_sim::report::draw::numbers::{count, decimal, megabytes};
use serde::{Deserialize, Serialize};

use super::blocks::{self, column, dash};
use crate::metrics::{EngineReport, KindReport, QueryReport};
use crate::workload::{Kind, Percent, label};

/// The run of all groups.
pub const TOGETHER: &str = "together";

/// A run of the same streams on each engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixedRun {
    /// The streams of the run: [`TOGETHER`], or the name of the group that runs alone.
    pub run: String,
    /// The group of each stream.
    pub streams: Vec<String>,
    /// The report of each engine.
    pub engines: Vec<EngineReport>,
}

/// The total times and bytes of each run, then the latencies of each group and of each kind of query in it, together
/// with the others and alone.
///
/// The first run is that of all groups. The other engines are compared with the first.
pub fn table(runs: &[MixedRun]) -> String {
    format!("{}\n{}\n{}\n", totals(runs), latencies(runs), answers(runs))
}

fn totals(runs: &[MixedRun]) -> String {
    let names = [
        column("streams", runs.iter().map(|run| run.run.clone())),
        column("count", runs.iter().map(|run| run.streams.len().to_string())),
    ];
    let engines = engine_names(runs).enumerate().map(|(index, name)| {
        let both = || runs.iter().map(|run| (&run.engines[index], &run.engines[0]));
        let columns = vec![
            column("total [s]", both().map(|(report, _)| decimal(report.total_s))),
            column("ratio", both().map(|(report, base)| decimal(report.total_s / base.total_s))),
            column("read [MB]", both().map(|(report, _)| megabytes(report.bytes_read))),
        ];
        (name, columns)
    });
    blocks::table(&Block::new("runs", "", &names, Align::Right), engines)
}

fn latencies(runs: &[MixedRun]) -> String {
    let rows = rows(runs);
    let alone = |row: &Row| row.engines.iter().flatten().next().map(|kind| kind.standalone_s);
    let names = [
        column("kind", rows.iter().map(|row| row.label.clone())),
        column("run", rows.iter().map(|row| row.run.to_owned())),
        column("cold [s]", rows.iter().map(|row| alone(row).map_or_else(dash, seconds))),
    ];
    let engines = engine_names(runs).enumerate().map(|(index, name)| {
        let cells = |header: &str, show: &dyn Fn(&KindReport) -> String| {
            let cell = |row: &Row| row.engines[index].as_ref().map_or_else(dash, show);
            column(header, rows.iter().map(cell))
        };
        let columns = vec![
            cells("count", &|kind| count(kind.count as u64)),
            cells("avg [s]", &|kind| seconds(kind.latency_avg_s)),
            cells("p95", &|kind| seconds(kind.latency_p95_s)),
            cells("p99", &|kind| seconds(kind.latency_p99_s)),
            cells("norm.", &|kind| decimal(kind.normalized_latency_avg)),
            cells("p99", &|kind| decimal(kind.normalized_latency_p99)),
        ];
        (name, columns)
    });
    blocks::table(&Block::new("queries", "", &names, Align::Right), engines)
}

fn answers(runs: &[MixedRun]) -> String {
    let engines = runs.iter().flat_map(|run| run.engines.iter().map(move |engine| (run, engine)));
    let wrong: Vec<_> = engines
        .filter(|(_, engine)| !engine.answers_equal)
        .map(|(run, engine)| format!("{} ({})", engine.engine, run.run))
        .collect();
    match wrong.is_empty() {
        true => "All engines gave equal answers.".to_owned(),
        false => format!("THE ANSWERS DIFFER: {}", wrong.join(", ")),
    }
}

/// The figures of some queries of a run, on each engine.
struct Row {
    label: String,
    run: &'static str,
    engines: Vec<Option<KindReport>>,
}

/// The rows of each group, and of each kind of query if it has several: together, then alone.
fn rows(runs: &[MixedRun]) -> Vec<Row> {
    let mut groups: Vec<&str> = Vec::new();
    for name in runs.iter().flat_map(|run| &run.streams) {
        if !groups.contains(&name.as_str()) {
            groups.push(name);
        }
    }
    let mut rows = Vec::new();
    for group in groups {
        let of_group: Vec<_> =
            runs.iter().filter(|run| run.streams.iter().any(|name| name == group)).collect();
        let engines = of_group.iter().flat_map(|run| run.engines.iter().map(move |e| (run, e)));
        let kinds: BTreeSet<_> = engines
            .flat_map(|(run, engine)| queries(run, engine, group))
            .map(|query| (query.kind, query.percent))
            .collect();
        let several = kinds.iter().filter(|_| kinds.len() > 1).map(|&kind| Some(kind));
        for kind in iter::once(None).chain(several) {
            rows.extend(of_group.iter().map(|run| Row::new(run, group, kind)));
        }
    }
    rows
}

impl Row {
    /// The figures of the queries of a group, of one kind or of all.
    fn new(run: &MixedRun, group: &str, kind: Option<(Kind, Percent)>) -> Self {
        let report = |engine: &EngineReport| {
            let is_of_kind =
                |query: &&QueryReport| kind.is_none_or(|kind| kind == (query.kind, query.percent));
            let queries: Vec<_> = queries(run, engine, group).filter(is_of_kind).collect();
            (!queries.is_empty()).then(|| KindReport::of(&queries))
        };
        Self {
            label: kind.map_or(group.to_owned(), |(kind, percent)| label(kind, percent)),
            run: if run.run == TOGETHER { TOGETHER } else { "alone" },
            engines: run.engines.iter().map(report).collect(),
        }
    }
}

fn queries<'a>(
    run: &'a MixedRun,
    engine: &'a EngineReport,
    group: &'a str,
) -> impl Iterator<Item = &'a QueryReport> {
    let is_of_group =
        move |query: &&QueryReport| run.streams.get(query.stream).is_some_and(|name| name == group);
    engine.queries.iter().filter(is_of_group)
}

fn engine_names(runs: &[MixedRun]) -> impl Iterator<Item = &str> {
    runs.iter().take(1).flat_map(|run| run.engines.iter().map(|engine| engine.engine.as_str()))
}

/// Formats seconds. Times below one second, such as those of points, have milliseconds.
fn seconds(seconds: f64) -> String {
    if seconds < 1.0 { format!("{seconds:.3}") } else { decimal(seconds) }
}
