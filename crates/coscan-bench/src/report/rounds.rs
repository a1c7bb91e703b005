//! Rounds of the same streams on each engine, as plain text.

use coscan_sim::report::draw::columns::{Align, Block};
use coscan_sim::report::draw::numbers::decimal;

use super::blocks::{self, dash, yes_or_no};
use crate::rounds::{RoundRatio, RoundsReport};

/// The table with the medians of time and processor time, and their ratios to the first engine with 95 % intervals.
pub fn table(reports: &[RoundsReport]) -> String {
    let names = [
        "total time [s]",
        "ratio",
        "  95 % interval",
        "CPU time [s]",
        "ratio",
        "  95 % interval",
        "answers equal",
    ];
    let rounds = reports.first().map_or(0, |report| report.runs.len());
    let engines = reports.iter().enumerate().map(|(index, report)| {
        let ratio = |ratio: &RoundRatio| format!("{:.3}", ratio.median);
        let interval = |ratio: &RoundRatio| if index == 0 { dash() } else { interval(ratio) };
        let values = vec![
            decimal(report.total_s),
            ratio(&report.total_ratio),
            interval(&report.total_ratio),
            decimal(report.cpu_s),
            ratio(&report.cpu_ratio),
            interval(&report.cpu_ratio),
            yes_or_no(report.answers_equal),
        ];
        (report.engine.as_str(), vec![values])
    });
    let title = format!("medians of {rounds} rounds");
    blocks::table(
        &Block::new(&title, "", &[names.map(str::to_owned).to_vec()], Align::Left),
        engines,
    )
}

/// A cell: the 95 % interval of a ratio, or a dash where there are too few rounds.
pub(super) fn interval(ratio: &RoundRatio) -> String {
    ratio.interval.map_or_else(dash, |(low, high)| format!("{low:.3} to {high:.3}"))
}
