//! Writes the papers' experiments beside ours:
//! `cargo run --release -p coscan-sim --example reproduction -- docs` writes `docs/reproduction.md`, a file for each
//! experiment and each paper below it, and `docs/own-experiments.md`.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // An example may use threads, write files and print.

mod agreement;
#[path = "../common/mod.rs"]
mod common;
mod costs;
mod figures;
mod format;
mod lessons;
mod measured;
mod potential;
mod reuse;
mod sections;
mod tpch;
mod variations;
mod verdicts;

use std::path::Path;
use std::process::ExitCode;

use common::run_all;
use coscan_core::PolicyKind;
use coscan_sim::experiment;

use crate::costs::Costs;
use crate::measured::Measured;
use crate::verdicts::judged;

/// The number of seeds of each experiment.
const SEEDS: u64 = 5;

fn measure() -> Result<Vec<Measured>, String> {
    let specs = experiment::names().map(experiment::find).collect::<Result<Vec<_>, _>>();
    let specs = specs.map_err(|error| error.to_string())?;
    let runs = run_all(&specs, &PolicyKind::ALL, SEEDS)?;
    Ok(specs.into_iter().zip(runs).map(|(spec, cases)| Measured { spec, cases }).collect())
}

/// Whether an experiment is a paper's.
fn is_published(experiment: &Measured) -> bool {
    experiment.spec.source.starts_with('[')
}

fn write_all(docs: &Path) -> Result<(), String> {
    let write = |name: &str, text: String| {
        let text = text.trim_end().to_owned() + "\n";
        std::fs::write(docs.join(name), text).map_err(|error| format!("{name}: {error}"))
    };
    let all = measure()?;
    let (published, ours): (Vec<_>, Vec<_>) = all.into_iter().partition(is_published);
    let directory = docs.join("reproduction");
    std::fs::create_dir_all(directory).map_err(|error| error.to_string())?;
    let figure8 = published.iter().find(|experiment| experiment.spec.name == "cs07-figure8");
    let costs = Costs::measure(&figure8.ok_or("there is a Figure 8")?.spec)?;
    let tpch = published.iter().find(|experiment| experiment.spec.name == "cs11-figure7.3");
    let tpch_potential = potential::Tpch::measure(&tpch.ok_or("there is a Figure 7.3")?.spec)?;
    for experiment in &published {
        let spec = &experiment.spec;
        let mut text = format!(
            "# {}: {}\n\nWritten by a program, see [the page on all of them](../reproduction.md).\n\n",
            spec.name, spec.title
        );
        text += &sections::write(experiment);
        text += &match spec.name.as_str() {
            "cs07-example" => figures::write_reuse(),
            "cs07-table2" => variations::write_sensitivity(experiment)?,
            "cs07-table3" => variations::write_widths(experiment)?,
            "cs07-table4" => variations::write_pools(experiment)?,
            "cs07-figure8" => costs.write(),
            "cs11-table6.1" => potential::write_synthetic(spec)?,
            "cs11-table6.2" => figures::write_relative(experiment),
            "cs11-figure6.7-mixed" => variations::write_queue()?,
            "cs11-figure7.3" => {
                tpch::write_volumes(spec)? + &tpch_potential.write() + &tpch::write_orders()?
            }
            _ => String::new(),
        };
        write(&format!("reproduction/{}.md", spec.name), text)?;
    }
    let mut judged = judged(&published);
    judged.extend([figures::judge_reuse(), costs.judged(), tpch_potential.judged()]);
    for paper in verdicts::PAPERS {
        let name = format!("reproduction/{}.md", paper.0.to_lowercase());
        write(&name, verdicts::write_paper(&judged, paper))?;
    }
    let page = include_str!("page.md")
        .replace("{SEEDS}", &SEEDS.to_string())
        .replace("{SUMMARY}", verdicts::write_summary(&judged).trim_end())
        .replace("{MISSED}", verdicts::write_missed(&judged).trim_end())
        .replace("{LESSONS}", lessons::write(&published).trim_end())
        .replace("{DISAGREEMENTS}", agreement::write_disagreements(&published).trim_end())
        .replace("{FITTED}", agreement::write_fitted(&published).trim_end());
    write("reproduction.md", page)?;
    let mut text = include_str!("own.md").replace("{SEEDS}", &SEEDS.to_string());
    for experiment in &ours {
        text += &format!(
            "\n## {}: {}\n\n{}",
            experiment.spec.name,
            experiment.spec.title,
            sections::write(experiment).trim_end()
        );
        text += "\n";
    }
    write("own-experiments.md", text)
}

fn main() -> ExitCode {
    let Some(docs) = std::env::args().nth(1) else {
        eprintln!("write the directory of the documents: docs");
        return ExitCode::FAILURE;
    };
    match write_all(Path::new(&docs)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
