//! Scans on several numbers of partitions, as plain text.

use coscan_sim::report::draw::columns::{Align, Block};
use coscan_sim::report::draw::numbers::decimal;

use super::blocks::{self, column};
use crate::partitions::PartitionsReport;

/// The table with the time, the speed, the most idle partition, and the chunks of each query and number of partitions,
/// on each engine.
pub fn table(reports: &[PartitionsReport]) -> String {
    let mut engines: Vec<(&str, Vec<&PartitionsReport>)> = Vec::new();
    for report in reports {
        match engines.iter_mut().find(|(name, _)| *name == report.engine) {
            Some((_, rows)) => rows.push(report),
            None => engines.push((&report.engine, vec![report])),
        }
    }
    let rows = engines.first().map_or(&[][..], |(_, rows)| rows);
    let names = [
        column("query", rows.iter().map(|row| row.query.clone())),
        column("partitions", rows.iter().map(|row| row.partitions.to_string())),
    ];
    let engines = engines.iter().map(|(engine, rows)| {
        let columns = vec![
            column("time [s]", rows.iter().map(|row| format!("{:.3}", row.time_s))),
            column("speed", rows.iter().map(|row| decimal(row.speed))),
            column("idle [%]", rows.iter().map(|row| decimal(100.0 * row.idle_max()))),
            column("chunks", rows.iter().map(|row| chunks(row))),
        ];
        (*engine, columns)
    });
    let text = blocks::table(&Block::new("scans", "", &names, Align::Right), engines);
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
