//! A section for each experiment: what it is, and its tables.

use coscan_core::PolicyKind;
use coscan_sim::experiment::Run;
use coscan_sim::spec::{PaperFigure, PaperOrder};
use coscan_sim::{Metric, Spec};

use crate::common::CaseRuns;

const PAPER_POLICY: &str = "relevance-2007";

/// Writes a row of a table.
pub(crate) fn write_row(cells: impl IntoIterator<Item = String>) {
    let cells: Vec<_> = cells.into_iter().collect();
    println!("| {} |", cells.join(" | "));
}

/// Three digits, or as many as a whole number has.
fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 99.95 => format!("{value:.0}"),
        large if large >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn shown(metric: Metric, value: f64) -> String {
    match metric {
        Metric::CpuUse => format!("{} %", number(100.0 * value)),
        Metric::BytesRead => format!("{} GB", number(value / 1e9)),
        _ => number(value),
    }
}

fn title(metric: Metric) -> &'static str {
    match metric {
        Metric::StreamAvg => "stream s",
        Metric::NormalizedLatencyAvg => "normalized latency",
        Metric::NormalizedLatencyShort => "short",
        Metric::NormalizedLatencyP99 => "99th percentile",
        Metric::LatencyAvg => "latency s",
        Metric::StandaloneAvg => "alone s",
        Metric::LongestWait => "longest wait s",
        Metric::Total => "total s",
        Metric::Requests => "requests",
        Metric::BytesRead => "read",
        Metric::BytesInOrder => "read in order",
        Metric::BytesAnyOrder => "read in any order",
        Metric::BytesMin => "best victims",
        Metric::BytesToMin => "÷ best victims",
        Metric::BytesToBound => "bound",
        Metric::CpuUse => "processors",
    }
}

fn position(policy: &str) -> Option<usize> {
    PolicyKind::ALL.iter().position(|kind| kind.name() == policy)
}

/// The average over the seeds of what was measured, of all queries or those of one kind.
fn average(runs: &CaseRuns, policy: usize, query: Option<&str>, metric: Metric) -> Option<f64> {
    let value = |run: &Run| match query {
        None => run.value(metric),
        Some(label) => run.value_of(label, metric),
    };
    let values: Vec<f64> = runs.seeds().iter().filter_map(|runs| value(&runs[policy])).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Published and measured ratios of the papers' policy to normal.
pub(crate) fn write_overview(specs: &[Spec], runs: &[Vec<CaseRuns>]) {
    println!("## At a glance\n");
    println!(
        "What the published policy takes relative to normal, in the paper and here, wherever the paper prints numbers.\n"
    );
    write_row(["experiment", "stream", "normalized latency", "latency", "read"].map(str::to_owned));
    write_row(["---", "--:", "--:", "--:", "--:"].map(str::to_owned));
    for (spec, cases) in specs.iter().zip(runs) {
        for (case, runs) in spec.cases.iter().zip(cases) {
            let cell = |metrics: &[Metric]| {
                let ratio =
                    metrics.iter().find_map(|&metric| ratio(spec, &case.name, runs, metric));
                ratio.map_or(String::new(), |(paper, ours)| {
                    format!("{paper:.2}, {ours:.2} ({:.2})", ours / paper)
                })
            };
            let cells = [
                cell(&[Metric::StreamAvg]),
                cell(&[Metric::NormalizedLatencyAvg]),
                cell(&[Metric::LatencyAvg]),
                cell(&[Metric::BytesRead, Metric::Requests]),
            ];
            if cells.iter().any(|cell| !cell.is_empty()) {
                let name = format!("{} {}", spec.name, case.name);
                write_row(std::iter::once(name.trim_end().to_owned()).chain(cells));
            }
        }
    }
    println!();
}

/// The published policy relative to normal: in the paper and here.
fn ratio(spec: &Spec, case: &str, runs: &CaseRuns, metric: Metric) -> Option<(f64, f64)> {
    let whole = spec.paper.iter().filter(|figure| figure.query.is_none());
    let here = whole.filter(|figure| figure.case == case && figure.metric == metric);
    let paper = |policy: &str| here.clone().find(|it| it.policy == policy).map(|it| it.value);
    let ours = |policy: &str| average(runs, position(policy)?, None, metric);
    let paper = paper(PAPER_POLICY)? / paper("normal")?;
    Some((paper, ours(PAPER_POLICY)? / ours("normal")?))
}

/// Everything about an experiment.
pub(crate) fn write_experiment(spec: &Spec, runs: &[CaseRuns]) {
    println!("## {}: {}\n\n`{}`\n", spec.name, spec.title, spec.source);
    spec.parameters.iter().for_each(|(part, text)| println!("- {part}: {text}"));
    for sweep in &spec.sweeps {
        println!("- cases by {}: {}", sweep.name, sweep.values.join("; "));
    }
    println!();
    write_list("Not stated in the paper, assumed here:", &spec.assumed);
    for order in &spec.orders {
        write_order(spec, runs, order);
    }
    if !spec.orders.is_empty() {
        println!();
    }
    let of_queries: Vec<_> = spec.paper.iter().filter(|figure| figure.query.is_some()).collect();
    let of_all: Vec<_> = spec.paper.iter().filter(|figure| figure.query.is_none()).collect();
    write_paper(spec, runs, &of_all);
    write_paper(spec, runs, &of_queries);
    write_measured(spec, runs);
    write_list("Remarks:", &spec.remarks);
}

fn write_list(title: &str, lines: &[String]) {
    if !lines.is_empty() {
        println!("{title}\n");
        lines.iter().for_each(|line| println!("- {line}"));
        println!();
    }
}

/// Whether a published order of policies holds.
fn write_order(spec: &Spec, runs: &[CaseRuns], order: &PaperOrder) {
    let query = order.query.as_deref();
    let holds = |case: &str| {
        let case = spec.cases.iter().position(|other| other.name == case);
        let value = |policy: &String| average(&runs[case?], position(policy)?, query, order.metric);
        let values: Option<Vec<_>> = order.smallest_first.iter().map(value).collect();
        values.is_some_and(|values| values.is_sorted_by(|small, large| small < large))
    };
    let held = order.cases.iter().filter(|case| holds(case)).count();
    let of = query.map_or(String::new(), |query| format!(" of {query}"));
    println!(
        "- Published order, {}{of}: {}. It holds here in {held} of {} cases.",
        title(order.metric),
        order.smallest_first.join(" < "),
        order.cases.len()
    );
}

/// Published results beside ours: a row for each case, policy and query, a column for each metric.
fn write_paper(spec: &Spec, runs: &[CaseRuns], figures: &[&PaperFigure]) {
    let mut metrics: Vec<_> = figures.iter().map(|figure| figure.metric).collect();
    metrics.sort();
    metrics.dedup();
    let mut rows: Vec<_> = figures.iter().map(|it| (&it.case, &it.policy, &it.query)).collect();
    rows.dedup();
    if rows.is_empty() {
        return;
    }
    let titles = metrics.iter().map(|&metric| title(metric).to_owned());
    write_row(std::iter::once("the paper, ours".to_owned()).chain(titles));
    write_row(std::iter::once("---".to_owned()).chain(metrics.iter().map(|_| "--:".to_owned())));
    for (case, policy, query) in rows {
        let cell = |&metric: &Metric| {
            let same = |it: &&&PaperFigure| {
                (&it.case, &it.policy, &it.query, it.metric) == (case, policy, query, metric)
            };
            let paper = figures.iter().find(same)?.value;
            let of_case = spec.cases.iter().position(|other| other.name == *case)?;
            let ours = average(&runs[of_case], position(policy)?, query.as_deref(), metric)?;
            Some(format!("{}, {} ({:.2})", shown(metric, paper), shown(metric, ours), ours / paper))
        };
        let name = [case.as_str(), policy, query.as_deref().unwrap_or("")].join(" ");
        let cells = metrics.iter().map(|metric| cell(metric).unwrap_or_default());
        write_row(std::iter::once(name.trim().to_owned()).chain(cells));
    }
    println!();
}

/// What all policies take here: a table of them where there is one case, else a table for each of three metrics.
fn write_measured(spec: &Spec, runs: &[CaseRuns]) {
    if let [runs] = runs {
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
        write_row(std::iter::once("ours".to_owned()).chain(metrics.map(|m| title(m).to_owned())));
        write_row(std::iter::once("---".to_owned()).chain(metrics.map(|_| "--:".to_owned())));
        for (position, policy) in PolicyKind::ALL.iter().enumerate() {
            let cells = metrics.map(|metric| shown(metric, runs.average(position, metric)));
            write_row(std::iter::once(policy.to_string()).chain(cells));
        }
        println!();
        return;
    }
    for metric in [Metric::StreamAvg, Metric::NormalizedLatencyAvg, Metric::BytesToBound] {
        let policies = PolicyKind::ALL.map(|policy| policy.to_string());
        write_row(std::iter::once(format!("{}, ours", title(metric))).chain(policies));
        write_row(
            std::iter::once("---".to_owned()).chain(PolicyKind::ALL.map(|_| "--:".to_owned())),
        );
        for (case, runs) in spec.cases.iter().zip(runs) {
            let values = (0..PolicyKind::ALL.len()).map(|position| runs.average(position, metric));
            let cells = values.map(|value| shown(metric, value));
            write_row(std::iter::once(case.name.clone()).chain(cells));
        }
        println!();
    }
}
