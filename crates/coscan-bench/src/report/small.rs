//! Small queries on each engine, as plain text.

use std::iter;

use coscan_sim::report::draw::columns::{Align, Block, beside};
use coscan_sim::report::draw::numbers::{count, decimal, megabytes};

use super::column::column;
use crate::small::SmallReport;

/// The table with the times of each engine over all queries, then for each kind of query.
pub fn table(reports: &[SmallReport]) -> String {
    format!("{}\n{}", totals(reports), kinds(reports))
}

fn totals(reports: &[SmallReport]) -> String {
    let names = ["median [ms]", "90th percentile", "99th percentile", "total [s]"];
    let more = ["read [MB]", "answers equal"];
    let names = iter::once("").chain(names).chain(more).map(str::to_owned).collect();
    let first = Block::new("small queries", "", &[names], Align::Left);
    let engines = reports.iter().map(|report| {
        let times = [report.median_s, report.p90_s, report.p99_s].map(milliseconds);
        let equal = if report.answers_equal { "yes" } else { "NO" };
        let rest = [decimal(report.total_s), megabytes(report.bytes_read), equal.to_owned()];
        let ratios = &report.ratios;
        let ratios = [ratios.median, ratios.p90, ratios.p99, ratios.total].map(decimal);
        let columns = [
            column("time", times.into_iter().chain(rest)),
            column("ratio", ratios.into_iter().chain([String::new(), String::new()])),
        ];
        Block::new(&report.engine, "", &columns, Align::Right)
    });
    beside(&first, &engines.collect::<Vec<_>>())
}

fn kinds(reports: &[SmallReport]) -> String {
    let Some(base) = reports.first() else { return String::new() };
    let first = [
        column("kind", base.kinds.iter().map(|kind| kind.kind.clone())),
        column("count", base.kinds.iter().map(|kind| count(kind.count as u64))),
    ];
    let first = Block::new("queries", "", &first, Align::Left);
    let engines = reports.iter().map(|report| {
        let both = || report.kinds.iter().zip(&base.kinds);
        let columns = [
            column("median [ms]", report.kinds.iter().map(|kind| milliseconds(kind.median_s))),
            column("ratio", both().map(|(kind, base)| decimal(kind.median_s / base.median_s))),
            column("p99 [ms]", report.kinds.iter().map(|kind| milliseconds(kind.p99_s))),
        ];
        Block::new(&report.engine, "", &columns, Align::Right)
    });
    beside(&first, &engines.collect::<Vec<_>>())
}

fn milliseconds(seconds: f64) -> String {
    decimal(seconds * 1e3)
}
