//! The bytes that each engine read from the device.

use coscan_sim::report::draw::figure::Figure;
use coscan_sim::report::draw::numbers::{decimal, megabytes};
use coscan_sim::report::draw::style::Hue;
use coscan_sim::report::figures::bars::{self, Bar, ReferenceLine};

use crate::metrics::EngineReport;

/// One bar per engine, with the ratio to the first one. `touched_bytes` marks the minimum, which is every byte that
/// some query needs, read once.
pub fn figure(reports: &[EngineReport], touched_bytes: Option<u64>) -> Figure {
    let first = reports.first().map_or(0, |report| report.bytes_read);
    let bars = reports.iter().enumerate().map(|(index, report)| Bar {
        name: report.engine.clone(),
        hue: Hue::of_engine(&report.engine, index),
        value: report.bytes_read as f64 / 1e6,
        text: format!("{} MB", megabytes(report.bytes_read)),
        note: if index > 0 && first > 0 {
            format!("{}×", decimal(report.bytes_read as f64 / first as f64))
        } else {
            String::new()
        },
        paper: None,
    });
    let least = touched_bytes.map(|touched| ReferenceLine {
        value: touched as f64 / 1e6,
        name: format!("every byte needed, read once: {} MB", megabytes(touched)),
    });
    let bars: Vec<Bar> = bars.collect();
    bars::figure("Bytes read per engine", "bytes read [MB]", &bars, least.as_ref())
}
