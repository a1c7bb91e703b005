//! The text and tables of an experiment.

use coscan_core::PolicyKind;
use coscan_sim::Metric;
use coscan_sim::claim::PaperFigure;

use crate::format::{head, mark, number, row, shown, title};
use crate::measured::Measured;
use crate::verdicts;

/// Everything about an experiment, below a title of its own.
pub(crate) fn write(experiment: &Measured) -> String {
    let spec = &experiment.spec;
    let mut text = format!("`{}`\n\n", spec.source);
    for (part, of_part) in &spec.parameters {
        text += &format!("- {part}: {of_part}\n");
    }
    for sweep in &spec.sweeps {
        text += &format!("- cases by {}: {}\n", sweep.name, sweep.values.join("; "));
    }
    text += "\n";
    text += &list("Fitted to figures of the paper:", &spec.fitted);
    text += &list("Not stated in the paper, assumed here:", &spec.assumed);
    text += &list("Remarks:", &spec.remarks);
    text += &verdicts::of_experiment(experiment);
    let (of_queries, of_all): (Vec<_>, Vec<_>) =
        spec.paper.iter().partition(|figure| figure.query.is_some());
    if !spec.paper.is_empty() {
        let kind = match spec.paper.iter().all(|figure| figure.ideal) {
            true => "The paper's figures for ideal schedules, and ours",
            false => "The paper's, ours, and ours divided by the paper's",
        };
        text += &format!("{kind}: ✓ within a quarter, ~ within a factor of 2, ✗ beyond.\n\n");
    }
    text += &published(experiment, &of_all);
    text += &published(experiment, &of_queries);
    text + &measured(experiment)
}

fn list(title: &str, lines: &[String]) -> String {
    match lines {
        [] => String::new(),
        lines => {
            let lines: String = lines.iter().map(|line| format!("- {line}\n")).collect();
            format!("{title}\n\n{lines}\n")
        }
    }
}

/// Published results beside ours: a row for each case, policy and query, a column for each metric.
fn published(experiment: &Measured, figures: &[&PaperFigure]) -> String {
    let mut metrics: Vec<_> = figures.iter().map(|figure| figure.metric).collect();
    metrics.sort();
    metrics.dedup();
    let mut rows: Vec<_> =
        figures.iter().map(|figure| (&figure.case, &figure.policy, &figure.query)).collect();
    rows.dedup();
    if rows.is_empty() {
        return String::new();
    }
    let titles: Vec<_> =
        std::iter::once("").chain(metrics.iter().map(|&metric| title(metric))).collect();
    let mut text = head(&titles, 1);
    for (case, policy, query) in rows {
        let cell = |&metric: &Metric| {
            let same = |figure: &&&PaperFigure| {
                (&figure.case, &figure.policy, &figure.query, figure.metric)
                    == (case, policy, query, metric)
            };
            let paper = figures.iter().find(same)?.value;
            let ours = experiment.average(case, policy, query.as_deref(), metric)?;
            let (ratio, paper) = (ours / paper, shown(metric, paper));
            Some(format!("{paper}, {} ({}) {}", shown(metric, ours), number(ratio), mark(ratio)))
        };
        let name = [case.as_str(), policy, query.as_deref().unwrap_or("")].join(" ");
        let cells = metrics.iter().map(|metric| cell(metric).unwrap_or_default());
        text += &row(std::iter::once(name.trim().to_owned()).chain(cells));
    }
    text + "\n"
}

/// The measurements under all policies: one table if there is one case, else a table for each of some metrics.
fn measured(experiment: &Measured) -> String {
    let value = |case: &str, policy: PolicyKind, metric| {
        let value = experiment.average(case, policy.name(), None, metric);
        value.map_or(String::new(), |value| shown(metric, value))
    };
    let mut text = String::new();
    if let [case] = experiment.spec.cases.as_slice() {
        let metrics = [
            Metric::StreamAvg,
            Metric::NormalizedLatencyAvg,
            Metric::NormalizedLatencyShort,
            Metric::LatencyAvg,
            Metric::Total,
            Metric::Requests,
            Metric::BytesToBound,
            Metric::CpuUse,
            Metric::LongestWait,
        ];
        let titles: Vec<_> = std::iter::once("ours").chain(metrics.map(title)).collect();
        text += &head(&titles, 1);
        for policy in PolicyKind::ALL {
            let cells = metrics.map(|metric| value(&case.name, policy, metric));
            text += &row(std::iter::once(policy.to_string()).chain(cells));
        }
        return text + "\n";
    }
    let mut metrics = vec![Metric::StreamAvg, Metric::NormalizedLatencyAvg, Metric::BytesToBound];
    let spoken_of = experiment.spec.claims.iter().filter(|claim| claim.query.is_none());
    metrics.extend(spoken_of.map(|claim| claim.metric));
    metrics.sort();
    metrics.dedup();
    for metric in metrics {
        let titles = [format!("{}, ours", title(metric))].into_iter();
        let titles: Vec<_> =
            titles.chain(PolicyKind::ALL.map(|policy| policy.to_string())).collect();
        text += &head(&titles.iter().map(String::as_str).collect::<Vec<_>>(), 1);
        for case in &experiment.spec.cases {
            let cells = PolicyKind::ALL.map(|policy| value(&case.name, policy, metric));
            text += &row(std::iter::once(case.name.clone()).chain(cells));
        }
        text += "\n";
    }
    text
}
