//! Runs experiments on several threads, with results in an order that does not depend on them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use coscan_core::PolicyKind;
use coscan_sim::experiment::{Prepared, Run};
use coscan_sim::{Case, Metric, Options, Spec, Violation};

/// The runs of a case.
pub(crate) struct CaseRuns {
    /// For each seed, a run for each policy.
    seeds: Vec<Vec<Run>>,
}

impl CaseRuns {
    /// The runs of each seed, in the order of the policies.
    pub(crate) fn seeds(&self) -> &[Vec<Run>] {
        &self.seeds
    }

    /// The average over the seeds of a metric under the policy at this position; NaN where it does not exist.
    pub(crate) fn average(&self, policy: usize, metric: Metric) -> f64 {
        let values = self.seeds.iter().map(|runs| value(&runs[policy], metric));
        values.sum::<f64>() / self.seeds.len() as f64
    }
}

/// Runs all cases of the files with seeds from 1, under these policies. Returns the runs of each case of each file.
pub(crate) fn run_all(
    specs: &[Spec],
    policies: &[PolicyKind],
    seeds: u64,
) -> Result<Vec<Vec<CaseRuns>>, String> {
    let cases: Vec<&Case> = specs.iter().flat_map(|spec| &spec.cases).collect();
    let jobs = cases.iter().enumerate();
    let jobs =
        jobs.flat_map(|(position, case)| (1..=seeds).map(move |seed| (position, case, seed)));
    let jobs: Vec<_> = jobs.collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&(position, case, seed)) =
                    jobs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let runs = run_one(case, policies, seed);
                    done.lock().expect("no thread panics").insert((position, seed), runs);
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no thread panics").into_values();
    let mut next_seed = || done.next().expect("a result for each job");
    let mut of_case = |spec: &Spec, case: &Case| {
        let runs = (0..seeds).map(|_| next_seed()).collect::<Result<_, _>>();
        let seeds = runs.map_err(|error| format!("{} {}: {error}", spec.name, case.name))?;
        Ok(CaseRuns { seeds })
    };
    let of_spec = |spec: &Spec| spec.cases.iter().map(|case| of_case(spec, case)).collect();
    specs.iter().map(of_spec).collect()
}

fn run_one(case: &Case, policies: &[PolicyKind], seed: u64) -> Result<Vec<Run>, Box<Violation>> {
    let prepared = Arc::new(Prepared::new(case, seed)?);
    policies.iter().map(|policy| prepared.run(policy.build(), Options::default())).collect()
}

/// The value of a metric in a run; NaN where it does not exist.
pub(crate) fn value(run: &Run, metric: Metric) -> f64 {
    run.value(metric).unwrap_or(f64::NAN)
}

/// The average of ratios.
pub(crate) fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let logarithms: Vec<_> = values.map(f64::ln).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp()
}
