//! Streams of the queries of TPC-H on each engine, as plain text.

use coscan_core::SHARING_LEVELS;
use coscan_sim::report::draw::columns::{Align, Block};
use coscan_sim::report::draw::numbers::{count, decimal, megabytes};

use super::blocks::{self, column, dash, yes_or_no};
use crate::throughput::ThroughputReport;

/// The table with the figures of each engine, then the average latency of each query, then the sharing potential.
pub fn table(reports: &[ThroughputReport]) -> String {
    format!("{}\n{}{}", totals(reports), queries(reports), sharing(reports))
}

fn totals(reports: &[ThroughputReport]) -> String {
    let names = [
        "total time [s]",
        "average stream time [s]",
        "queries per hour x scale",
        "bytes read [MB]",
        "I/O requests",
        "CPU time [s]",
        "peak memory of the process [MB]",
        "answers equal",
    ];
    let engines = reports.iter().map(|report| {
        let values = vec![
            decimal(report.total_s),
            decimal(report.stream_avg_s),
            count(report.throughput_at_size.round() as u64),
            megabytes(report.bytes_read),
            count(report.io_requests),
            decimal(report.cpu_s),
            report.memory_peak_bytes.map_or_else(dash, megabytes),
            yes_or_no(report.answers_equal),
        ];
        (report.engine.as_str(), vec![values])
    });
    let names = names.map(str::to_owned).to_vec();
    blocks::table(&Block::new("TPC-H streams", "", &[names], Align::Left), engines)
}

fn queries(reports: &[ThroughputReport]) -> String {
    let latencies: Vec<_> = reports.iter().map(ThroughputReport::latency_avg_s).collect();
    let Some(base) = latencies.first() else { return String::new() };
    let names = column("query", base.keys().map(|query| format!("Q{query}")));
    let engines = reports.iter().zip(&latencies).map(|(report, latencies)| {
        let ratios = latencies.iter().map(|(query, latency_s)| {
            base.get(query).map_or_else(dash, |base_s| decimal(latency_s / base_s))
        });
        let latencies = latencies.values().map(|&latency_s| decimal(latency_s));
        (report.engine.as_str(), vec![column("avg [s]", latencies), column("ratio", ratios)])
    });
    blocks::table(&Block::new("queries", "", &[names], Align::Left), engines)
}

/// The average bytes that running scans still needed, by the number of scans. Empty if no engine knows its scans.
fn sharing(reports: &[ThroughputReport]) -> String {
    let names = (1..SHARING_LEVELS).map(|scans| scans.to_string());
    let names = column("by scans", names.chain([format!("{SHARING_LEVELS} or more")]));
    let engines = reports.iter().filter_map(|report| {
        let bytes = report.sharing_avg()?;
        let sum = bytes.iter().sum::<f64>().max(1.0);
        let columns = vec![
            column("avg [MB]", bytes.map(|bytes| megabytes(bytes as u64))),
            column("share [%]", bytes.map(|bytes| decimal(100.0 * bytes / sum))),
        ];
        Some((report.engine.as_str(), columns))
    });
    let mut engines = engines.peekable();
    if engines.peek().is_none() {
        return String::new();
    }
    format!(
        "\n{}",
        blocks::table(&Block::new("data still needed", "", &[names], Align::Left), engines)
    )
}
