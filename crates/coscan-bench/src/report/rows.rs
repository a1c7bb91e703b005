//! The cells of CS07 Table 2, as text, for the plain and the HTML table.

use std::collections::BTreeMap;

use coscan_sim::report::draw::numbers::{count, decimal, lowest, megabytes};

use super::blocks::{dash, yes_or_no};
use crate::metrics::{EngineReport, KindReport};
use crate::workload::label;

/// One figure of the whole run, for every engine.
pub(super) struct SystemRow {
    pub(super) name: &'static str,
    /// The values, one per engine.
    pub(super) values: Vec<String>,
    /// Whether each engine has the best value, where one is better than another.
    pub(super) best: Vec<bool>,
}

/// One kind of query and range, for every engine.
pub(super) struct KindRow {
    pub(super) label: String,
    pub(super) count: String,
    pub(super) standalone_s: String,
    /// The average latency, standard deviation and normalized latency of each engine.
    pub(super) values: Vec<[String; 3]>,
    /// Whether each engine has the lowest average latency.
    pub(super) best: Vec<bool>,
}

/// The upper half of the table.
pub(super) fn system_rows(reports: &[EngineReport]) -> Vec<SystemRow> {
    let row = |name, show: &dyn Fn(&EngineReport) -> String| SystemRow {
        name,
        values: reports.iter().map(show).collect(),
        best: vec![false; reports.len()],
    };
    let lowest =
        |name, value: &dyn Fn(&EngineReport) -> f64, show: &dyn Fn(&EngineReport) -> String| {
            SystemRow { best: lowest(reports.iter().map(value)), ..row(name, show) }
        };
    let mut rows = vec![
        lowest("average stream time [s]", &|r| r.stream_avg_s, &|r| decimal(r.stream_avg_s)),
        lowest("average normalized latency", &|r| r.normalized_latency_avg, &|r| {
            decimal(r.normalized_latency_avg)
        }),
        lowest("total time [s]", &|r| r.total_s, &|r| decimal(r.total_s)),
        row("CPU use [%]", &|r| format!("{:.1}", r.cpu_use * 100.0)),
        lowest("I/O requests", &|r| r.io_requests as f64, &|r| count(r.io_requests)),
        lowest("bytes read [MB]", &|r| r.bytes_read as f64, &|r| megabytes(r.bytes_read)),
    ];
    if reports.iter().any(|report| report.memory_peak_bytes.is_some()) {
        rows.push(row("peak memory of the process [MB]", &|r| {
            r.memory_peak_bytes.map_or_else(dash, megabytes)
        }));
    }
    rows.push(row("answers equal", &|r| yes_or_no(r.answers_equal)));
    rows
}

/// The lower half of the table, F-01 first.
pub(super) fn kind_rows(reports: &[EngineReport]) -> Vec<KindRow> {
    let mut kinds: BTreeMap<_, Vec<Option<KindReport>>> = BTreeMap::new();
    for (index, report) in reports.iter().enumerate() {
        for (key, kind) in report.kinds() {
            let engines = kinds.entry(key).or_insert_with(|| vec![None; reports.len()]);
            engines[index] = Some(kind);
        }
    }
    let rows = kinds.into_iter().map(|((kind, percent), engines)| {
        let first = engines.iter().flatten().next();
        let cells = |kind: &Option<KindReport>| match kind {
            Some(kind) => [
                decimal(kind.latency_avg_s),
                decimal(kind.latency_stddev_s),
                decimal(kind.normalized_latency_avg),
            ],
            None => [dash(), dash(), dash()],
        };
        let latency = |kind: &Option<KindReport>| kind.map_or(f64::INFINITY, |k| k.latency_avg_s);
        KindRow {
            label: label(kind, percent),
            count: count(first.map_or(0, |kind| kind.count as u64)),
            standalone_s: decimal(first.map_or(0.0, |kind| kind.standalone_s)),
            values: engines.iter().map(cells).collect(),
            best: lowest(engines.iter().map(latency)),
        }
    });
    rows.collect()
}
