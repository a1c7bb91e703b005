//! Numbers, names of metrics and rows of tables.

use coscan_sim::Metric;
use coscan_sim::claim::{CLOSE, FAR, within};

/// A row of a table.
pub(crate) fn row(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<_> = cells.into_iter().collect();
    format!("| {} |\n", cells.join(" | "))
}

/// The first two rows of a table. The first `left` titles stand over text, the others over numbers.
pub(crate) fn head(titles: &[&str], left: usize) -> String {
    let text: Vec<bool> = (0..titles.len()).map(|column| column < left).collect();
    head_over(titles, &text)
}

/// The first two rows of a table. `text` gives the titles that stand over text; the others stand over numbers.
pub(crate) fn head_over(titles: &[&str], text: &[bool]) -> String {
    let rule = text.iter().map(|&text| if text { "---" } else { "--:" }.to_owned());
    row(titles.iter().map(|&title| title.to_owned())) + &row(rule)
}

/// A number with three digits, or with all digits of a whole number.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 9999.5 => thousands(value.round() as u64),
        large if large >= 99.95 => format!("{value:.0}"),
        large if large >= 9.995 => format!("{value:.1}"),
        _ if value.is_finite() => format!("{value:.2}"),
        _ => String::new(),
    }
}

fn thousands(value: u64) -> String {
    match value {
        1000.. => format!("{},{:03}", thousands(value / 1000), value % 1000),
        _ => value.to_string(),
    }
}

/// A value in the unit of [`title`].
pub(crate) fn shown(metric: Metric, value: f64) -> String {
    match metric {
        Metric::CpuUse => format!("{} %", number(100.0 * value)),
        Metric::BytesRead => format!("{} GB", number(value / 1e9)),
        _ => number(value),
    }
}

/// The name of a metric in tables.
pub(crate) fn title(metric: Metric) -> &'static str {
    match metric {
        Metric::StreamAvg => "stream s",
        Metric::NormalizedLatencyAvg => "normalized latency",
        Metric::NormalizedLatencyShort => "short",
        Metric::NormalizedLatencyP99 => "99th percentile",
        Metric::LatencyAvg => "latency s",
        Metric::StandaloneAvg => "alone s",
        Metric::LongestWait => "longest wait s",
        Metric::Total => "total s",
        Metric::Requests => "requests",
        Metric::PagesRead => "pages read",
        Metric::BytesRead => "read",
        Metric::BytesInOrder => "read in order",
        Metric::BytesAnyOrder => "read in any order",
        Metric::BytesMin => "best victims",
        Metric::BytesToMin => "÷ best victims",
        Metric::BytesToBound => "bound",
        Metric::CpuUse => "processors",
    }
}

/// Whether ours, divided by the paper's, is close to it, not far from it, or far.
pub(crate) fn mark(ratio: f64) -> &'static str {
    match ratio {
        close if within(close, CLOSE) => "✓",
        near if within(near, FAR) => "~",
        _ => "✗",
    }
}

/// A part of a whole in percent.
pub(crate) fn percent(part: usize, whole: usize) -> String {
    format!("{:.0} %", 100.0 * part as f64 / whole.max(1) as f64)
}
