//! Compares two policies on the papers' experiments.
//!
//! `cargo run --release -p coscan-sim --example compare -- [NAME-PREFIX or FILE.toml …] [--policies a,b] [--seeds N]` prints a line
//! for each case and policy, averaged over the seeds, then for each experiment the second policy relative to the
//! first: the geometric mean over cases and seeds.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // An example may use threads and print.

mod common;

use std::process::ExitCode;

use common::{CaseRuns, geometric_mean, run_all, value};
use coscan_core::PolicyKind;
use coscan_sim::{Metric, Spec, experiment};

/// The columns of the table.
const COLUMNS: [(Metric, &str, f64); 10] = [
    (Metric::StreamAvg, "stream s", 1.0),
    (Metric::NormalizedLatencyAvg, "norm.lat", 1.0),
    (Metric::NormalizedLatencyShort, "short", 1.0),
    (Metric::NormalizedLatencyP99, "p99", 1.0),
    (Metric::Total, "total s", 1.0),
    (Metric::Requests, "requests", 1.0),
    (Metric::BytesToBound, "to bound", 1.0),
    (Metric::BytesToMin, "to MIN", 1.0),
    (Metric::CpuUse, "cpu %", 100.0),
    (Metric::LongestWait, "wait s", 1.0),
];

/// The metrics that are compared.
const RATIOS: [(Metric, &str); 4] = [
    (Metric::BytesRead, "bytes"),
    (Metric::NormalizedLatencyAvg, "norm.lat"),
    (Metric::NormalizedLatencyShort, "short"),
    (Metric::StreamAvg, "stream"),
];

struct Arguments {
    prefixes: Vec<String>,
    policies: Vec<PolicyKind>,
    seeds: u64,
}

fn arguments() -> Result<Arguments, String> {
    let mut parsed =
        Arguments { prefixes: Vec::new(), policies: PolicyKind::ALL.to_vec(), seeds: 3 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--policies" => {
                let parse = |name: &str| name.parse::<PolicyKind>().map_err(|e| e.to_string());
                parsed.policies = value()?.split(',').map(parse).collect::<Result<_, _>>()?;
            }
            "--seeds" => parsed.seeds = value()?.parse().map_err(|_| "--seeds needs a number")?,
            option if option.starts_with('-') => {
                return Err(format!("{option}: write --policies a,b or --seeds N"));
            }
            prefix => parsed.prefixes.push(prefix.to_owned()),
        }
    }
    Ok(parsed)
}

fn print_case(name: &str, runs: &CaseRuns, policies: &[PolicyKind]) {
    for (position, policy) in policies.iter().enumerate() {
        print!("{name:<34} {:<15}", policy.name());
        for (metric, _, factor) in COLUMNS {
            match runs.average(position, metric) * factor {
                value if value.is_nan() => print!(" {:>9}", "-"),
                value => print!(" {value:>9.2}"),
            }
        }
        println!();
    }
}

/// The second policy relative to the first, for each of [`RATIOS`].
fn ratios(cases: &[CaseRuns]) -> [f64; RATIOS.len()] {
    RATIOS.map(|(metric, _)| {
        let seeds = cases.iter().flat_map(CaseRuns::seeds);
        geometric_mean(seeds.map(|runs| value(&runs[1], metric) / value(&runs[0], metric)))
    })
}

fn print_ratios(name: &str, ratios: [f64; RATIOS.len()]) {
    print!("{name:<34}");
    ratios.iter().for_each(|ratio| print!(" {ratio:>9.3}"));
    println!();
}

/// The named files, and the experiments whose names begin with a given prefix; all experiments without arguments.
fn specs(named: &[String]) -> Result<Vec<Spec>, String> {
    let (files, prefixes): (Vec<_>, Vec<_>) =
        named.iter().partition(|argument| argument.ends_with(".toml"));
    let is_selected = |name: &&str| {
        named.is_empty() || prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()))
    };
    let known = experiment::names().filter(is_selected).map(experiment::find);
    let mut specs = known.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    for file in files {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        specs.push(Spec::parse(&text).map_err(|error| format!("{file}: {error}"))?);
    }
    Ok(specs)
}

fn compare() -> Result<(), String> {
    let arguments = arguments()?;
    let specs = specs(&arguments.prefixes)?;
    let runs = run_all(&specs, &arguments.policies, arguments.seeds)?;
    print!("{:<50}", "experiment and case, policy");
    COLUMNS.iter().for_each(|(_, title, _)| print!(" {title:>9}"));
    println!();
    for (spec, cases) in specs.iter().zip(&runs) {
        for (case, runs) in spec.cases.iter().zip(cases) {
            print_case(&format!("{} {}", spec.name, case.name), runs, &arguments.policies);
        }
    }
    let [first, second] = arguments.policies[..] else { return Ok(()) };
    print!("\n{:<34}", format!("{second} relative to {first}"));
    RATIOS.iter().for_each(|(_, title)| print!(" {title:>9}"));
    println!();
    let each: Vec<_> = runs.iter().map(|cases| ratios(cases)).collect();
    specs.iter().zip(&each).for_each(|(spec, &ratios)| print_ratios(&spec.name, ratios));
    let column = |position: usize| geometric_mean(each.iter().map(|ratios| ratios[position]));
    print_ratios("all", std::array::from_fn(column));
    Ok(())
}

fn main() -> ExitCode {
    match compare() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
