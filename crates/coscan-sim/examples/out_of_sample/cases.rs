//! The cases of each half, run under every policy that is compared.

use std::collections::BTreeSet;

use coscan_core::PolicyKind;
use coscan_sim::{Metric, Spec};

use crate::common::{run_all, value};
use crate::generator::random_file;

/// The number of cases of each half.
pub(crate) const CASES: u64 = 200;

/// The number of cases that are run before their runs are dropped: one takes some megabytes.
const AT_A_TIME: usize = 20;

/// The policies that are compared: `relevance` and the ones that it is compared with.
pub(crate) const POLICIES: [PolicyKind; 4] = [
    PolicyKind::Relevance,
    PolicyKind::Relevance2007,
    PolicyKind::Elevator,
    PolicyKind::ALL[3], // `predictive`
];

/// The metrics that are measured, and their names.
pub(crate) const MEASURES: [(Metric, &str); 3] = [
    (Metric::StreamAvg, "stream time"),
    (Metric::NormalizedLatencyAvg, "normalized latency"),
    (Metric::BytesRead, "bytes read"),
];

/// Seeds that policies may be tuned with, and those that no choice has seen.
#[derive(Clone, Copy)]
pub(crate) enum Half {
    Tuning,
    Reporting,
}

impl Half {
    /// The odd seeds, or the even ones.
    fn seeds(self) -> impl Iterator<Item = u64> {
        let first = match self {
            Half::Tuning => 1,
            Half::Reporting => 2,
        };
        (0..CASES).map(move |case| first + 2 * case)
    }
}

/// The results of a case.
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) title: String,
    /// The measured values for each policy.
    pub(crate) values: Vec<[f64; MEASURES.len()]>,
    /// The part of the time during which the disk was busy under `relevance`.
    pub(crate) disk_use: f64,
    /// The part of the processor time that was used under `relevance`.
    pub(crate) cpu_use: f64,
}

impl Case {
    /// `relevance` relative to the policy at this position.
    pub(crate) fn ratio(&self, policy: usize, measure: usize) -> f64 {
        self.values[0][measure] / self.values[policy][measure]
    }
}

/// Runs a half.
pub(crate) fn run(half: Half) -> Result<Vec<Case>, String> {
    let seeds: Vec<u64> = half.seeds().collect();
    let mut cases = Vec::new();
    for seeds in seeds.chunks(AT_A_TIME) {
        let specs = seeds.iter().map(|&seed| Spec::parse(&random_file(seed)));
        let specs = specs.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let runs = run_all(&specs, &POLICIES, 1)?;
        for ((&seed, spec), runs) in seeds.iter().zip(specs).zip(runs) {
            let runs = &runs[0].seeds()[0];
            cases.push(Case {
                seed,
                title: spec.title,
                values: runs
                    .iter()
                    .map(|run| MEASURES.map(|(metric, _)| value(run, metric)))
                    .collect(),
                disk_use: runs[0].outcome.disk_use(),
                cpu_use: runs[0].outcome.cpu_use(),
            });
        }
    }
    Ok(cases)
}

/// Prints the latency of each kind of query of a case under each policy.
pub(crate) fn print_runs(seed: u64) -> Result<(), String> {
    let spec = Spec::parse(&random_file(seed)).map_err(|error| error.to_string())?;
    let runs = run_all(std::slice::from_ref(&spec), &POLICIES, 1)?;
    for run in &runs[0][0].seeds()[0] {
        let outcome = &run.outcome;
        println!(
            "{:<15} streams {:.2} s, total {:.2} s, device {:.0} %, processors {:.0} %, {} loads, {:.0} MB",
            outcome.policy,
            outcome.stream_avg_s(),
            value(run, Metric::Total),
            outcome.disk_use() * 100.0,
            outcome.cpu_use() * 100.0,
            outcome.requests,
            outcome.bytes_read as f64 / 1e6
        );
        let labels: BTreeSet<_> = outcome.queries.iter().map(|query| &query.label).collect();
        for label in labels {
            let of = |metric| run.value_of(label, metric).unwrap_or(f64::NAN);
            println!(
                "    {label:<14} {:>8.3} s, alone {:>8.3} s, longest wait {:>7.3} s, {:>8.0} MB for all",
                of(Metric::LatencyAvg),
                of(Metric::StandaloneAvg),
                of(Metric::LongestWait),
                of(Metric::BytesRead) / 1e6
            );
        }
    }
    Ok(())
}
