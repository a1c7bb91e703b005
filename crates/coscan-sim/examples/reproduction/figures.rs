//! Figures that are not tables of policies: a formula, and sharing potential.

use std::sync::Arc;

use coscan_core::PolicyKind;
use coscan_sim::experiment::{Prepared, reuse_probability};
use coscan_sim::{Options, Spec};

use crate::format::{head, row};
use crate::verdicts::Judged;

/// `[CS07 §3, Figure 2]`
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

/// What the formula is said to give.
pub(crate) fn judge_reuse() -> Judged {
    let says = [
        "cs07-example",
        "[CS07 §3, Figure 2]",
        "A tenth of the table in the pool holds something for a scan of a tenth with more than even odds",
        "probability, 10 of 100 chunks",
    ];
    Judged::computed(says, 0.5..=1.0, reuse_probability(100, 10, 10))
}

/// `[CS11 §6.2, Figure 6.1]`
pub(crate) fn write_potential(spec: &Spec) -> Result<String, String> {
    const SAMPLES: u32 = 10;
    let mut text = "## Sharing potential\n\n`[CS11 §6.2, Figure 6.1]`\n\nMegabytes that running scans have still to be \
                    handed, by how many of them want the same, over the time of one run (seed 1). The paper's figure has \
                     no numbers, and no verdict follows from this; there most of the area is needed by five scans or \
                     more, under which policy is not said.\n\n"
        .to_owned();
    let case = spec.cases.first().ok_or("a file has a case")?;
    let prepared = Arc::new(Prepared::new(case, 1).map_err(|error| error.to_string())?);
    let options = Options { timeline: true, ..Options::default() };
    for policy in [PolicyKind::Normal, PolicyKind::Relevance2007] {
        let run = prepared.run(policy.build(), options).map_err(|error| error.to_string())?;
        let potentials = run.sharing_potential(SAMPLES);
        let titles =
            potentials.iter().map(|potential| format!("{:.0} s", potential.at.0 as f64 / 1e9));
        let titles: Vec<_> =
            std::iter::once(format!("{policy}, needed by")).chain(titles).collect();
        text += &head(&titles.iter().map(String::as_str).collect::<Vec<_>>(), 1);
        for (level, name) in ["1 scan", "2", "3", "4", "5 or more"].into_iter().enumerate() {
            let cells = potentials
                .iter()
                .map(|potential| format!("{}", potential.bytes[level] / 1_000_000));
            text += &row(std::iter::once(name.to_owned()).chain(cells));
        }
        text += "\n";
    }
    Ok(text)
}
