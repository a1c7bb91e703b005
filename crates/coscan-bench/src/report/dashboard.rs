//! The refreshes of a dashboard on each engine, as plain text.

use coscan_sim::report::draw::columns::{Align, Block};
use coscan_sim::report::draw::numbers::{decimal, megabytes};

use super::blocks::{self, dash, yes_or_no};
use super::rounds::interval;
use crate::dashboard::DashboardRun;

/// The table with the first refresh, the later ones, and what any engine has to read at least.
pub fn table(run: &DashboardRun) -> String {
    let (first_bytes, added_bytes) = run.compulsory_bytes;
    let names = [
        "opening the table [s]".to_owned(),
        "first refresh [s]".to_owned(),
        "  ratio".to_owned(),
        "  CPU time [s]".to_owned(),
        format!("  bytes read [MB], of {} in columns", megabytes(first_bytes)),
        "later refreshes, median [s]".to_owned(),
        "  ratio".to_owned(),
        "  95 % interval".to_owned(),
        "  CPU time [s]".to_owned(),
        format!("  bytes read [MB], of {} in the new file", megabytes(added_bytes)),
        "answers equal".to_owned(),
    ];
    let engines = run.compared.reports.iter().enumerate().map(|(index, report)| {
        let later = |show: &dyn Fn(&crate::dashboard::RefreshReport) -> String| {
            report.later.as_ref().map_or_else(dash, show)
        };
        let ratio = report.later_ratio.as_ref();
        let values = vec![
            decimal(report.open_s),
            decimal(report.first.time_s),
            format!("{:.3}", report.first_ratio),
            decimal(report.first.cpu_s),
            megabytes(report.first.bytes_read),
            later(&|later| decimal(later.time_s)),
            ratio.map_or_else(dash, |ratio| format!("{:.3}", ratio.median)),
            ratio.filter(|_| index > 0).map_or_else(dash, interval),
            later(&|later| decimal(later.cpu_s)),
            later(&|later| megabytes(later.bytes_read)),
            yes_or_no(report.answers_equal),
        ];
        (report.engine.as_str(), vec![values])
    });
    let title = format!("{} files at first", run.files);
    blocks::table(&Block::new(&title, "", &[names.to_vec()], Align::Left), engines)
}
