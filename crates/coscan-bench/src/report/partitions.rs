//! Scans on several numbers of partitions, as plain text.

use coscan_sim::report::draw::columns::{Align, Block, beside};
use coscan_sim::report::draw::numbers::decimal;

use super::column::column;
use crate::partitions::PartitionsReport;

/// The table with the time, the speed, the most idle partition, and the chunks of each query and number of partitions,
/// on each engine.
pub fn table(reports: &[PartitionsReport]) -> String {
    let mut engines: Vec<&str> = Vec::new();
    for report in reports {
        if !engines.contains(&report.engine.as_str()) {
            engines.push(&report.engine);
        }
    }
    let of = |engine: &str| -> Vec<&PartitionsReport> {
        reports.iter().filter(|report| report.engine == engine).collect()
    };
    let rows = engines.first().map_or_else(Vec::new, |first| of(first));
    let first = [
        column("query", rows.iter().map(|row| row.query.clone())),
        column("partitions", rows.iter().map(|row| row.partitions.to_string())),
    ];
    let first = Block::new("scans", "", &first, Align::Right);
    let blocks = engines.iter().map(|engine| {
        let rows = of(engine);
        let columns = [
            column("time [s]", rows.iter().map(|row| format!("{:.3}", row.time_s))),
            column("speed", rows.iter().map(|row| decimal(row.speed))),
            column("idle [%]", rows.iter().map(|row| decimal(100.0 * row.idle_max()))),
            column("chunks", rows.iter().map(|row| chunks(row))),
        ];
        Block::new(engine, "", &columns, Align::Right)
    });
    let text = beside(&first, &blocks.collect::<Vec<_>>());
    match reports.iter().find(|report| !report.answers_equal) {
        None => format!("{text}\nAll engines gave equal answers."),
        Some(report) => format!("{text}\nTHE ANSWERS DIFFER: {}, {}", report.engine, report.query),
    }
}

/// The minimum and the maximum of a partition.
fn chunks(report: &PartitionsReport) -> String {
    let (least, most) = report.chunks();
    format!("{least:.1} to {most:.1}")
}
