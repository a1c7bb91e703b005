//! Streams of the queries of TPC-H on each engine, as plain text.

use coscan_core::SHARING_LEVELS;
use coscan_sim::report::draw::columns::{Align, Block, beside};
use coscan_sim::report::draw::numbers::{count, decimal, megabytes};

use super::column::column;
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
    let first = Block::new("TPC-H streams", "", &[names.map(str::to_owned).to_vec()], Align::Left);
    let engines = reports.iter().map(|report| {
        let values = vec![
            decimal(report.total_s),
            decimal(report.stream_avg_s),
            count(report.throughput_at_size.round() as u64),
            megabytes(report.bytes_read),
            count(report.io_requests),
            decimal(report.cpu_s),
            report.memory_peak_bytes.map_or("-".to_owned(), megabytes),
            if report.answers_equal { "yes" } else { "NO" }.to_owned(),
        ];
        Block::new(&report.engine, "", &[values], Align::Right)
    });
    beside(&first, &engines.collect::<Vec<_>>())
}

fn queries(reports: &[ThroughputReport]) -> String {
    let latencies: Vec<_> = reports.iter().map(ThroughputReport::latency_avg_s).collect();
    let Some(base) = latencies.first() else { return String::new() };
    let names = base.keys().map(|query| format!("Q{query}"));
    let first = Block::new("queries", "", &[column("query", names)], Align::Left);
    let engines = reports.iter().zip(&latencies).map(|(report, latencies)| {
        let ratios = latencies.iter().map(|(query, latency_s)| {
            base.get(query).map_or("-".to_owned(), |base_s| decimal(latency_s / base_s))
        });
        let columns = [
            column("avg [s]", latencies.values().map(|&latency_s| decimal(latency_s))),
            column("ratio", ratios),
        ];
        Block::new(&report.engine, "", &columns, Align::Right)
    });
    beside(&first, &engines.collect::<Vec<_>>())
}

/// The average bytes that running scans still needed, by the number of scans. Empty if no engine knows its scans.
fn sharing(reports: &[ThroughputReport]) -> String {
    let names = (1..SHARING_LEVELS).map(|scans| scans.to_string());
    let names = column("by scans", names.chain([format!("{SHARING_LEVELS} or more")]));
    let first = Block::new("data still needed", "", &[names], Align::Left);
    let engines = reports.iter().filter_map(|report| {
        let bytes = report.sharing_avg()?;
        let sum = bytes.iter().sum::<f64>().max(1.0);
        let columns = [
            column("avg [MB]", bytes.iter().map(|&bytes| megabytes(bytes as u64))),
            column("share [%]", bytes.iter().map(|&bytes| decimal(100.0 * bytes / sum))),
        ];
        Some(Block::new(&report.engine, "", &columns, Align::Right))
    });
    let engines: Vec<_> = engines.collect();
    if engines.is_empty() { String::new() } else { format!("\n{}", beside(&first, &engines)) }
}
