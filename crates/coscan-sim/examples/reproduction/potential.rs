//! Sharing potential `[CS11 §6.2, Figure 6.1; §7.2.3, Figure 7.3 (d)]`: the data that running scans still need, by the
//! number of scans that need it.

use std::sync::Arc;

use coscan_core::PolicyKind;
use coscan_sim::experiment::{Potential, Prepared};
use coscan_sim::{Options, Spec};

use crate::format::{head, row};
use crate::verdicts::Judged;

const SAMPLES: u32 = 10;
/// The beginning of a table that needs no numbers from the paper.
const WHAT: &str = "Megabytes that running scans have still to be handed, by how many of them want the same, over the time \
                    of one run (seed 1).";

fn measure(spec: &Spec, case: &str, policy: PolicyKind) -> Result<Vec<Potential>, String> {
    let case = spec.cases.iter().find(|known| known.name == case).ok_or("there is the case")?;
    let prepared = Arc::new(Prepared::new(case, 1).map_err(|error| error.to_string())?);
    let options = Options { timeline: true, ..Options::default() };
    let run = prepared.run(policy.build(), options).map_err(|error| error.to_string())?;
    Ok(run.sharing_potential(SAMPLES))
}

fn table(policy: PolicyKind, potentials: &[Potential]) -> String {
    let titles = potentials.iter().map(|potential| format!("{:.0} s", potential.at.0 as f64 / 1e9));
    let titles: Vec<_> = std::iter::once(format!("{policy}, needed by")).chain(titles).collect();
    let mut text = head(&titles.iter().map(String::as_str).collect::<Vec<_>>(), 1);
    for (level, name) in ["1 scan", "2", "3", "4", "5 or more"].into_iter().enumerate() {
        let megabytes = |potential: &Potential| format!("{}", potential.bytes[level] / 1_000_000);
        text += &row(std::iter::once(name.to_owned()).chain(potentials.iter().map(megabytes)));
    }
    text + "\n"
}

/// Writes the sharing potential of the synthetic workload.
pub(crate) fn write_synthetic(spec: &Spec) -> Result<String, String> {
    let mut text = format!(
        "## Sharing potential\n\n`[CS11 §6.2, Figure 6.1]`\n\n{WHAT} The paper's figure has no numbers, and no verdict \
         follows from this; there most of the area is needed by five scans or more, under which policy is not said.\n\n"
    );
    for policy in [PolicyKind::Normal, PolicyKind::Relevance2007] {
        text += &table(policy, &measure(spec, "", policy)?);
    }
    Ok(text)
}

/// The sharing potential of TPC-H under cooperative scans.
pub(crate) struct Tpch(Vec<Potential>);

impl Tpch {
    pub(crate) fn measure(spec: &Spec) -> Result<Self, String> {
        Ok(Self(measure(spec, "40 %", PolicyKind::Relevance2007)?))
    }

    /// Judges the part of the data that one scan or two need, over the whole run.
    pub(crate) fn judged(&self) -> Judged {
        let sum = |levels: std::ops::Range<usize>| -> u64 {
            self.0.iter().map(|potential| potential.bytes[levels.clone()].iter().sum::<u64>()).sum()
        };
        let says = [
            "cs11-figure7.3",
            "[CS11 §7.2.3, Figure 7.3 (d)]",
            "TPC-H has little to share: most of what running scans need is needed by one or two of them",
            "part of the bytes, relevance-2007, pool of 40 percent",
        ];
        Judged::computed(says, 0.5..=1.0, sum(0..2) as f64 / sum(0..5) as f64)
    }

    pub(crate) fn write(&self) -> String {
        format!(
            "\n## Sharing potential\n\n`[CS11 §7.2.3, Figure 7.3 (d)]`\n\n{WHAT} The pool has 40 percent; the paper does not \
             say which.\n\n{}",
            table(PolicyKind::Relevance2007, &self.0)
        )
    }
}
