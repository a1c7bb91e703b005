//! The names of metrics in reports, and their values as text.

use crate::metric::Metric;

use super::draw::numbers::{count, decimal, megabytes, tick};

/// The name of a metric in reports, with the unit.
pub(super) fn name(metric: Metric) -> &'static str {
    match metric {
        Metric::StreamAvg => "average stream time [s]",
        Metric::NormalizedLatencyAvg => "average normalized latency",
        Metric::NormalizedLatencyShort => "normalized latency, shortest",
        Metric::NormalizedLatencyP99 => "normalized latency, 99th percentile",
        Metric::LatencyAvg => "average latency [s]",
        Metric::StandaloneAvg => "average latency alone [s]",
        Metric::LongestWait => "longest wait for a chunk [s]",
        Metric::Total => "total time [s]",
        Metric::Requests => "I/O requests",
        Metric::PagesRead => "pages read",
        Metric::BytesRead => "bytes read [MB]",
        Metric::BytesInOrder => "read for queries in order [MB]",
        Metric::BytesAnyOrder => "read for queries in any order [MB]",
        Metric::BytesMin => "the best victims read [MB]",
        Metric::BytesToMin => "bytes read ÷ best victims",
        Metric::BytesToBound => "bytes read ÷ lower bound",
        Metric::CpuUse => "processor use [%]",
    }
}

/// The text after a value in a picture.
pub(super) fn unit(metric: Metric) -> &'static str {
    match metric {
        Metric::StreamAvg
        | Metric::LatencyAvg
        | Metric::StandaloneAvg
        | Metric::LongestWait
        | Metric::Total => " s",
        Metric::NormalizedLatencyAvg
        | Metric::NormalizedLatencyShort
        | Metric::NormalizedLatencyP99
        | Metric::BytesToMin
        | Metric::BytesToBound => "×",
        bytes if is_bytes(bytes) => " MB",
        Metric::CpuUse => " %",
        _ => "",
    }
}

fn is_bytes(metric: Metric) -> bool {
    use Metric::{BytesAnyOrder, BytesInOrder, BytesMin, BytesRead};
    matches!(metric, BytesRead | BytesInOrder | BytesAnyOrder | BytesMin)
}

/// A value in the unit of [`name`].
pub(super) fn scaled(metric: Metric, value: f64) -> f64 {
    match metric {
        bytes if is_bytes(bytes) => value / 1e6,
        Metric::CpuUse => value * 100.0,
        _ => value,
    }
}

/// A value in the unit of [`name`], as text.
pub(super) fn show(metric: Metric, value: f64) -> String {
    match metric {
        bytes if is_bytes(bytes) => megabytes(value.round() as u64),
        Metric::PagesRead => count(value.round() as u64),
        Metric::Requests if value.fract() == 0.0 || value >= 100.0 => count(value.round() as u64),
        Metric::Requests | Metric::CpuUse => format!("{:.1}", scaled(metric, value)),
        _ if value >= 1000.0 => tick(value),
        _ => decimal(value),
    }
}

/// Whether less is better. For other metrics no value is the best.
pub(super) fn lower_is_better(metric: Metric) -> bool {
    !matches!(metric, Metric::StandaloneAvg | Metric::CpuUse | Metric::BytesMin)
}
