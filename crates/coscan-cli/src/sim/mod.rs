//! `coscan sim`: the papers' experiments, or your own workloads, in virtual time.

mod find;
mod replay;
mod runs;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use coscan_core::PolicyKind;
use coscan_sim::cyclotron::{self, report};
use coscan_sim::experiment;
use coscan_sim::report::{Results, html, json, pictures, text};

use self::runs::Runs;
use crate::compare::write_picture;
use crate::signals::interrupted;
use crate::{Exit, Failure};

/// Simulate many queries on any disk and any number of cores, in virtual time: the papers' experiments, or your own.
///
/// The same scheduler that serves real queries runs on a simulated machine. Hours pass in seconds, and the same file,
/// policies and seeds give the same results on every computer.
#[derive(Debug, Args)]
pub(crate) struct Sim {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the papers' experiments
    List,
    Show(Show),
    Run(Run),
    Replay(replay::Replay),
}

/// Print the file of an experiment, as a start for your own: coscan sim show cs07-table2 > mine.toml
#[derive(Debug, Args)]
struct Show {
    /// The experiment
    #[arg(value_name = "NAME")]
    name: String,
}

/// Run an experiment under each policy, and show the results beside those of the paper.
#[derive(Debug, Args)]
#[command(after_long_help = LONG_HELP)]
struct Run {
    /// One of `coscan sim list`, a file as `coscan sim show` prints them, or a run recorded with `coscan bench streams
    /// --record FILE`
    #[arg(value_name = "NAME-or-FILE")]
    experiment: String,
    /// Policies to compare [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    policies: Vec<PolicyKind>,
    /// Run with the seeds 1 to N and show averages; the seed determines everything random in a workload
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: u64,
    /// Write the results of each run as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with pictures that explains the results
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write each picture as an SVG file
    #[arg(long, value_name = "DIRECTORY")]
    svg: Option<PathBuf>,
}

const LONG_HELP: &str = concat!(
    "A file describes the machine and the workload. Sizes, times and speeds have units:\n\n",
    include_str!("example.toml"),
    "\nWith it, `coscan sim run mine.toml --policies normal,relevance` prints\n\n",
    include_str!("example.txt"),
    "\nTimes are in seconds of virtual time. A normalized latency of 2 is twice the time that the query takes alone \
     with an empty pool. The lower bound is the least that any schedule must read, even one that knows the future. \
     `coscan sim show NAME` prints the papers' files, which also show column layouts, other disks and sweeps.",
);

impl Sim {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let work = tokio::task::spawn_blocking(move || match self.action {
            Action::List => list(),
            Action::Show(show) => show.print(),
            Action::Run(run) => run.run(),
            Action::Replay(replay) => replay.run(),
        });
        tokio::select! {
            result = work => result?.map(|()| Exit::Success),
            () = interrupted() => Ok(Exit::Interrupted),
        }
    }
}

fn list() -> Result<(), Failure> {
    let specs = experiment::names().map(experiment::find).collect::<Result<Vec<_>, _>>()?;
    let rings = cyclotron::names().filter_map(cyclotron::find).collect::<Result<Vec<_>, _>>()?;
    let specs = specs.into_iter().map(|spec| [spec.name, spec.source, spec.title]);
    let rings = rings.into_iter().map(|spec| [spec.name, spec.source, spec.title]);
    let lines: Vec<[String; 3]> = specs.chain(rings).collect();
    let width = |part: usize| lines.iter().map(|line| line[part].chars().count()).max();
    let (names, sources) = (width(0).unwrap_or(0), width(1).unwrap_or(0));
    for [name, source, title] in &lines {
        println!("{name:<names$}  {source:<sources$}  {title}");
    }
    Ok(())
}

impl Show {
    fn print(&self) -> Result<(), Failure> {
        let file = experiment::file(&self.name).or_else(|| cyclotron::file(&self.name));
        let file = file.ok_or_else(|| find::unknown(&self.name))?;
        print!("{file}");
        Ok(())
    }
}

impl Run {
    fn run(&self) -> Result<(), Failure> {
        if let Some(ring) = find::find_ring(&self.experiment)? {
            if self.json.is_some() || self.html.is_some() || self.svg.is_some() {
                return Err("experiments with a ring have no pictures and no JSON: leave --json, --html and --svg out".into());
            }
            print!("{}", report(&ring, &ring.run(self.seeds)));
            return Ok(());
        }
        let spec = find::find(&self.experiment)?;
        let policies = match self.policies.as_slice() {
            [] => PolicyKind::ALL.to_vec(),
            policies => policies.to_vec(),
        };
        let pictures = self.html.is_some() || self.svg.is_some();
        let runs = Runs { spec: &spec, policies: &policies, seeds: self.seeds, pictures }.run()?;
        let results = Results::new(&spec, &runs);
        print!("{}", text::text(&results));
        if let Some(path) = &self.json {
            write(path, &json::json(&results))?;
        }
        if let Some(path) = &self.html {
            write(path, &html::html(&results))?;
            println!("\nPictures: {}", path.display());
        }
        if let Some(directory) = &self.svg {
            for picture in pictures::sections(&results).iter().flat_map(|one| &one.pictures) {
                write_picture(directory, &format!("{}.svg", picture.file_name), &picture.figure)?;
            }
        }
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}
