//! Tables of results, with policies as columns and the paper's figures below ours. They are independent of their form
//! as text.

use crate::claim::Measure;
use crate::metric::Metric;

use super::draw::numbers::{decimal, lowest};
use super::metric_names;
use super::results::{Results, Summary};

/// The metrics shown for a whole run.
const OF_RUNS: [Metric; 14] = [
    Metric::StreamAvg,
    Metric::NormalizedLatencyAvg,
    Metric::NormalizedLatencyShort,
    Metric::NormalizedLatencyP99,
    Metric::LongestWait,
    Metric::Total,
    Metric::CpuUse,
    Metric::Requests,
    Metric::BytesRead,
    Metric::BytesInOrder,
    Metric::BytesAnyOrder,
    Metric::BytesMin,
    Metric::BytesToMin,
    Metric::BytesToBound,
];

/// The metrics shown for each kind of query.
const OF_KINDS: [Metric; 4] = [
    Metric::LatencyAvg,
    Metric::NormalizedLatencyAvg,
    Metric::NormalizedLatencyP99,
    Metric::BytesRead,
];

/// The metrics shown for the cases of a sweep, besides those that the paper has.
const OF_CASES: [Metric; 3] =
    [Metric::StreamAvg, Metric::NormalizedLatencyAvg, Metric::BytesToBound];

/// A table with one column for each policy.
pub(super) struct Table {
    /// Its title, above the names of the rows.
    pub(super) title: String,
    /// The rows.
    pub(super) rows: Vec<Row>,
}

/// A row of a table.
pub(super) struct Row {
    pub(super) name: String,
    /// One cell for each policy; empty where there is nothing to show.
    pub(super) cells: Vec<String>,
    /// Whether each policy is the best; all false if all are equal.
    pub(super) best: Vec<bool>,
    /// Whether it belongs to the row above.
    pub(super) part: bool,
}

/// The tables of an experiment.
pub(super) fn tables(results: &Results<'_>) -> Vec<Table> {
    let cases: Vec<&str> = results.cases().collect();
    match cases.as_slice() {
        [case] => single(results, case),
        cases => swept(results, cases),
    }
}

fn single(results: &Results<'_>, case: &str) -> Vec<Table> {
    let mut whole = Table { title: "the whole run".to_owned(), rows: Vec::new() };
    let exists = |metric: Metric| {
        let value = |policy: &&str| results.value(case, policy, None, metric);
        results.policies().iter().any(|policy| value(policy).is_some())
    };
    let of_orders = [Metric::BytesInOrder, Metric::BytesAnyOrder];
    let has_both = of_orders.into_iter().all(exists);
    let shown =
        |metric: &Metric| if of_orders.contains(metric) { has_both } else { exists(*metric) };
    for metric in OF_RUNS.into_iter().filter(shown) {
        let name = metric_names::name(metric).to_owned();
        whole.rows.extend(rows(results, name, case, None, metric, results.seeds().len() > 1));
    }
    let mut tables = vec![whole];
    let kinds = results.kinds(case);
    if kinds.len() > 1 {
        for metric in OF_KINDS {
            let title = format!("{}, by kind of query", metric_names::name(metric));
            let rows = kinds.iter().flat_map(|kind| {
                rows(results, (*kind).to_owned(), case, Some(kind), metric, false)
            });
            tables.push(Table { title, rows: rows.collect() });
        }
    }
    tables
}

fn swept(results: &Results<'_>, cases: &[&str]) -> Vec<Table> {
    let tables = metrics_of_cases(results).into_iter().map(|metric| {
        let rows = cases
            .iter()
            .flat_map(|case| rows(results, (*case).to_owned(), case, None, metric, false));
        Table { title: metric_names::name(metric).to_owned(), rows: rows.collect() }
    });
    tables.collect()
}

/// The metrics shown of the cases of a sweep.
pub(super) fn metrics_of_cases(results: &Results<'_>) -> Vec<Metric> {
    let spec = results.spec();
    let stated = spec.paper.iter().filter(|figure| figure.query.is_none());
    let stated = stated.map(|figure| figure.metric);
    let orders = spec.claims.iter().filter(|claim| matches!(claim.measure, Measure::Order(_)));
    let spoken_of: Vec<Metric> = stated.chain(orders.map(|order| order.metric)).collect();
    let shown = |metric: &Metric| OF_CASES.contains(metric) || spoken_of.contains(metric);
    Metric::ALL.into_iter().filter(shown).collect()
}

/// The rows of a metric: the average, on request the lowest and the highest, and the figure of the paper if there is one.
fn rows(
    results: &Results<'_>,
    name: String,
    case: &str,
    kind: Option<&str>,
    metric: Metric,
    with_ends: bool,
) -> Vec<Row> {
    let policies = results.policies();
    let ours: Vec<Option<Summary>> =
        policies.iter().map(|policy| results.value(case, policy, kind, metric)).collect();
    let paper: Vec<Option<f64>> =
        policies.iter().map(|policy| results.paper(case, policy, kind, metric)).collect();

    let average = |value: &Option<Summary>| value.map(|value| value.average);
    let shown = |value: f64| metric_names::show(metric, value);
    let best = if metric_names::lower_is_better(metric) {
        lowest(ours.iter().map(|value| average(value).unwrap_or(f64::INFINITY)))
    } else {
        vec![false; ours.len()]
    };
    let main = cells(ours.iter().map(|value| average(value).map(shown)));
    let mut rows = vec![Row { name, cells: main, best, part: false }];
    if with_ends {
        let ends = |value: Summary| format!("{}–{}", shown(value.ends.0), shown(value.ends.1));
        let cells = cells(ours.iter().map(|value| value.map(ends)));
        rows.push(part("lowest–highest seed", cells));
    }
    if paper.iter().any(Option::is_some) {
        let ratio = |(ours, paper): (&Option<Summary>, &Option<f64>)| {
            Some(decimal(average(ours)? / paper.filter(|paper| *paper != 0.0)?))
        };
        let ideal = results.spec().paper.iter().all(|figure| figure.ideal);
        let name = if ideal { "paper, worked out" } else { "paper" };
        rows.push(part(name, cells(paper.iter().map(|value| value.map(shown)))));
        rows.push(part("ours ÷ paper", cells(ours.iter().zip(&paper).map(ratio))));
    }
    rows
}

fn cells(cells: impl Iterator<Item = Option<String>>) -> Vec<String> {
    cells.map(Option::unwrap_or_default).collect()
}

fn part(name: &str, cells: Vec<String>) -> Row {
    Row { name: name.to_owned(), best: vec![false; cells.len()], cells, part: true }
}

/// Whether an order of policies that the paper states holds here.
pub(super) struct Agreement {
    /// The metric.
    metric: Metric,
    /// The kind of queries; `None` for all.
    kind: Option<String>,
    /// The policies, the one with the smallest value first, as far as they ran.
    smallest_first: Vec<String>,
    /// The number of cases for which it is stated.
    cases: usize,
    /// The cases in which it does not hold here.
    pub(super) broken: Vec<String>,
}

/// The orders that the paper states, of the policies that ran.
pub(super) fn agreements(results: &Results<'_>) -> Vec<Agreement> {
    let orders = results.spec().claims.iter().filter_map(|claim| {
        let Measure::Order(policies) = &claim.measure else { return None };
        let ran = |policy: &&String| results.policies().contains(&policy.as_str());
        let smallest_first: Vec<String> = policies.iter().filter(ran).cloned().collect();
        let average = |case: &str, policy: &String| {
            let kind = claim.query.as_deref();
            results.value(case, policy, kind, claim.metric).map(|value| value.average)
        };
        let holds = |case: &String| smallest_first.is_sorted_by_key(|policy| average(case, policy));
        let broken = claim.cases.iter().filter(|case| !holds(case)).cloned().collect();
        let (metric, kind, cases) = (claim.metric, claim.query.clone(), claim.cases.len());
        let several = smallest_first.len() > 1;
        several.then_some(Agreement { metric, kind, smallest_first, cases, broken })
    });
    orders.collect()
}

impl Agreement {
    /// The agreement in one sentence.
    pub(super) fn sentence(&self) -> String {
        let order = self.smallest_first.join(" < ");
        let verdict = match (self.broken.len(), self.cases) {
            (0, 1) => "holds".to_owned(),
            (0, cases) => format!("holds in all {cases} cases"),
            (_, 1) => "does NOT hold".to_owned(),
            (broken, cases) => {
                let named = self.broken.join(", ");
                format!("does NOT hold in {broken} of {cases} cases: {named}")
            }
        };
        let of = self.kind.as_ref().map_or(String::new(), |kind| format!(" of {kind}"));
        format!("{}{of}: the paper's order {order} {verdict}", metric_names::name(self.metric))
    }
}
