//! CS07 Table 2 as plain text, at most [`WIDTH_MAX`] characters wide.

use coscan_sim::report::draw::columns::{Align, Block};

use crate::metrics::EngineReport;

use super::blocks::{self, column};
use super::rows::{kind_rows, system_rows};

pub use coscan_sim::report::draw::columns::WIDTH_MAX;

/// The table for any number of engines, with figures of the whole run, then of each kind of query.
pub fn table(reports: &[EngineReport]) -> String {
    let engines = || reports.iter().map(|report| report.engine.as_str()).enumerate();
    let system = system_rows(reports);
    let names = system.iter().map(|row| row.name.to_owned()).collect();
    let values = engines().map(|(engine, name)| {
        (name, vec![system.iter().map(|row| row.values[engine].clone()).collect()])
    });
    let upper = blocks::table(&Block::new("system", "", &[names], Align::Left), values);

    let kinds = kind_rows(reports);
    let names = [
        column("kind", kinds.iter().map(|row| row.label.clone())),
        column("count", kinds.iter().map(|row| row.count.clone())),
        column("cold [s]", kinds.iter().map(|row| row.standalone_s.clone())),
    ];
    let values = engines().map(|(engine, name)| {
        let columns = ["avg [s]", "stddev", "norm."].iter().enumerate().map(|(index, header)| {
            column(header, kinds.iter().map(|row| row.values[engine][index].clone()))
        });
        (name, columns.collect())
    });
    let lower = blocks::table(&Block::new("queries", "alone", &names, Align::Right), values);
    format!("{upper}\n{lower}")
}
