//! Experiments with a ring: cases, published figures, claims.

use super::metric::CyclotronMetric;
use super::setup::Cyclotron;
use super::simulation::run_cyclotron;
use crate::claim::{Claim, Judgement, PaperFigure};

/// The name that stands for a policy in claims and published figures of a ring.
pub(super) const CIRCULATE: &str = "circulate";

/// An experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct CyclotronSpec {
    /// Its name.
    pub name: String,
    /// The title, which says what is measured.
    pub title: String,
    /// Its source, such as `[DC §5.4.2, Table 5.3]`.
    pub source: String,
    /// Parameters that were fitted, and to what.
    pub fitted: Vec<String>,
    /// Parameters that the source does not state.
    pub assumed: Vec<String>,
    /// Remarks.
    pub remarks: Vec<String>,
    /// The cases.
    pub cases: Vec<CyclotronCase>,
    /// The published figures.
    pub paper: Vec<PaperFigure<CyclotronMetric>>,
    /// The claims.
    pub claims: Vec<Claim<CyclotronMetric>>,
}

/// A case of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct CyclotronCase {
    /// Its name.
    pub name: String,
    /// The ring.
    pub setup: Cyclotron,
}

impl CyclotronSpec {
    /// Runs all cases with the seeds from 1 to `seeds`.
    #[must_use]
    pub fn run(&self, seeds: u64) -> CyclotronResults {
        let case = |case: &CyclotronCase| {
            let runs = (1..=seeds).map(|seed| run_cyclotron(&case.setup, seed));
            let runs: Vec<_> = runs.collect();
            let average = |metric: &CyclotronMetric| {
                let values: Option<Vec<f64>> =
                    runs.iter().map(|run| metric.value(&case.setup, run)).collect();
                let values = values.filter(|values| !values.is_empty())?;
                Some((*metric, values.iter().sum::<f64>() / values.len() as f64))
            };
            let values = CyclotronMetric::ALL.iter().filter_map(average).collect();
            (case.name.clone(), values)
        };
        CyclotronResults { cases: self.cases.iter().map(case).collect() }
    }

    /// The published figure of a case.
    #[must_use]
    pub fn published(&self, case: &str, metric: CyclotronMetric) -> Option<f64> {
        let same =
            |figure: &&PaperFigure<CyclotronMetric>| figure.case == case && figure.metric == metric;
        self.paper.iter().find(same).map(|figure| figure.value)
    }

    /// The judgement of a claim.
    #[must_use]
    pub fn judge(&self, claim: &Claim<CyclotronMetric>, results: &CyclotronResults) -> Judgement {
        claim.judge(&self.paper, |case, _| results.value(case, claim.metric))
    }
}

/// The measurements, on average over the seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct CyclotronResults {
    cases: Vec<(String, Vec<(CyclotronMetric, f64)>)>,
}

impl CyclotronResults {
    /// A metric of a case; `None` where queries blocked each other with any seed.
    #[must_use]
    pub fn value(&self, case: &str, metric: CyclotronMetric) -> Option<f64> {
        let (_, values) = self.cases.iter().find(|(name, _)| name == case)?;
        values.iter().find(|(of, _)| *of == metric).map(|&(_, value)| value)
    }
}
