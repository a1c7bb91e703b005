//! Figures that are not tables of policies: a formula, and a scatter plot.

use coscan_sim::Metric;

use crate::format::{head, number, row};
use crate::measured::Measured;
use crate::reuse::reuse_probability;
use crate::verdicts::Judged;

/// Writes `[CS07 §3, Figure 2]`.
pub(crate) fn write_reuse() -> String {
    let mut text = "## Probability that the pool holds a useful chunk\n\n`[CS07 §3, formula 1, Figure 2]`, for a table of 100 \
                    chunks; in order, a scan can use one chunk only.\n\n"
        .to_owned();
    let pools = [1, 5, 10, 20, 50];
    let titles = pools.map(|pool| format!("pool {pool} %"));
    text += &head(
        &std::iter::once("query").chain(titles.iter().map(String::as_str)).collect::<Vec<_>>(),
        0,
    );
    for query in [1, 5, 10, 20, 50] {
        let cells =
            pools.map(|pool| format!("{:.0} %", 100.0 * reuse_probability(100, query, pool)));
        text += &row(std::iter::once(format!("{query} %")).chain(cells));
    }
    text + &row(std::iter::once("in order".to_owned()).chain(pools.map(|pool| format!("{pool} %"))))
}

/// Judges the values of the formula.
pub(crate) fn judge_reuse() -> Judged {
    let says = [
        "cs07-example",
        "[CS07 §3, Figure 2]",
        "A tenth of the table in the pool holds something for a scan of a tenth with more than even odds",
        "probability, 10 of 100 chunks",
    ];
    Judged::computed(says, 0.5..=1.0, reuse_probability(100, 10, 10))
}

/// Writes `[CS11 §6.6, Figure 6.5]`: a point for each case and policy, cooperative scans at (1, 1).
pub(crate) fn write_relative(table: &Measured) -> String {
    const TO: &str = "relevance-2007";
    let mut text = "## Relative to cooperative scans\n\n`[CS11 §6.6, Figure 6.5]`, from the printed figures and ours.\n\n"
        .to_owned();
    let titles = ["", "stream time: the paper", "ours", "normalized latency: the paper", "ours"];
    text += &head(&titles, 1);
    for policy in ["normal", "predictive"] {
        for case in &table.spec.cases {
            let cells = [Metric::StreamAvg, Metric::NormalizedLatencyAvg].map(|metric| {
                let printed = |policy| table.printed(&case.name, policy, None, metric);
                let ours =
                    |policy| table.average(&case.name, policy, None, metric).unwrap_or(f64::NAN);
                [printed(policy) / printed(TO), ours(policy) / ours(TO)].map(number)
            });
            let name = format!("{policy}, {}", case.name);
            text += &row(std::iter::once(name).chain(cells.into_iter().flatten()));
        }
    }
    text
}
