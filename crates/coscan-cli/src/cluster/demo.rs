//! `coscan cluster demo` shows, on this machine, TPC-H over several workers and on one server.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use coscan_bench::tpch::{self, Parameters, queries::TEMPLATES};
use coscan_runtime::units::parse_duration;
use indicatif::ProgressBar;

use super::servers::{Settings, SystemKind};
use super::system::{Query, System, table};
use crate::compare::spinner;
use crate::data::data_directory;
use crate::signals::interrupted;
use crate::sizes::{parse_bytes, show_bytes};
use crate::{Exit, Failure};

/// Run the 22 queries of TPC-H over several workers on this machine, on one server that has the memory and the links of all, and
/// over the engine of distributed queries without coscan.
///
/// Makes the tables (kept for the next run). Checks that all answers are equal, and ends the workers. They talk over loopback, which has no bandwidth
/// limit, and share the processors of this machine: their gain here is memory and links, not processors.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  coscan cluster demo --workers 3
  coscan cluster demo --workers 3 --scale 3 --streams 8 --store-bandwidth 10MB --rounds 3 --json cluster.json
  coscan cluster demo --systems one-server,workers    without the engine alone")]
pub(super) struct Demo {
    /// What executes the queries, each in turn. Answers are compared with those of the first
    #[arg(
        long,
        default_value = "one-server,workers,engine",
        value_delimiter = ',',
        value_name = "SYSTEMS"
    )]
    systems: Vec<SystemKind>,
    /// How often each runs all streams, in alternation. The table has the medians
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Number of workers
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=64))]
    workers: u16,
    /// Streams at the same time, each of which runs the 22 queries in an order of its own
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    streams: u16,
    /// TPC-H scale factor: 1 is six million rows of lineitem
    #[arg(long, default_value_t = 1.0, value_name = "N")]
    scale: f64,
    /// Bytes per second that each worker gets from the store. The one server gets this for each worker
    #[arg(long, default_value = "50MB", value_name = "BYTES", value_parser = parse_bytes)]
    store_bandwidth: u64,
    /// Time until the store answers a request
    #[arg(long, default_value = "5ms", value_name = "TIME", value_parser = parse_duration)]
    store_latency: Duration,
    /// Memory of each worker. The one server has this for each worker
    #[arg(long, default_value = "1GB", value_name = "BYTES", value_parser = parse_bytes)]
    memory_bytes: u64,
    /// Scans of less than this are not divided
    #[arg(long, default_value = "4MB", value_name = "BYTES", value_parser = parse_bytes)]
    divided_bytes_min: u64,
    /// The seed of the queries
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where generated data is kept [default: the user's cache directory]
    #[arg(long, value_name = "DIRECTORY")]
    data: Option<PathBuf>,
    /// Also write the figures to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Demo {
    pub(super) async fn run(&self) -> Result<Exit, Failure> {
        tokio::select! {
            result = self.compare() => result.map(|()| Exit::Success),
            () = interrupted() => Ok(Exit::Interrupted),
        }
    }

    async fn compare(&self) -> Result<(), Failure> {
        if self.store_bandwidth == 0 {
            return Err("--store-bandwidth is 0: nothing would ever be read".into());
        }
        let (directory, scale) = (data_directory(self.data.as_ref())?, self.scale);
        let bar: ProgressBar = spinner();
        bar.set_message(format!("the tables of TPC-H, scale {scale}"));
        let make = move || tpch::tables(&directory, scale, &|_, _| {});
        let tables = tokio::task::spawn_blocking(make).await??;
        bar.finish_and_clear();
        let secrets = tempfile::tempdir()?;
        let key = secrets.path().join("cluster.key");
        std::fs::write(&key, coscan_server::new_ring_key()?)?;
        eprintln!(
            "TPC-H, scale {scale}, {} streams of 22 queries; each worker has {}/s and {} ms to its store, and {} of memory:",
            self.streams,
            show_bytes(self.store_bandwidth),
            self.store_latency.as_millis(),
            show_bytes(self.memory_bytes),
        );
        let settings = Settings {
            workers: self.workers,
            tables: &tables,
            key: &key,
            store_bandwidth: self.store_bandwidth,
            store_latency: self.store_latency,
            memory_bytes: self.memory_bytes,
            divided_bytes_min: self.divided_bytes_min,
        };
        let (streams, mut right) = (self.streams(), None);
        let systems = self.systems.iter().map(|&kind| System::new(kind, self.workers));
        let mut systems: Vec<System> = systems.collect();
        for _ in 0..self.rounds {
            for system in &mut systems {
                system.run(&settings, &streams, &mut right).await?;
            }
        }
        println!("{}", table(&systems));
        if let Some(path) = &self.json {
            let text = serde_json::to_string_pretty(&systems)?;
            let written = std::fs::write(path, text + "\n");
            written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        match systems.iter().find_map(System::fault) {
            Some(fault) => Err(fault.clone().into()),
            None => Ok(()),
        }
    }

    /// The queries of each stream, each with its name.
    fn streams(&self) -> Vec<Vec<Query>> {
        let mut parameters = Parameters::new(self.seed, self.scale);
        (0..self.streams)
            .map(|_| {
                let templates: Vec<_> = TEMPLATES.iter().collect();
                let shuffled = parameters.shuffled(&templates).into_iter();
                let query = |template: &tpch::queries::Template| {
                    let sql = template.sql(&parameters.draw(template));
                    (format!("Q{}", template.number), sql)
                };
                shuffled.map(query).collect()
            })
            .collect()
    }
}
