//! CS07 Figure 4, which shows the parts of the table that each engine reads over time.

use coscan_sim::report::draw::figure::Figure;
use coscan_sim::report::draw::numbers::{count, decimal, megabytes};
use coscan_sim::report::draw::style::Hue;
use coscan_sim::report::figures::dots::{self, Panel, Positions, Series};

use crate::metrics::EngineReport;

/// One panel per engine, all with the same time axis. Every dot is a read.
pub fn figure(reports: &[EngineReport]) -> Figure {
    let panels = reports.iter().enumerate().map(|(index, report)| {
        let hue = Hue::of_engine(&report.engine, index);
        let reads = report.reads.iter().map(|read| (read.t_s, read.position * 100.0));
        Panel {
            name: report.engine.clone(),
            hue,
            summary: format!(
                "{} requests · {} MB · done after {} s",
                count(report.io_requests),
                megabytes(report.bytes_read),
                decimal(report.total_s)
            ),
            end_s: report.total_s,
            series: vec![Series { hue, reads: reads.collect() }],
        }
    });
    let positions =
        Positions { name: "position in the table".into(), max: 100.0, unit: " %".into() };
    dots::figure(&positions, &[], &panels.collect::<Vec<_>>())
}
