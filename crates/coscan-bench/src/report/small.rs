//! Small queries on each engine, as plain text.

use coscan_sim::report::draw::columns::{Align, Block};
use coscan_sim::report::draw::numbers::{count, decimal, megabytes};

use super::blocks::{self, column, yes_or_no};
use crate::small::SmallReport;

/// The table with the times of each engine over all queries, then for each kind of query.
pub fn table(reports: &[SmallReport]) -> String {
    format!("{}\n{}", totals(reports), kinds(reports))
}

fn totals(reports: &[SmallReport]) -> String {
    let names = [
        "",
        "median [ms]",
        "90th percentile",
        "99th percentile",
        "total [s]",
        "read [MB]",
        "answers equal",
    ];
    let engines = reports.iter().map(|report| {
        let times = [report.median_s, report.p90_s, report.p99_s].map(milliseconds);
        let read = megabytes(report.bytes_read);
        let rest = [decimal(report.total_s), read, yes_or_no(report.answers_equal)];
        let ratios = &report.ratios;
        let ratios = [ratios.median, ratios.p90, ratios.p99, ratios.total].map(decimal);
        let columns = vec![
            column("time", times.into_iter().chain(rest)),
            column("ratio", ratios.into_iter().chain([String::new(), String::new()])),
        ];
        (report.engine.as_str(), columns)
    });
    blocks::table(
        &Block::new("small queries", "", &[names.map(str::to_owned).to_vec()], Align::Left),
        engines,
    )
}

fn kinds(reports: &[SmallReport]) -> String {
    let Some(base) = reports.first() else { return String::new() };
    let names = [
        column("kind", base.kinds.iter().map(|kind| kind.kind.clone())),
        column("count", base.kinds.iter().map(|kind| count(kind.count as u64))),
    ];
    let engines = reports.iter().map(|report| {
        let both = || report.kinds.iter().zip(&base.kinds);
        let columns = vec![
            column("median [ms]", both().map(|(kind, _)| milliseconds(kind.median_s))),
            column("ratio", both().map(|(kind, base)| decimal(kind.median_s / base.median_s))),
            column("p99 [ms]", both().map(|(kind, _)| milliseconds(kind.p99_s))),
        ];
        (report.engine.as_str(), columns)
    });
    blocks::table(&Block::new("queries", "", &names, Align::Left), engines)
}

fn milliseconds(seconds: f64) -> String {
    decimal(seconds * 1e3)
}
