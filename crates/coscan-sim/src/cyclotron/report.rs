//! Results as text: tables of cases and verdicts, in Markdown that is as readable on a terminal.

use super::experiment::{CyclotronResults, CyclotronSpec};
use super::metric::CyclotronMetric;
use crate::claim::{CLOSE, Claim, Criterion, FAR, Judgement, Measure, Verdict, within};

/// The results of an experiment, below a title of its own.
#[must_use]
pub fn report(spec: &CyclotronSpec, results: &CyclotronResults) -> String {
    let mut text = format!("# {}: {}\n\n`{}`\n\n", spec.name, spec.title, spec.source);
    text += &list("Fitted to figures of the thesis:", &spec.fitted);
    text += &list("Not stated in our copy of the thesis, assumed here:", &spec.assumed);
    text += &list("Remarks:", &spec.remarks);
    if !spec.claims.is_empty() {
        text += &row(["the thesis says", "measured", "thesis", "here", "", "why not"]);
        text += &row(["---", "---", "--:", "--:", "---", "---"]);
        for claim in &spec.claims {
            text += &verdict(claim, &spec.judge(claim, results));
        }
        text += "\n";
    }
    text += "Ours";
    if !spec.paper.is_empty() {
        text += "; where the thesis prints a figure, its own in brackets, and a mark: ✓ within a quarter, ~ within a \
                 factor of 2, ✗ beyond";
    }
    text + ". Cases in which queries blocked each other have no times.\n\n" + &table(spec, results)
}

/// The number of verdicts of each kind, as in [`Verdict`]'s order.
#[must_use]
pub fn verdicts(spec: &CyclotronSpec, results: &CyclotronResults) -> [usize; 3] {
    let verdicts = spec.claims.iter().map(|claim| spec.judge(claim, results).verdict);
    let verdicts: Vec<Verdict> = verdicts.collect();
    [Verdict::Holds, Verdict::Partly, Verdict::Not]
        .map(|kind| verdicts.iter().filter(|&&verdict| verdict == kind).count())
}

fn list(title: &str, lines: &[String]) -> String {
    let lines: String = lines.iter().map(|line| format!("- {line}\n")).collect();
    if lines.is_empty() { lines } else { format!("{title}\n\n{lines}\n") }
}

fn row<T: AsRef<str>>(cells: impl IntoIterator<Item = T>) -> String {
    let cells: Vec<_> = cells.into_iter().map(|cell| cell.as_ref().to_owned()).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn verdict(claim: &Claim<CyclotronMetric>, judgement: &Judgement) -> String {
    let to = match &claim.measure {
        Measure::Ratio { to_case: Some(case), .. } => format!(", ÷ the same at {case}"),
        _ => String::new(),
    };
    let comparisons = &judgement.comparisons;
    let thesis = match &claim.criterion {
        Criterion::Within(range) => match (*range.start(), *range.end()) {
            (0.0, most) => format!("≤ {}", number(most)),
            (least, f64::INFINITY) => format!("≥ {}", number(least)),
            (least, most) => format!("{} to {}", number(least), number(most)),
        },
        Criterion::AsPrinted => join(comparisons.iter().map(|one| one.paper.unwrap_or(f64::NAN))),
    };
    let here = join(comparisons.iter().map(|one| one.here));
    let word = match judgement.verdict {
        Verdict::Holds => "holds".to_owned(),
        other => format!("**{other}**"),
    };
    let why = match judgement.verdict {
        Verdict::Holds => "",
        _ => claim.why.as_deref().unwrap_or("Not explained."),
    };
    let measured = format!("{}: {}{to}", claim.metric.title(), claim.cases.join(", "));
    row([claim.text.as_str(), &measured, &thesis, &here, &word, why])
}

fn join(values: impl Iterator<Item = f64>) -> String {
    values.map(number).collect::<Vec<_>>().join(", ")
}

/// A number with three digits.
fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 99.95 => format!("{value:.0}"),
        large if large >= 9.995 => format!("{value:.1}"),
        _ if value.is_finite() => format!("{value:.2}"),
        _ => "blocked".to_owned(),
    }
}

fn table(spec: &CyclotronSpec, results: &CyclotronResults) -> String {
    let titles = CyclotronMetric::ALL.map(CyclotronMetric::title);
    let mut text = row(std::iter::once("case").chain(titles));
    text += &row(std::iter::once("---").chain(titles.map(|_| "--:")));
    for case in &spec.cases {
        let cell = |metric| {
            let here = results.value(&case.name, metric);
            let paper = spec.published(&case.name, metric);
            match (here, paper) {
                (Some(here), Some(paper)) => {
                    format!("{} ({}) {}", number(here), number(paper), mark(here / paper))
                }
                (Some(here), None) => number(here),
                (None, Some(paper)) => format!("({})", number(paper)),
                (None, None) => String::new(),
            }
        };
        let cells = CyclotronMetric::ALL.map(cell);
        text += &row(std::iter::once(case.name.clone()).chain(cells));
    }
    text
}

fn mark(ratio: f64) -> &'static str {
    match ratio {
        _ if within(ratio, CLOSE) => "✓",
        _ if within(ratio, FAR) => "~",
        _ => "✗",
    }
}
