//! `coscan ring demo` shows, on this machine, the gain of servers that share reads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use coscan_bench::engines::{Device, Source};
use coscan_bench::experiment::{Experiment, PoolSize, Prepared};
use coscan_bench::workload::{ConstantChoice, Stream, StreamGroup};
use coscan_runtime::storage::table::FileOptions;
use coscan_runtime::units::{BYTES_MAX, parse_duration};
use coscan_server::config::RingMode;
use indicatif::ProgressBar;

use super::nodes::{Nodes, Settings};
use super::report::{Report, table};
use super::streams::run_on;
use crate::compare::spinner;
use crate::data::{data_directory, make_lineitem};
use crate::serve::parse_mode;
use crate::signals::interrupted;
use crate::sizes::{parse_bytes, show_bytes};
use crate::{Exit, Failure};

/// Show the gain: start servers on this machine, each with a slow link to its store, and run streams of queries on them, with
/// and without sharing.
///
/// Makes TPC-H lineitem (kept for the next run). For each mode it starts the servers, deals streams of queries to them (by
/// default 16 of 4), checks that all answers are equal, and ends the servers. Servers talk over loopback, which has no bandwidth
/// limit but costs processor time.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  coscan ring demo                                 four servers, a minute
  coscan ring demo --modes off,direct --busy 1     one server works, three only own pages
  coscan ring demo --nodes 8 --streams 32 --store-bandwidth 25MB
  coscan ring demo --one-server --json ring.json   also one server that has what all of them have together")]
pub(super) struct Demo {
    /// Number of servers
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    nodes: u16,
    /// How they share, each mode in turn: off, direct, circulate, auto
    #[arg(long, default_value = "off,direct", value_delimiter = ',', value_name = "MODES", value_parser = parse_mode)]
    modes: Vec<RingMode>,
    /// Also run one server with the pools and store links of all of them together, as a yardstick
    #[arg(long)]
    one_server: bool,
    /// Number of streams of queries, dealt to the servers in turn
    #[arg(long, default_value_t = 16, value_name = "N")]
    streams: usize,
    /// Send streams to the first N servers only; the others just own pages [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    busy: Option<u16>,
    /// Queries per stream, one after another
    #[arg(long, default_value_t = 4, value_name = "N")]
    queries: usize,
    /// TPC-H scale factor: 1 is six million rows
    #[arg(long, default_value_t = 1.0, value_name = "N")]
    scale: f64,
    /// Bytes per second that each server gets from the store
    #[arg(long, default_value = "12.5MB", value_name = "BYTES", value_parser = parse_bytes)]
    store_bandwidth: u64,
    /// Time until the store answers a request
    #[arg(long, default_value = "30ms", value_name = "TIME", value_parser = parse_duration)]
    store_latency: Duration,
    /// Pool of each server [default: an eighth of what the queries touch]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pool_bytes: Option<u64>,
    /// Memory of each server beside its pool
    #[arg(long, default_value = "500MB", value_name = "BYTES", value_parser = parse_bytes)]
    memory_bytes: u64,
    /// The seed of the queries
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where generated data is kept [default: the user's cache directory]
    #[arg(long, value_name = "DIRECTORY")]
    data: Option<PathBuf>,
    /// Also write the figures of each mode to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A run of the demonstration.
struct Arm<'a> {
    name: String,
    settings: Settings<'a>,
}

impl Demo {
    pub(super) async fn run(&self) -> Result<Exit, Failure> {
        tokio::select! {
            result = self.compare() => result.map(|()| Exit::Success),
            () = interrupted() => Ok(Exit::Interrupted),
        }
    }

    async fn compare(&self) -> Result<(), Failure> {
        if self.busy.is_some_and(|busy| busy > self.nodes) {
            return Err(format!("--busy is more than the {} servers of --nodes", self.nodes).into());
        }
        if self.store_bandwidth == 0 {
            return Err("--store-bandwidth is 0: nothing would ever be read".into());
        }
        let path = make_lineitem(data_directory(self.data.as_ref())?, self.scale).await?;
        let path = std::path::absolute(path)?;
        let prepared = self.experiment(&path)?.prepare().await?;
        let (pool, chunk) = (prepared.pool_bytes(), prepared.chunk_bytes_max);
        if pool < chunk {
            let (pool, chunk) = (show_bytes(pool), show_bytes(chunk));
            return Err(format!("a pool of {pool} is too small: some chunk has {chunk}").into());
        }
        let directory = tempfile::tempdir()?;
        let key = directory.path().join("ring.key");
        std::fs::write(&key, coscan_server::new_ring_key()?)?;
        eprintln!(
            "{} servers, {} streams of {} queries on lineitem, scale {}; each server has {}/s and {} ms to its store, and a pool of {}:",
            self.nodes,
            self.streams,
            self.queries,
            self.scale,
            show_bytes(self.store_bandwidth),
            self.store_latency.as_millis(),
            show_bytes(prepared.pool_bytes()),
        );
        let mut reports: Vec<Report> = Vec::new();
        for arm in self.arms(&path, &key, &prepared) {
            let report = self.run_arm(arm, &prepared.streams, reports.first()).await?;
            reports.push(report);
        }
        println!("{}", table(&reports));
        if let Some(path) = &self.json {
            let text = serde_json::to_string_pretty(&reports)?;
            let written = std::fs::write(path, text + "\n");
            written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        match reports.iter().find_map(|report| report.difference.as_ref()) {
            Some(difference) => Err(difference.clone().into()),
            None => Ok(()),
        }
    }

    /// Runs all streams on new servers.
    async fn run_arm(
        &self,
        Arm { name, settings }: Arm<'_>,
        streams: &[Stream],
        first: Option<&Report>,
    ) -> Result<Report, Failure> {
        let bar: ProgressBar = spinner();
        bar.set_message(format!("{name}: starting {} servers", settings.count));
        let mut nodes = Nodes::start(&settings).await?;
        let dashboard = nodes.ready().find_map(|ready| ready.http);
        let dashboard =
            dashboard.map_or_else(String::new, |at| format!("; watch one at http://{at}/"));
        bar.set_message(format!("{name}: {} streams of queries{dashboard}", streams.len()));
        let before = nodes.counts().await?;
        let busy = self.busy.map_or(usize::MAX, usize::from);
        let addresses: Vec<_> =
            nodes.ready().filter_map(|ready| ready.postgres).take(busy).collect();
        let runs = run_on(&addresses, streams).await?;
        let after = nodes.counts().await?;
        bar.finish_and_clear();
        let report = Report::new(name, runs, (before, after), first);
        eprintln!("  {}", report.line());
        Ok(report)
    }

    fn arms<'a>(&self, table: &'a Path, key: &'a Path, prepared: &Prepared) -> Vec<Arm<'a>> {
        let pool_bytes = prepared.pool_bytes();
        let separate = |mode| Settings {
            count: usize::from(self.nodes),
            table,
            key,
            mode,
            store_bandwidth: self.store_bandwidth,
            store_latency: self.store_latency,
            memory_bytes: self.memory_bytes + pool_bytes,
            pool_bytes,
        };
        let times_all = |bytes: u64| bytes.saturating_mul(self.nodes.into()).min(BYTES_MAX);
        let together = Settings {
            count: 1,
            store_bandwidth: times_all(self.store_bandwidth),
            memory_bytes: times_all(self.memory_bytes + pool_bytes),
            pool_bytes: times_all(pool_bytes),
            ..separate(RingMode::Off)
        };
        let modes =
            self.modes.iter().map(|&mode| Arm { name: mode.to_string(), settings: separate(mode) });
        let together = Arm { name: "one server".to_owned(), settings: together };
        modes.chain(self.one_server.then_some(together)).collect()
    }

    fn experiment(&self, lineitem: &Path) -> Result<Experiment, Failure> {
        let percents = ["1", "10", "50", "100"].into_iter().map(str::parse);
        let percents = percents.collect::<Result<_, _>>()?;
        Ok(Experiment {
            source: Source { location: lineitem.display().to_string(), device: Device::default() },
            table: "lineitem".to_owned(),
            orders: None,
            constants: ConstantChoice::Equal,
            groups: vec![StreamGroup::once("FS".parse()?, percents, self.streams, self.queries)],
            seed: self.seed,
            stagger: None,
            pool: self.pool_bytes.map_or(PoolSize::PartOfTouched(0.125), PoolSize::Bytes),
            decode_bytes: 0,
            operator_bytes: 0,
            table_options: FileOptions::default(),
            warm: false,
        })
    }
}
