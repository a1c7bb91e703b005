//! Claims of papers, and whether they hold here. A claim is data; its verdict follows from the measurements.

use std::fmt;
use std::ops::RangeInclusive;

use crate::metric::Metric;

/// The factor within which a measured figure is close to a printed one.
pub const CLOSE: f64 = 1.25;
/// The factor beyond which a printed figure is missed, even on the same side of 1.
pub const FAR: f64 = 2.0;

/// A published result.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperFigure<M = Metric> {
    /// The case.
    pub case: String,
    /// The name of the policy.
    pub policy: String,
    /// The query that it is the average of, such as `F-10`; `None` for all queries.
    pub query: Option<String>,
    /// The metric that was measured.
    pub metric: M,
    /// The result, in the unit of the metric.
    pub value: f64,
    /// Whether it was computed for an ideal schedule, not measured.
    pub ideal: bool,
}

/// A claim of a paper about a metric of some kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim<M = Metric> {
    /// The claim, in our words.
    pub text: String,
    /// Its source, such as `[CS07 §5.2]`.
    pub source: String,
    /// The metric to be measured.
    pub metric: M,
    /// The kind of queries that it is measured for, such as `F-10`; `None` for all.
    pub query: Option<String>,
    /// The values that are compared.
    pub measure: Measure,
    /// The criterion by which it holds in a case.
    pub criterion: Criterion,
    /// The cases that it is about.
    pub cases: Vec<String>,
    /// The reason why it does not hold here, as far as known. Not to be shown while it holds.
    pub why: Option<String>,
}

/// The value that is compared in each case.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// The largest ratio of one of these policies to the next one: below 1 if the values ascend in this order.
    Order(Vec<String>),
    /// The value under a policy.
    Ratio {
        /// The policy.
        policy: String,
        /// The policy that the value is relative to, if any.
        to: Option<String>,
        /// The case that the value is relative to, if any.
        to_case: Option<String>,
    },
}

/// The criterion by which a claim holds in a case.
#[derive(Clone, Debug, PartialEq)]
pub enum Criterion {
    /// The value lies in this range.
    Within(RangeInclusive<f64>),
    /// The value is [`CLOSE`] to the printed one.
    AsPrinted,
}

/// Whether a claim holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// It holds in all of its cases.
    Holds,
    /// It holds in half of its cases or more; or printed figures are missed by less than a factor of [`FAR`], on the
    /// same side of 1.
    Partly,
    /// It holds in fewer cases.
    Not,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Holds => "holds",
            Verdict::Partly => "partly",
            Verdict::Not => "not",
        })
    }
}

/// The judgement of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Whether it holds.
    pub verdict: Verdict,
    /// The comparison in each of its cases.
    pub comparisons: Vec<Comparison>,
}

/// A comparison in a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The case.
    pub case: String,
    /// The measured value; NaN if there is none.
    pub here: f64,
    /// The value from the paper's figures, if it prints them.
    pub paper: Option<f64>,
    /// Whether the claim holds in this case.
    pub holds: bool,
}

impl<M: Copy + PartialEq> Claim<M> {
    /// The policies that have to run.
    pub fn policies(&self) -> impl Iterator<Item = &str> {
        let (order, pair) = match &self.measure {
            Measure::Order(policies) => (policies.as_slice(), [None, None]),
            Measure::Ratio { policy, to, .. } => (&[][..], [Some(policy), to.as_ref()]),
        };
        order.iter().chain(pair.into_iter().flatten()).map(String::as_str)
    }

    /// The cases that have to run.
    pub fn cases_to_run(&self) -> impl Iterator<Item = &str> {
        let other = match &self.measure {
            Measure::Ratio { to_case: Some(case), .. } => Some(case),
            _ => None,
        };
        self.cases.iter().chain(other).map(String::as_str)
    }

    /// Judges the claim by the paper's figures and the measured `value` of the claim's metric and query in a case under
    /// a policy.
    pub fn judge(
        &self,
        paper: &[PaperFigure<M>],
        measured: impl Fn(&str, &str) -> Option<f64>,
    ) -> Judgement {
        let printed = |case: &str, policy: &str| {
            let same = |figure: &&PaperFigure<M>| {
                (figure.case.as_str(), figure.policy.as_str(), &figure.query, figure.metric)
                    == (case, policy, &self.query, self.metric)
            };
            paper.iter().find(same).map(|figure| figure.value)
        };
        let compare = |case: &String| {
            let here = self.compared(case, &measured).unwrap_or(f64::NAN);
            let paper = self.compared(case, &printed);
            let holds = match &self.criterion {
                Criterion::Within(range) => range.contains(&here),
                Criterion::AsPrinted => paper.is_some_and(|paper| within(here / paper, CLOSE)),
            };
            Comparison { case: case.clone(), here, paper, holds }
        };
        let comparisons: Vec<_> = self.cases.iter().map(compare).collect();
        Judgement { verdict: self.verdict(&comparisons), comparisons }
    }

    fn verdict(&self, comparisons: &[Comparison]) -> Verdict {
        let held = comparisons.iter().filter(|comparison| comparison.holds).count();
        let nearly = |comparison: &Comparison| {
            comparison.paper.is_some_and(|paper| {
                within(comparison.here / paper, FAR) && (comparison.here < 1.0) == (paper < 1.0)
            })
        };
        match &self.criterion {
            _ if held == comparisons.len() => Verdict::Holds,
            Criterion::AsPrinted if comparisons.iter().all(nearly) => Verdict::Partly,
            Criterion::Within(_) if 2 * held >= comparisons.len() => Verdict::Partly,
            _ => Verdict::Not,
        }
    }

    fn compared(&self, case: &str, value: &impl Fn(&str, &str) -> Option<f64>) -> Option<f64> {
        match &self.measure {
            Measure::Order(policies) => {
                let values: Option<Vec<f64>> =
                    policies.iter().map(|policy| value(case, policy)).collect();
                let values = values?;
                values.windows(2).map(|pair| pair[0] / pair[1]).max_by(f64::total_cmp)
            }
            Measure::Ratio { policy, to, to_case } => {
                let of_case = |case: &str| match to {
                    None => value(case, policy),
                    Some(to) => Some(value(case, policy)? / value(case, to)?),
                };
                match to_case {
                    None => of_case(case),
                    Some(other) => Some(of_case(case)? / of_case(other)?),
                }
            }
        }
    }
}

/// Whether a ratio is within this factor of 1.
#[must_use]
pub fn within(ratio: f64, factor: f64) -> bool {
    (1.0 / factor..=factor).contains(&ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(measure: Measure, criterion: Criterion, cases: &[&str]) -> Claim {
        Claim {
            text: String::new(),
            source: String::new(),
            metric: Metric::Total,
            query: None,
            measure,
            criterion,
            cases: cases.iter().map(|&case| case.to_owned()).collect(),
            why: None,
        }
    }

    fn ratio(policy: &str, to: Option<&str>, to_case: Option<&str>) -> Measure {
        let (to, to_case) = (to.map(str::to_owned), to_case.map(str::to_owned));
        Measure::Ratio { policy: policy.to_owned(), to, to_case }
    }

    fn figure(policy: &str, value: f64) -> PaperFigure {
        let (case, policy) = ("a".to_owned(), policy.to_owned());
        PaperFigure { case, policy, query: None, metric: Metric::Total, value, ideal: false }
    }

    /// Case `a`: fast 1, slow 4, slower 5; in case `b` fast 3 and the others the same.
    fn measured(case: &str, policy: &str) -> Option<f64> {
        match (case, policy) {
            ("b", "fast") => Some(3.0),
            (_, "fast") => Some(1.0),
            (_, "slow") => Some(4.0),
            (_, "slower") => Some(5.0),
            _ => None,
        }
    }

    #[test]
    fn an_order_is_the_largest_ratio_of_neighbours() {
        let order = |policies: &[&str]| {
            let policies = policies.iter().map(|&policy| policy.to_owned()).collect();
            let within = Criterion::Within(0.0..=0.999);
            claim(Measure::Order(policies), within, &["a"]).judge(&[], measured)
        };
        let right = order(&["fast", "slow", "slower"]);
        assert_eq!((right.verdict, right.comparisons[0].here), (Verdict::Holds, 0.8));
        assert_eq!(order(&["fast", "slower", "slow"]).verdict, Verdict::Not);
        assert_eq!(order(&["fast", "unknown"]).verdict, Verdict::Not);
    }

    #[test]
    fn a_claim_holds_partly_where_it_holds_in_half_of_the_cases() {
        let half = Criterion::Within(0.0..=0.5);
        let claim = |cases| claim(ratio("fast", Some("slow"), None), half.clone(), cases);
        assert_eq!(claim(&["a"]).judge(&[], measured).verdict, Verdict::Holds);
        assert_eq!(claim(&["a", "b"]).judge(&[], measured).verdict, Verdict::Partly);
        assert_eq!(claim(&["a", "b", "b"]).judge(&[], measured).verdict, Verdict::Not);
    }

    #[test]
    fn cases_are_compared_with_each_other() {
        let between = |measure| claim(measure, Criterion::Within(0.0..=1.0), &["b"]);
        let here = |claim: Claim| claim.judge(&[], measured).comparisons[0].here;
        assert_eq!(here(between(ratio("fast", None, Some("a")))), 3.0);
        assert_eq!(here(between(ratio("fast", Some("slow"), Some("a")))), 3.0);
        let claim = between(ratio("fast", None, Some("a")));
        assert_eq!(claim.cases_to_run().collect::<Vec<_>>(), ["b", "a"]);
    }

    #[test]
    fn printed_figures_are_met_closely_or_in_direction_or_not() {
        let printed = claim(ratio("fast", Some("slow"), None), Criterion::AsPrinted, &["a"]);
        // Here it is 0.25.
        let verdict =
            |fast: f64| printed.judge(&[figure("fast", fast), figure("slow", 1.0)], measured);
        assert_eq!(verdict(0.3).verdict, Verdict::Holds);
        assert_eq!(verdict(0.3).comparisons[0].paper, Some(0.3));
        assert_eq!(verdict(0.49).verdict, Verdict::Partly);
        assert_eq!(verdict(0.51).verdict, Verdict::Not);
        let other_side = claim(ratio("fast", None, None), Criterion::AsPrinted, &["b"]);
        let figures = [PaperFigure { case: "b".to_owned(), ..figure("fast", 0.9) }];
        assert_eq!(other_side.judge(&figures, |_, _| Some(1.2)).verdict, Verdict::Not);
    }
}
