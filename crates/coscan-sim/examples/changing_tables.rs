//! The cost of tables that change: `cargo run --release -p coscan-sim --example changing_tables -- [--seeds N]` runs the
//! experiments `changing-table` and `two-versions` and prints, for each policy and case, bytes read and times as ratios to
//! the first case, in which the table is at rest or all see one version: geometric means over the seeds.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // An example may use threads and print.

mod common;

use std::process::ExitCode;

use common::{CaseRuns, geometric_mean, run_all, value};
use coscan_core::PolicyKind;
use coscan_sim::experiment::{self, Run};
use coscan_sim::{End, Metric, Spec};

/// The experiments; the first case of each is what the others are compared with.
const EXPERIMENTS: [&str; 2] = ["changing-table", "two-versions"];

/// The number of seeds if none is given.
const SEEDS: u64 = 5;

/// A column of the table: its title, and its value in a run.
type Column = (&'static str, fn(&Run) -> f64);

/// The columns of the table that are relative to the first case.
const COLUMNS: [Column; 3] = [
    ("handed out", |run| readers_of(run, |query| query.bytes_used as f64)),
    ("read", |run| value(run, Metric::BytesRead)),
    ("time", stream_average_ns),
];

/// The sum of a value over the queries that are not checkpoints.
fn readers_of(run: &Run, of: impl Fn(&coscan_sim::QueryOutcome) -> f64) -> f64 {
    let queries = run.prepared.workload.queries().zip(&run.outcome.queries);
    queries.filter(|(query, _)| query.change.is_none()).map(|(_, outcome)| of(outcome)).sum()
}

/// The number of checkpoints that were made.
fn checkpoints(run: &Run) -> usize {
    let queries = run.prepared.workload.queries().zip(&run.outcome.queries);
    queries.filter(|(query, outcome)| query.change.is_some() && outcome.end == End::Done).count()
}

/// The average time of a stream without checkpoints.
fn stream_average_ns(run: &Run) -> f64 {
    let streams = run.prepared.workload.streams.iter().zip(run.outcome.stream_times_ns());
    let of_readers: Vec<f64> = streams
        .filter(|(stream, _)| !stream.while_others_run)
        .map(|(_, time_ns)| time_ns as f64)
        .collect();
    of_readers.iter().sum::<f64>() / of_readers.len().max(1) as f64
}

fn print_experiment(spec: &Spec, cases: &[CaseRuns], policies: &[PolicyKind]) {
    println!("\n{}: {}\n", spec.name, spec.title);
    print!("| policy | case | checkpoints | read [GB] | time [s] |");
    COLUMNS.iter().for_each(|(title, _)| print!(" {title} |"));
    println!("\n|---|---|---:|---:|---:|---:|---:|---:|");
    for (position, policy) in policies.iter().enumerate() {
        for (case, runs) in spec.cases.iter().zip(cases) {
            let gigabytes = runs.average(position, Metric::BytesRead) / 1e9;
            let times = runs.seeds().iter().map(|runs| stream_average_ns(&runs[position]));
            let seconds = times.sum::<f64>() / runs.seeds().len() as f64 / 1e9;
            let made = runs.seeds().iter().map(|runs| checkpoints(&runs[position]));
            let made = made.sum::<usize>() as f64 / runs.seeds().len() as f64;
            print!("| {policy} | {} | {made:.1} | {gigabytes:.2} | {seconds:.1} |", case.name);
            for (_, of) in COLUMNS {
                let pairs = runs.seeds().iter().zip(cases[0].seeds());
                let ratios = pairs.map(|(runs, first)| of(&runs[position]) / of(&first[position]));
                print!(" {:.3} |", geometric_mean(ratios));
            }
            println!();
        }
    }
}

fn measure() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let seeds = match words.as_slice() {
        [] => SEEDS,
        [option, number] if option == "--seeds" => {
            number.parse().map_err(|_| "--seeds needs a number")?
        }
        _ => return Err("write nothing, or --seeds N".to_owned()),
    };
    let specs = EXPERIMENTS.map(experiment::find).into_iter().collect::<Result<Vec<_>, _>>();
    let specs = specs.map_err(|error| error.to_string())?;
    let policies = PolicyKind::ALL;
    let runs = run_all(&specs, &policies, seeds)?;
    for (spec, cases) in specs.iter().zip(&runs) {
        print_experiment(spec, cases, &policies);
    }
    Ok(())
}

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
