//! Queries that arrive at random times, as plain text.

use coscan_sim::report::draw::columns::{Align, Block};
use coscan_sim::report::draw::numbers::{decimal, megabytes};

use super::blocks::{self, column, dash, yes_or_no};
use crate::open::{LATE_FACTOR, OpenRateReport, OpenReport, OpenRun};

/// What the rates are relative to, the times at each rate, and the highest rate that each engine sustains.
pub fn table(run: &OpenRun) -> String {
    format!("{}\n{}\n{}", head(run), rates(run), sustained(&run.compared.reports))
}

fn head(run: &OpenRun) -> String {
    let Some(first) = run.compared.reports.first() else { return String::new() };
    let mut text = format!(
        "{} queries, {:.3} s alone on average. An answer is late {:.3} s after its query arrived.\n",
        first.queries, run.alone_avg_s, first.late_after_s
    );
    if let Some(per_s) = run.closed_loop_per_s {
        let engine = &first.engine;
        text += &format!(
            "Load 1 is {per_s:.2} queries per second: those of {engine} in a closed loop.\n"
        );
    }
    text
}

fn rates(run: &OpenRun) -> String {
    let reports = &run.compared.reports;
    let per_s = || reports.iter().take(1).flat_map(|report| &report.rates).map(|rate| rate.per_s);
    let load = |per_s: f64| run.closed_loop_per_s.map_or_else(dash, |one| decimal(per_s / one));
    let names = [column("load", per_s().map(load)), column("per second", per_s().map(decimal))];
    let engines = reports.iter().map(|report| {
        let cells = |header: &str, show: &dyn Fn(&OpenRateReport) -> String| {
            column(header, report.rates.iter().map(show))
        };
        let columns = vec![
            cells("mean [s]", &|rate| format!("{:.3}", rate.mean_s)),
            cells("median", &|rate| format!("{:.3}", rate.median_s)),
            cells("p95", &|rate| format!("{:.3}", rate.p95_s)),
            cells("late", &|rate| rate.late.to_string()),
            cells("read [MB]", &|rate| megabytes(rate.bytes_read)),
            cells("CPU [s]", &|rate| decimal(rate.cpu_s)),
        ];
        (report.engine.as_str(), columns)
    });
    blocks::table(&Block::new("arrivals", "", &names, Align::Right), engines)
}

fn sustained(reports: &[OpenReport]) -> String {
    let names = vec![
        format!("highest rate with the 95th percentile within {LATE_FACTOR} x alone [1/s]"),
        "answers equal".to_owned(),
    ];
    let engines = reports.iter().map(|report| {
        let are_equal = report.rates.iter().all(|rate| rate.answers_equal);
        let sustained = report.sustained_per_s.map_or_else(dash, decimal);
        (report.engine.as_str(), vec![vec![sustained, yes_or_no(are_equal)]])
    });
    blocks::table(&Block::new("", "", &[names], Align::Left), engines)
}
