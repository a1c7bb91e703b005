//! What is not a table of policies: a formula, what assumptions decide, sharing potential, what decisions cost.

use std::sync::Arc;

use coscan_core::PolicyKind;
use coscan_sim::experiment::{Prepared, reuse_probability};
use coscan_sim::{Metric, Options, Spec};

use crate::common::{CaseRuns, geometric_mean, run_all, value};
use crate::format::{head, number, row};
use crate::measured::Measured;
use crate::verdicts::Judged;

/// `[CS07 §3, Figure 2]`
pub(crate) fn write_reuse() -> String {
    let mut text = "## Probability that the pool holds a useful chunk\n\n`[CS07 §3, formula 1, Figure 2]`, for a table of 100 \
                    chunks; in order, a scan can use one chunk only.\n\n"
        .to_owned();
    let pools = [1, 5, 10, 20, 50];
    let titles = pools.map(|pool| format!("pool {pool} %"));
    text += &head(
        &std::iter::once("query").chain(titles.iter().map(String::as_str)).collect::<Vec<_>>(),
        0,
    );
    for query in [1, 5, 10, 20, 50] {
        let cells =
            pools.map(|pool| format!("{:.0} %", 100.0 * reuse_probability(100, query, pool)));
        text += &row(std::iter::once(format!("{query} %")).chain(cells));
    }
    text + &row(std::iter::once("in order".to_owned()).chain(pools.map(|pool| format!("{pool} %"))))
}

/// What the formula is said to give.
pub(crate) fn judge_reuse() -> Judged {
    let says = [
        "cs07-example",
        "[CS07 §3, Figure 2]",
        "A tenth of the table in the pool holds something for a scan of a tenth with more than even odds",
        "probability, 10 of 100 chunks",
    ];
    Judged::computed(says, 0.5..=1.0, reuse_probability(100, 10, 10))
}

/// An experiment with something changed: what follows the name of what it extends.
fn variant(extends: &str, changes: &str) -> Result<Spec, String> {
    let text = format!("name = \"variant\"\ntitle = \"\"\nextends = \"{extends}\"\n{changes}");
    Spec::parse(&text).map_err(|error| error.to_string())
}

/// Assumptions of `cs07-table2`, and values for them.
const VARIED: [(&str, &str, &str); 8] = [
    (
        "a seek",
        "machine.disk.seek-transfer.seek",
        "[\"0 ms\", \"8 ms\", \"20 ms\", \"30 ms\", \"40 ms\"]",
    ),
    ("bandwidth", "machine.disk.seek-transfer.bandwidth", "[\"200 MB/s\", \"230 MB/s\"]"),
    ("loads at a time", "machine.loads_in_flight", "[2, 4, 8]"),
    ("processor time of F", "query.F.cost", "[\"1 s\", \"2.5 s\", \"8 s\"]"),
    ("time between streams", "streams.all.apart", "[\"0 s\", \"6 s\"]"),
    ("space timeout", "machine.space_timeout", "[\"500 ms\", \"30 s\"]"),
    ("pool", "machine.pool", "[\"768 MiB\", \"1 GiB\", \"2 GiB\"]"),
    ("cores", "machine.cores", "[1, 4]"),
];

/// What is compared where assumptions change.
const COMPARED: [(Metric, &str); 3] = [
    (Metric::StreamAvg, "stream"),
    (Metric::NormalizedLatencyAvg, "normalized latency"),
    (Metric::Requests, "requests"),
];

/// The published policy relative to normal, in the paper's figures.
fn printed_ratio(table2: &Measured, metric: Metric) -> f64 {
    let whole = |policy: &str| {
        let mut paper = table2.spec.paper.iter().filter(|figure| figure.query.is_none());
        paper
            .find(|figure| figure.policy == policy && figure.metric == metric)
            .map_or(f64::NAN, |figure| figure.value)
    };
    whole("relevance-2007") / whole("normal")
}

/// The second policy relative to the first, of each seed.
fn ratios(runs: &CaseRuns, metric: Metric) -> Vec<f64> {
    let seeds = runs.seeds().iter();
    seeds.map(|runs| value(&runs[1], metric) / value(&runs[0], metric)).collect()
}

/// The effect of chance and of the assumptions of `cs07-table2`.
pub(crate) fn write_sensitivity(table2: &Measured) -> Result<String, String> {
    let mut text = "## The effect of chance and of the assumptions\n\n".to_owned();
    text += &write_spread(table2)?;
    text += &write_space_timeout()?;
    text += "One assumption changed at a time (or a parameter that the paper does state, for comparison): relevance-2007 \
             relative to normal, geometric mean of 5 seeds.\n\n";
    text += &head(&["changed", "to", "stream", "normalized latency", "requests"], 2);
    let paper = COMPARED.map(|(metric, _)| number(printed_ratio(table2, metric)));
    text += &row(["the paper".to_owned(), String::new()].into_iter().chain(paper));
    let mut names = vec!["nothing"];
    let mut specs = vec![variant("cs07-table2", "")?];
    for (name, key, values) in VARIED {
        names.push(name);
        let sweep = format!("[[sweep]]\nkey = \"{key}\"\nvalues = {values}\n");
        specs.push(variant("cs07-table2", &sweep)?);
    }
    let all = run_all(&specs, &[PolicyKind::Normal, PolicyKind::Relevance2007], 5)?;
    for ((name, spec), cases) in names.into_iter().zip(&specs).zip(&all) {
        for (case, runs) in spec.cases.iter().zip(cases) {
            let cells = COMPARED
                .map(|(metric, _)| number(geometric_mean(ratios(runs, metric).into_iter())));
            text += &row([name.to_owned(), case.name.clone()].into_iter().chain(cells));
        }
    }
    Ok(text)
}

/// The effect of the seed.
fn write_spread(table2: &Measured) -> Result<String, String> {
    const SEEDS: u64 = 20;
    let policies = [PolicyKind::Normal, PolicyKind::Relevance2007];
    let runs = run_all(&[variant("cs07-table2", "")?], &policies, SEEDS)?;
    let mut text = format!("The seed: relevance-2007 relative to normal, over {SEEDS} seeds.\n\n");
    let titles = ["", "the paper", "mean", "standard deviation", "least", "most", "seeds as low"];
    text += &head(&titles, 1);
    for (metric, name) in COMPARED {
        let paper = printed_ratio(table2, metric);
        let ratios: Vec<_> = runs.iter().flatten().flat_map(|runs| ratios(runs, metric)).collect();
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>();
        let deviation = (variance / ratios.len() as f64).sqrt();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let as_low = ratios.iter().filter(|&&ratio| ratio <= paper).count();
        let numbers = [paper, mean, deviation, least, most].map(number);
        let cells = std::iter::once(name.to_owned()).chain(numbers);
        text += &row(cells.chain(std::iter::once(as_low.to_string())));
    }
    Ok(text + "\n")
}

/// The effect of the space timeout.
fn write_space_timeout() -> Result<String, String> {
    let sweep = "[[sweep]]\nkey = \"machine.space_timeout\"\nvalues = [\"500 ms\", \"5 s\", \"15 s\", \"60 s\", \"1 h\"]";
    let spec = variant("cs07-table2", sweep)?;
    let names: Vec<_> = spec.cases.iter().map(|case| case.name.clone()).collect();
    let runs = run_all(&[spec], &[PolicyKind::Elevator, PolicyKind::Relevance2007], 5)?;
    let mut text = "The space timeout, after which a scan that waits for space is given some: elevator depends on it, \
                    relevance-2007 does not. The paper has no such limit, nor have these experiments (one hour). \
                    Over 5 seeds:\n\n"
        .to_owned();
    let titles = [
        "space timeout",
        "elevator: stream s",
        "normalized latency",
        "requests",
        "relevance-2007: stream s",
        "normalized latency",
        "requests",
    ];
    text += &head(&titles, 1);
    for (name, case) in names.into_iter().zip(runs.iter().flatten()) {
        let cells =
            [0, 1].map(|policy| COMPARED.map(|(metric, _)| number(case.average(policy, metric))));
        text += &row(std::iter::once(name).chain(cells.into_iter().flatten()));
    }
    Ok(text + "\n")
}

/// Widths of the columns of `cs07-table3`.
const WIDTHS: [(&str, &str, &str); 3] = [
    ("as the types of TPC-H", "", ""),
    (
        "all columns alike, a page for each column of each chunk",
        "chunk_rows = 2_800_000",
        "5.99186 5.99186 5.99186 5.99186 5.99186 5.99186 5.99186",
    ),
    (
        "as well compressed as one byte for what has few values",
        "chunk_rows = 2_800_000",
        "1 8 1 1 1 1 4",
    ),
];

/// What the widths of columns decide in `cs07-table3`.
pub(crate) fn write_widths(table3: &Measured) -> Result<String, String> {
    let mut text = "## The effect of the widths of columns\n\n".to_owned();
    let titles = [
        "columns",
        "F-100 alone s",
        "normal: stream s",
        "pages",
        "relevance-2007 ÷ normal: stream",
        "normalized latency",
        "pages",
    ];
    text += &head(&titles, 1);
    let columns =
        "l_quantity l_extendedprice l_discount l_tax l_returnflag l_linestatus l_shipdate";
    let specs = WIDTHS.iter().map(|&(_, chunks, widths)| {
        let pairs = columns.split(' ').zip(widths.split(' '));
        let named: Vec<_> = pairs.map(|(name, width)| format!("{name} = {width}")).collect();
        let table = format!(
            "[table.lineitem]\nrows = 240_000_000\n{chunks}\ncolumns = {{ {} }}\n",
            named.join(", ")
        );
        variant("cs07-table3", if chunks.is_empty() { "" } else { &table })
    });
    let specs = specs.collect::<Result<Vec<_>, _>>()?;
    let runs = run_all(&specs, &[PolicyKind::Normal, PolicyKind::Relevance2007], 5)?;
    let printed = |policy: &str, query: Option<&str>, metric| {
        let mut paper = table3.spec.paper.iter().filter(|figure| figure.query.as_deref() == query);
        paper
            .find(|figure| figure.policy == policy && figure.metric == metric)
            .map_or(f64::NAN, |figure| figure.value)
    };
    let compared = [Metric::StreamAvg, Metric::NormalizedLatencyAvg, Metric::PagesRead];
    let normal = |metric| printed("normal", None, metric);
    let paper = [
        printed("normal", Some("F-100"), Metric::StandaloneAvg),
        normal(Metric::StreamAvg),
        normal(Metric::PagesRead),
    ];
    let ratios_of = compared.map(|metric| printed("relevance-2007", None, metric) / normal(metric));
    text += &row(std::iter::once("the paper".to_owned())
        .chain(paper.into_iter().chain(ratios_of).map(number)));
    for ((name, ..), case) in WIDTHS.iter().zip(runs.iter().flatten()) {
        let first = &case.seeds()[0][0];
        let alone = first.value_of("F-100", Metric::StandaloneAvg).unwrap_or(f64::NAN);
        let normal = [Metric::StreamAvg, Metric::PagesRead].map(|metric| case.average(0, metric));
        let relative = compared.map(|metric| case.average(1, metric) / case.average(0, metric));
        let numbers = std::iter::once(alone).chain(normal).chain(relative);
        text += &row(std::iter::once((*name).to_owned()).chain(numbers.map(number)));
    }
    Ok(text)
}

/// `[CS11 §6.2, Figure 6.1]`
pub(crate) fn write_potential(spec: &Spec) -> Result<String, String> {
    const SAMPLES: u32 = 10;
    let mut text = "## Sharing potential\n\n`[CS11 §6.2, Figure 6.1]`\n\nMegabytes that running scans have still to be \
                    handed, by how many of them want the same, over the time of one run (seed 1). The paper's figure has \
                     no numbers, and no verdict follows from this; there most of the area is needed by five scans or \
                     more, under which policy is not said.\n\n"
        .to_owned();
    let case = spec.cases.first().ok_or("a file has a case")?;
    let prepared = Arc::new(Prepared::new(case, 1).map_err(|error| error.to_string())?);
    let options = Options { timeline: true, ..Options::default() };
    for policy in [PolicyKind::Normal, PolicyKind::Relevance2007] {
        let run = prepared.run(policy.build(), options).map_err(|error| error.to_string())?;
        let potentials = run.sharing_potential(SAMPLES);
        let titles =
            potentials.iter().map(|potential| format!("{:.0} s", potential.at.0 as f64 / 1e9));
        let titles: Vec<_> =
            std::iter::once(format!("{policy}, needed by")).chain(titles).collect();
        text += &head(&titles.iter().map(String::as_str).collect::<Vec<_>>(), 1);
        for (level, name) in ["1 scan", "2", "3", "4", "5 or more"].into_iter().enumerate() {
            let cells = potentials
                .iter()
                .map(|potential| format!("{}", potential.bytes[level] / 1_000_000));
            text += &row(std::iter::once(name.to_owned()).chain(cells));
        }
        text += "\n";
    }
    Ok(text)
}
