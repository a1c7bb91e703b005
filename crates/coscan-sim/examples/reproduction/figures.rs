//! What is not a table of policies: a formula, what assumptions matter, sharing potential.

use std::sync::Arc;

use coscan_core::PolicyKind;
use coscan_sim::experiment::{self, Prepared, reuse_probability};
use coscan_sim::{Metric, Options, Spec};

use crate::common::{geometric_mean, run_all, value};
use crate::sections::write_row;

/// `[CS07 §3, Figure 2]`
pub(crate) fn write_reuse() {
    println!("## How likely a pool holds something useful\n\n`[CS07 §3, formula 1, Figure 2]`\n");
    println!(
        "The probability that a randomly filled pool holds a chunk that a query can use, for a table of 100 chunks. The \
         paper: over 50 % for a 10 % scan with a pool of 10 %. In order, a scan can use one chunk only: the last row.\n"
    );
    let pools = [1, 5, 10, 20, 50];
    write_row(
        std::iter::once("query".to_owned()).chain(pools.map(|pool| format!("pool {pool} %"))),
    );
    write_row((0..=pools.len()).map(|_| "--:".to_owned()));
    for query in [1, 5, 10, 20, 50] {
        let cells =
            pools.map(|pool| format!("{:.0} %", 100.0 * reuse_probability(100, query, pool)));
        write_row(std::iter::once(format!("{query} %")).chain(cells));
    }
    write_row(std::iter::once("in order".to_owned()).chain(pools.map(|pool| format!("{pool} %"))));
    println!();
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
    ("processor time of F", "query.F.cost", "[\"1 s\", \"4 s\", \"6 s\"]"),
    ("time between streams", "streams.all.apart", "[\"0 s\", \"6 s\"]"),
    ("space timeout", "machine.space timeout", "[\"500 ms\", \"30 s\"]"),
    ("pool", "machine.pool", "[\"512 MiB\", \"2 GiB\"]"),
    ("cores", "machine.cores", "[1, 4]"),
];

/// What the assumptions of `cs07-table2` decide.
pub(crate) fn write_sensitivity() -> Result<(), String> {
    let file = experiment::file("cs07-table2").ok_or("cs07-table2 is an experiment")?;
    let workload = file.split("[[paper]]").next().unwrap_or(file);
    println!("### What chance and the assumptions decide\n");
    write_spread(workload)?;
    write_patience(workload)?;
    println!(
        "One assumption changed at a time (or a parameter that the paper does state, for comparison): relevance-2007 \
         relative to normal, geometric mean of 10 seeds.\n"
    );
    write_row(["changed", "to", "stream", "normalized latency", "requests"].map(str::to_owned));
    write_row(["---", "---", "--:", "--:", "--:"].map(str::to_owned));
    write_row(["the paper", "", "0.35", "0.31", "0.44"].map(str::to_owned));
    let mut texts = vec![("nothing", workload.to_owned())];
    texts.extend(VARIED.map(|(name, key, values)| {
        (name, format!("{workload}\n[[sweep]]\nkey = \"{key}\"\nvalues = {values}\n"))
    }));
    let specs = texts.iter().map(|(_, text)| Spec::parse(text)).collect::<Result<Vec<_>, _>>();
    let specs = specs.map_err(|error| error.to_string())?;
    let all = run_all(&specs, &[PolicyKind::Normal, PolicyKind::Relevance2007], 10)?;
    for (((name, _), spec), cases) in texts.iter().zip(&specs).zip(&all) {
        for (case, runs) in spec.cases.iter().zip(cases) {
            let ratio = |metric| {
                let seeds = runs.seeds().iter();
                let mean = geometric_mean(
                    seeds.map(|runs| value(&runs[1], metric) / value(&runs[0], metric)),
                );
                format!("{mean:.2}")
            };
            let ratios =
                [Metric::StreamAvg, Metric::NormalizedLatencyAvg, Metric::Requests].map(ratio);
            write_row([(*name).to_owned(), case.name.clone()].into_iter().chain(ratios));
        }
    }
    println!();
    Ok(())
}

/// What the seed decides.
fn write_spread(workload: &str) -> Result<(), String> {
    const SEEDS: u64 = 40;
    let spec = Spec::parse(workload).map_err(|error| error.to_string())?;
    let runs = run_all(&[spec], &[PolicyKind::Normal, PolicyKind::Relevance2007], SEEDS)?;
    println!("The seed: relevance-2007 relative to normal, over {SEEDS} seeds.\n");
    write_row(
        ["", "the paper", "mean", "standard deviation", "least", "most", "seeds as low"]
            .map(str::to_owned),
    );
    write_row(["---", "--:", "--:", "--:", "--:", "--:", "--:"].map(str::to_owned));
    let metrics = [
        (Metric::StreamAvg, "stream", 0.35),
        (Metric::NormalizedLatencyAvg, "normalized latency", 0.31),
        (Metric::Requests, "requests", 0.44),
    ];
    let mut never = Vec::new();
    for (metric, name, paper) in metrics {
        let seeds = runs.iter().flatten().flat_map(|case| case.seeds());
        let ratios: Vec<_> =
            seeds.map(|runs| value(&runs[1], metric) / value(&runs[0], metric)).collect();
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>();
        let deviation = (variance / ratios.len() as f64).sqrt();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let as_low = ratios.iter().filter(|&&ratio| ratio <= paper).count();
        never.extend((as_low == 0).then_some(name));
        let numbers = [paper, mean, deviation, least, most].map(|number| format!("{number:.2}"));
        let cells = std::iter::once(name.to_owned()).chain(numbers);
        write_row(cells.chain(std::iter::once(as_low.to_string())));
    }
    println!();
    if !never.is_empty() {
        println!(
            "No seed comes down to the paper in: {}. Chance alone does not explain that difference.\n",
            never.join(", ")
        );
    }
    Ok(())
}

/// What space timeout decides: how long elevator lets scans wait for room.
fn write_patience(workload: &str) -> Result<(), String> {
    let sweep = "[[sweep]]\nkey = \"machine.space timeout\"\nvalues = [\"500 ms\", \"5 s\", \"15 s\", \"60 s\"]";
    let spec = Spec::parse(&format!("{workload}\n{sweep}")).map_err(|error| error.to_string())?;
    let names: Vec<_> = spec.cases.iter().map(|case| case.name.clone()).collect();
    let runs = run_all(&[spec], &[PolicyKind::Elevator], 10)?;
    println!("Patience, under elevator (the paper: 138 s, 13.5, 1404 requests), over 10 seeds.\n");
    write_row(["space timeout", "stream s", "normalized latency", "requests"].map(str::to_owned));
    write_row(["---", "--:", "--:", "--:"].map(str::to_owned));
    for (name, case) in names.into_iter().zip(runs.iter().flatten()) {
        let metrics = [Metric::StreamAvg, Metric::NormalizedLatencyAvg, Metric::Requests];
        let cells = metrics.map(|metric| format!("{:.1}", case.average(0, metric)));
        write_row(std::iter::once(name).chain(cells));
    }
    println!();
    Ok(())
}

/// `[CS07 §5.2.4, Figure 8]`: how long the decisions take, with all that the simulator does besides.
pub(crate) fn write_scheduling_cost(spec: &Spec) -> Result<(), String> {
    println!(
        "What decisions cost: milliseconds that the whole simulation of a run takes on one core (the policy, the \
         simulated disk and processors, and the checks), and as a part of the simulated time; the \
         least of five. An upper bound of what the decisions take; it differs from machine to machine. The paper: less than 1 % in the worst case, growing faster \
         than the number of chunks.\n"
    );
    let policies = [PolicyKind::Normal, PolicyKind::Relevance2007, PolicyKind::Relevance];
    write_row(std::iter::once("case".to_owned()).chain(policies.map(|policy| policy.to_string())));
    write_row(["---", "--:", "--:", "--:"].map(str::to_owned));
    for case in &spec.cases {
        let prepared = Arc::new(Prepared::new(case, 1).map_err(|error| error.to_string())?);
        let mut cells = vec![case.name.clone()];
        for policy in policies {
            let mut least = f64::INFINITY;
            let mut total = 0.0;
            for _ in 0..5 {
                let start = std::time::Instant::now();
                let run = prepared.run(policy.build(), Options::default());
                least = least.min(start.elapsed().as_secs_f64());
                let run = run.map_err(|error| error.to_string())?;
                total = value(&run, Metric::Total);
            }
            let percent = 100.0 * least / total;
            cells.push(format!("{:.1} ({percent:.3} %)", least * 1e3));
        }
        write_row(cells);
    }
    println!();
    Ok(())
}

/// `[CS11 §6.2, Figure 6.1]`
pub(crate) fn write_potential(spec: &Spec) -> Result<(), String> {
    const SAMPLES: u32 = 10;
    println!("### Sharing potential\n\n`[CS11 §6.2, Figure 6.1]`\n");
    println!(
        "Megabytes that running scans have still to be handed, by how many of them want the same, over the time of one \
         run (seed 1). The paper's figure has no numbers; most of its area is wanted by five scans or more.\n"
    );
    let case = spec.cases.first().ok_or("a file has a case")?;
    let prepared = Arc::new(Prepared::new(case, 1).map_err(|error| error.to_string())?);
    let options = Options { timeline: true, ..Options::default() };
    for policy in [PolicyKind::Normal, PolicyKind::Relevance2007] {
        let run = prepared.run(policy.build(), options).map_err(|error| error.to_string())?;
        let potentials = run.sharing_potential(SAMPLES);
        let titles = potentials.iter().map(|it| format!("{:.0} s", it.at.0 as f64 / 1e9));
        write_row(std::iter::once(format!("{policy}, wanted by")).chain(titles));
        write_row((0..=SAMPLES).map(|_| "--:".to_owned()));
        for (level, name) in ["1 scan", "2", "3", "4", "5 or more"].into_iter().enumerate() {
            let cells = potentials.iter().map(|it| format!("{}", it.bytes[level] / 1_000_000));
            write_row(std::iter::once(name.to_owned()).chain(cells));
        }
        println!();
    }
    Ok(())
}
