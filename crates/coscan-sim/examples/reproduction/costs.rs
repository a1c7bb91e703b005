//! The cost of decisions `[CS07 §5.2.4, Figure 8]`: the time of a simulation, including everything else that the
//! simulator does.

use std::sync::Arc;
use std::time::Instant;

use coscan_core::PolicyKind;
use coscan_sim::experiment::Prepared;
use coscan_sim::{Metric, Options, Spec};

use crate::common::value;
use crate::format::{head, row};
use crate::verdicts::Judged;

const POLICIES: [PolicyKind; 3] =
    [PolicyKind::Normal, PolicyKind::Relevance2007, PolicyKind::Relevance];
/// The number of runs of which the shortest counts.
const TRIES: usize = 5;

/// The times of the runs of an experiment.
pub(crate) struct Costs {
    /// The name of each case, and for each policy seconds, and seconds as a part of the simulated time.
    cases: Vec<(String, [(f64, f64); POLICIES.len()])>,
}

impl Costs {
    pub(crate) fn measure(spec: &Spec) -> Result<Self, String> {
        let mut cases = Vec::new();
        for case in &spec.cases {
            let prepared = Arc::new(Prepared::new(case, 1).map_err(|error| error.to_string())?);
            let mut costs = [(f64::INFINITY, 0.0); POLICIES.len()];
            for (policy, cost) in POLICIES.into_iter().zip(&mut costs) {
                for _ in 0..TRIES {
                    let start = Instant::now();
                    let run = prepared.run(policy.build(), Options::default());
                    let seconds = start.elapsed().as_secs_f64().min(cost.0);
                    let run = run.map_err(|error| error.to_string())?;
                    *cost = (seconds, seconds / value(&run, Metric::Total));
                }
            }
            cases.push((case.name.clone(), costs));
        }
        Ok(Self { cases })
    }

    /// The largest part of the simulated time under the published policy.
    pub(crate) fn judged(&self) -> Judged {
        let published = self.cases.iter().map(|(_, costs)| 100.0 * costs[1].1);
        let says = [
            "cs07-figure8",
            "[CS07 §5.2.4, Figure 8]",
            "Decisions take at most 1 percent of the time, even for 2,048 chunks (on a machine of today)",
            "percent of the time, relevance-2007, an upper bound",
        ];
        Judged::computed(says, 0.0..=1.0, published.fold(0.0, f64::max))
    }

    pub(crate) fn write(&self) -> String {
        let mut text = "## What decisions cost\n\nMilliseconds that the whole simulation of a run takes on one core (the \
                        policy, the simulated disk and processors, and the checks), and as a part of the simulated time; \
                        the least of five. An upper bound of what the decisions take; it differs from machine to \
                        machine. The paper: less than 1 % in the worst case, growing faster than the number of \
                        chunks.\n\n"
            .to_owned();
        let names = POLICIES.map(|policy| policy.to_string());
        let titles: Vec<_> =
            std::iter::once("case").chain(names.iter().map(String::as_str)).collect();
        text += &head(&titles, 1);
        for (name, costs) in &self.cases {
            let cells = costs
                .map(|(seconds, part)| format!("{:.1} ({:.3} %)", 1e3 * seconds, 100.0 * part));
            text += &row(std::iter::once(name.clone()).chain(cells));
        }
        text
    }
}
