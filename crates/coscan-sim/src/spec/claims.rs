//! From `[[claim]]` to claims.

pub(crate) use super::document::ClaimForm;
use super::error::{SpecError, wrong};
use crate::claim::{Claim, Criterion, Measure, PaperFigure};
use crate::metric::{Metric, UnknownMetric};

/// The bound of `smallest_first`: each value is smaller than the next one.
const SMALLER: f64 = 1.0 - 1e-9;

/// Builds the claim of a form. `source` and `cases` are those of the file; `metric` finds the metric of a name that
/// stands at a key.
pub(crate) fn build<M: Copy + PartialEq>(
    form: &ClaimForm,
    source: &str,
    cases: &[&str],
    paper: &[PaperFigure<M>],
    metric: impl Fn(&str, &str) -> Result<M, SpecError>,
) -> Result<Claim<M>, SpecError> {
    let key = |part: &str| format!("claim `{}`, {part}", form.says);
    let known = |name: &String| match cases.contains(&name.as_str()) {
        true => Ok(()),
        false => {
            let problem = format!("there is no case `{name}`; choose from {}", cases.join(", "));
            Err(wrong(key("cases"), problem))
        }
    };
    let of: Vec<String> = match &form.cases {
        Some(cases) => cases.clone(),
        None => cases.iter().map(|&case| case.to_owned()).collect(),
    };
    of.iter().chain(&form.to_case).try_for_each(known)?;
    let bounded = form.at_least.is_some() || form.at_most.is_some();
    let (measure, criterion) = match (&form.smallest_first, &form.policy) {
        (Some(policies), None) if !bounded => {
            (Measure::Order(policies.clone()), Criterion::Within(0.0..=SMALLER))
        }
        (None, Some(policy)) => {
            let (policy, to, to_case) = (policy.clone(), form.to.clone(), form.to_case.clone());
            let criterion = match bounded {
                false => Criterion::AsPrinted,
                true => Criterion::Within(
                    form.at_least.unwrap_or(0.0)..=form.at_most.unwrap_or(f64::INFINITY),
                ),
            };
            (Measure::Ratio { policy, to, to_case }, criterion)
        }
        _ => {
            let problem = "write `smallest_first`, or a `policy` with `at_least` or `at_most`, or a \
                           `policy` alone where `[[paper]]` has its figures";
            return Err(wrong(format!("claim `{}`", form.says), problem));
        }
    };
    let claim = Claim {
        text: form.says.clone(),
        source: form.source.clone().unwrap_or_else(|| source.to_owned()),
        metric: metric(&key("metric"), &form.metric)?,
        query: form.query.clone(),
        measure,
        criterion,
        cases: of,
        why: form.why.clone(),
    };
    let printed = claim.judge(paper, |_, _| None).comparisons;
    if claim.criterion == Criterion::AsPrinted
        && printed.iter().any(|comparison| comparison.paper.is_none())
    {
        let problem = "no such figure stands in `[[paper]]`: write `at_least` or `at_most`";
        return Err(wrong(key("policy"), problem));
    }
    Ok(claim)
}

/// The metric of a name that stands at `key`.
pub(super) fn metric(key: &str, name: &str) -> Result<Metric, SpecError> {
    name.parse().map_err(|unknown: UnknownMetric| wrong(key, unknown.to_string()))
}
