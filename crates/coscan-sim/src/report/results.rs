//! The runs of an experiment, by case and policy, with averages over seeds.

use std::collections::BTreeSet;

use crate::experiment::Run;
use crate::metric::Metric;
use crate::spec::Spec;

/// An experiment and its runs.
#[derive(Clone, Debug)]
pub struct Results<'a> {
    spec: &'a Spec,
    runs: &'a [Run],
    /// The policies in the order in which they first occur.
    policies: Vec<&'a str>,
    seeds: BTreeSet<u64>,
}

/// A value over several seeds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Summary {
    /// The average.
    pub average: f64,
    /// The lowest and the highest value.
    pub ends: (f64, f64),
}

impl Summary {
    fn of(values: impl Iterator<Item = f64>) -> Option<Summary> {
        let values: Vec<f64> = values.collect();
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        let average = values.iter().sum::<f64>() / values.len() as f64;
        Some(Summary { average, ends: (low, high) })
    }
}

impl<'a> Results<'a> {
    /// The results of an experiment. Policies are shown in the order in which they first occur among the runs.
    #[must_use]
    pub fn new(spec: &'a Spec, runs: &'a [Run]) -> Results<'a> {
        let mut policies: Vec<&str> = Vec::new();
        for run in runs {
            if !policies.contains(&run.outcome.policy.as_str()) {
                policies.push(&run.outcome.policy);
            }
        }
        let seeds = runs.iter().map(|run| run.prepared.seed).collect();
        Results { spec, runs, policies, seeds }
    }

    /// The experiment.
    #[must_use]
    pub fn spec(&self) -> &'a Spec {
        self.spec
    }

    /// All runs.
    #[must_use]
    pub fn runs(&self) -> &'a [Run] {
        self.runs
    }

    /// The policies.
    #[must_use]
    pub fn policies(&self) -> &[&'a str] {
        &self.policies
    }

    /// The seeds.
    #[must_use]
    pub fn seeds(&self) -> &BTreeSet<u64> {
        &self.seeds
    }

    /// The names of the cases, in the order of the file.
    pub fn cases(&self) -> impl ExactSizeIterator<Item = &'a str> + use<'a> {
        self.spec.cases.iter().map(|case| case.name.as_str())
    }

    /// The runs of a case under a policy, one per seed.
    pub fn of(&self, case: &str, policy: &str) -> impl Iterator<Item = &'a Run> {
        self.runs
            .iter()
            .filter(move |run| run.prepared.case == case && run.outcome.policy == policy)
    }

    /// A metric of a case under a policy, of all queries or of those of one kind.
    #[must_use]
    pub fn value(
        &self,
        case: &str,
        policy: &str,
        kind: Option<&str>,
        metric: Metric,
    ) -> Option<Summary> {
        let runs = self.of(case, policy);
        match kind {
            Some(kind) => Summary::of(runs.filter_map(|run| run.value_of(kind, metric))),
            None => Summary::of(runs.filter_map(|run| run.value(metric))),
        }
    }

    /// The figure of the paper.
    #[must_use]
    pub fn paper(
        &self,
        case: &str,
        policy: &str,
        kind: Option<&str>,
        metric: Metric,
    ) -> Option<f64> {
        let figure = self.spec.paper.iter().find(|figure| {
            figure.case == case
                && figure.policy == policy
                && figure.query.as_deref() == kind
                && figure.metric == metric
        });
        figure.map(|figure| figure.value)
    }

    /// The kinds of queries of a case, those of one name in the order of the numbers in it: `F-1`, `F-10`, `S-1`.
    #[must_use]
    pub fn kinds(&self, case: &str) -> Vec<&'a str> {
        let runs = self.runs.iter().filter(|run| run.prepared.case == case);
        let queries = runs.flat_map(|run| &run.outcome.queries);
        let kinds: BTreeSet<&str> = queries.map(|query| query.label.as_str()).collect();
        let mut kinds: Vec<&str> = kinds.into_iter().collect();
        kinds.sort_by(|left, right| order(left).partial_cmp(&order(right)).expect("no NaN"));
        kinds
    }
}

/// The name of a kind without its number, and the number.
fn order(kind: &str) -> (&str, f64) {
    let (name, number) = kind.rsplit_once('-').unwrap_or((kind, ""));
    match number.parse() {
        Ok(number) if f64::is_finite(number) => (name, number),
        _ => (kind, 0.0),
    }
}
