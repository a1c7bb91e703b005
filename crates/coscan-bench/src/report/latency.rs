//! The normalized latency of each kind of query, per engine (CS07 Table 2, normalized
//! latency).

use coscan_sim::report::draw::figure::Figure;
use coscan_sim::report::draw::style::Hue;
use coscan_sim::report::figures::groups::{self, Names, Series};

use crate::metrics::EngineReport;
use crate::workload::{Kind, Percent, label};

/// Bars from 1 (as fast as alone) up to the average normalized latency of each kind of query, on a logarithmic axis,
/// where equal lengths are equal ratios. Bars below 1 point down.
pub fn figure(reports: &[EngineReport]) -> Figure {
    let kinds: Vec<_> = reports.iter().map(EngineReport::kinds).collect();
    let mut keys: Vec<(Kind, Percent)> =
        kinds.iter().flat_map(|kinds| kinds.keys().copied()).collect();
    keys.sort_unstable();
    keys.dedup();

    let series = reports.iter().zip(&kinds).enumerate().map(|(index, (report, kinds))| {
        let ratio = |key| kinds.get(key).map(|kind| kind.normalized_latency_avg);
        Series {
            name: report.engine.clone(),
            hue: Hue::of_engine(&report.engine, index),
            ratios: keys.iter().map(ratio).collect(),
            paper: Vec::new(),
        }
    });
    let names = Names {
        title: "Latency per kind of query, divided by the time alone",
        upright: "latency ÷ time alone (logarithmic)",
        across: "kind of query: F = fast (Q6), S = slow (Q1), O = in order, P = one key, CMJ = join; percent of the table that it reads",
    };
    let groups: Vec<String> = keys.iter().map(|(kind, percent)| label(*kind, *percent)).collect();
    groups::figure(names, &groups, &series.collect::<Vec<_>>())
}
