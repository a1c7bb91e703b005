//! CS07 Table 2 as plain text, at most [`WIDTH_MAX`] characters wide.

use std::iter;

use coscan_sim::report::draw::columns::{Align, Block, beside};

use crate::metrics::EngineReport;

use super::rows::{kind_rows, system_rows};

pub use coscan_sim::report::draw::columns::WIDTH_MAX;

/// The table for any number of engines, with figures of the whole run, then of each kind of query.
pub fn table(reports: &[EngineReport]) -> String {
    let system = system_rows(reports);
    let names = system.iter().map(|row| row.name.to_string()).collect();
    let engines = reports.iter().enumerate().map(|(engine, report)| {
        let values = system.iter().map(|row| row.values[engine].clone()).collect();
        Block::new(&report.engine, "", &[values], Align::Right)
    });
    let upper =
        beside(&Block::new("system", "", &[names], Align::Left), &engines.collect::<Vec<_>>());

    let kinds = kind_rows(reports);
    let column = |header: &str, value: &dyn Fn(usize) -> String| -> Vec<String> {
        iter::once(header.to_string()).chain((0..kinds.len()).map(value)).collect()
    };
    let first = Block::new(
        "queries",
        "alone",
        &[
            column("kind", &|row| kinds[row].label.clone()),
            column("count", &|row| kinds[row].count.clone()),
            column("cold [s]", &|row| kinds[row].standalone_s.clone()),
        ],
        Align::Right,
    );
    let engines = reports.iter().enumerate().map(|(engine, report)| {
        let columns = ["avg [s]", "stddev", "norm."]
            .iter()
            .enumerate()
            .map(|(index, header)| column(header, &|row| kinds[row].values[engine][index].clone()));
        Block::new(&report.engine, "", &columns.collect::<Vec<_>>(), Align::Right)
    });
    let lower = beside(&first, &engines.collect::<Vec<_>>());
    format!("{upper}\n{lower}")
}
