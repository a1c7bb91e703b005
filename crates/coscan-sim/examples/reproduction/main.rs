//! Writes `docs/reproduction.md`: `cargo run --release -p coscan-sim --example reproduction > docs/reproduction.md`.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // An example may use threads and print.

#[path = "../common/mod.rs"]
mod common;
mod figures;
mod sections;

use std::process::ExitCode;

use common::run_all;
use coscan_core::PolicyKind;
use coscan_sim::experiment;

/// Seeds of each experiment.
const SEEDS: u64 = 5;

fn write_page() -> Result<(), String> {
    let specs = experiment::names().map(experiment::find).collect::<Result<Vec<_>, _>>();
    let specs = specs.map_err(|error| error.to_string())?;
    let runs = run_all(&specs, &PolicyKind::ALL, SEEDS)?;
    println!("{}", include_str!("intro.md").replace("SEEDS", &SEEDS.to_string()));
    sections::write_overview(&specs, &runs);
    figures::write_reuse();
    for (spec, cases) in specs.iter().zip(&runs) {
        sections::write_experiment(spec, cases);
        match spec.name.as_str() {
            "cs07-table2" => figures::write_sensitivity()?,
            "cs07-figure8" => figures::write_scheduling_cost(spec)?,
            "cs11-table6.1" => figures::write_potential(spec)?,
            _ => {}
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    match write_page() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
