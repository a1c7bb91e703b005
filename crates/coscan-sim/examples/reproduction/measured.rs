//! The results of all experiments, beside the published ones.

use coscan_core::PolicyKind;
use coscan_sim::claim::{Claim, Judgement, PaperFigure};
use coscan_sim::experiment::Run;
use coscan_sim::{Metric, Spec};

use crate::common::CaseRuns;
use crate::format::title;

/// An experiment and its runs.
pub(crate) struct Measured {
    pub(crate) spec: Spec,
    pub(crate) cases: Vec<CaseRuns>,
}

/// A published figure and ours.
pub(crate) struct Pair<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) figure: &'a PaperFigure,
    pub(crate) ours: f64,
}

/// The position of a policy among the runs.
pub(crate) fn position(policy: &str) -> Option<usize> {
    PolicyKind::ALL.iter().position(|kind| kind.name() == policy)
}

impl Measured {
    /// The average over the seeds of a metric in a case under a policy, of all queries or those of one kind.
    pub(crate) fn average(
        &self,
        case: &str,
        policy: &str,
        query: Option<&str>,
        metric: Metric,
    ) -> Option<f64> {
        let values: Vec<f64> = self.values(case, policy, query, metric)?.flatten().collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// The metric with each seed.
    fn values(
        &self,
        case: &str,
        policy: &str,
        query: Option<&str>,
        metric: Metric,
    ) -> Option<impl Iterator<Item = Option<f64>>> {
        let case = self.spec.cases.iter().position(|known| known.name == case)?;
        let policy = position(policy)?;
        let value = move |run: &Run| match query {
            None => run.value(metric),
            Some(label) => run.value_of(label, metric),
        };
        Some(self.cases[case].seeds().iter().map(move |runs| value(&runs[policy])))
    }

    /// Judges a claim of the paper on average over the seeds.
    pub(crate) fn judge(&self, claim: &Claim) -> Judgement {
        let value = |case: &str, policy: &str| {
            self.average(case, policy, claim.query.as_deref(), claim.metric)
        };
        claim.judge(&self.spec.paper, value)
    }

    /// Judges a claim with each seed alone.
    pub(crate) fn judge_draws(&self, claim: &Claim) -> Vec<Judgement> {
        let draws = self.cases.first().map_or(0, |runs| runs.seeds().len());
        let judge = |draw| {
            claim.judge(&self.spec.paper, |case, policy| {
                self.values(case, policy, claim.query.as_deref(), claim.metric)?.nth(draw)?
            })
        };
        (0..draws).map(judge).collect()
    }

    /// The figure in the paper; NaN if it does not print one.
    pub(crate) fn printed(
        &self,
        case: &str,
        policy: &str,
        query: Option<&str>,
        metric: Metric,
    ) -> f64 {
        let same = |figure: &&PaperFigure| {
            (figure.case.as_str(), figure.policy.as_str(), figure.query.as_deref(), figure.metric)
                == (case, policy, query, metric)
        };
        self.spec.paper.iter().find(same).map_or(f64::NAN, |figure| figure.value)
    }

    /// Published figures that were measured there, and exist here, with ours.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        let spec = &self.spec;
        spec.paper.iter().filter(|figure| !figure.ideal).filter_map(move |figure| {
            let query = figure.query.as_deref();
            let ours = self.average(&figure.case, &figure.policy, query, figure.metric)?;
            Some(Pair { spec, figure, ours })
        })
    }
}

impl Pair<'_> {
    /// Our figure divided by the paper's.
    pub(crate) fn ratio(&self) -> f64 {
        self.ours / self.figure.value
    }

    /// The distance of the two figures, as a factor of 1 or more.
    pub(crate) fn distance(&self) -> f64 {
        self.ratio().max(1.0 / self.ratio())
    }

    /// Whether it is a figure that was fitted to: a query alone, or `normal`.
    pub(crate) fn is_calibration(&self) -> bool {
        self.figure.metric == Metric::StandaloneAvg || self.figure.policy == "normal"
    }

    /// The name of the figure.
    pub(crate) fn name(&self) -> String {
        let PaperFigure { case, policy, query, metric, .. } = self.figure;
        let query = query.as_deref().unwrap_or_default();
        let words = [title(*metric), "of", query, case.as_str(), "under", policy];
        let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
        words.join(" ").replace("of under", "under")
    }
}
