//! `coscan bench`: measurements on your own data.

mod alone;
mod dashboard;
mod drawn_queries;
mod mixed;
mod open;
mod partitions;
mod small;
mod streams;
mod throughput;
mod tpch;
mod updates;

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use clap::{Args, Subcommand};
use coscan_bench::engines::{Device, EngineKind, Source};
use coscan_bench::experiment::{Experiment, PoolSize};
use coscan_bench::report::flatness::{self, FlatnessPoint};
use coscan_bench::report::html;
use coscan_bench::workload::{ConstantChoice, Mix, Percent, StreamGroup};
use coscan_runtime::storage::stores::Limits;
use coscan_runtime::storage::table::{FileOptions, PageLayout};

use alone::Alone;
use dashboard::DashboardCommand;
use mixed::Mixed;
use open::Open;
use partitions::Partitions;
use small::Small;
use streams::Streams;
use throughput::Throughput;
use updates::UpdatesCommand;

use crate::compare::{
    Comparison, EngineChoice, Runs, compare, describe, write_picture, write_pictures,
};
use crate::signals::interrupted;
use crate::sizes::parse_bytes;
use crate::table_argument::parse_table;
use crate::{Exit, Failure};

/// The default seed of the queries.
const DEFAULT_SEED: u64 = 7;

/// Measure coscan beside plain DataFusion.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    experiment: Measure,
}

#[derive(Debug, Subcommand)]
enum Measure {
    Streams(Box<Streams>),
    Mixed(Box<Mixed>),
    Open(Open),
    Flatness(Flatness),
    Alone(Alone),
    Partitions(Partitions),
    Small(Small),
    Throughput(Throughput),
    Updates(UpdatesCommand),
    Dashboard(DashboardCommand),
}

/// Average query time as more streams run at the same time (Cooperative Scans, VLDB 2007, Figure 7).
#[derive(Debug, Args)]
struct Flatness {
    #[command(flatten)]
    common: StreamArguments,
    /// Numbers of streams that run at the same time, one run for each
    #[arg(long, default_value = "1,2,4,8,16,32", value_delimiter = ',')]
    streams: Vec<usize>,
    /// Queries of each stream, one after another
    #[arg(long, default_value_t = 2)]
    queries: usize,
    /// Kinds of queries: F, S, O and P, as in `coscan bench streams`
    #[arg(long, default_value = "F")]
    mix: Mix,
    /// Percentages of the table that queries read
    #[arg(long, default_value = "50", value_delimiter = ',')]
    ranges: Vec<Percent>,
}

/// The table, the engines and the device.
#[derive(Debug, Args)]
struct EngineArguments {
    /// TPC-H lineitem: its name in queries, and a file, directory, pattern or URL
    #[arg(long, value_name = "NAME=URL", value_parser = parse_table)]
    table: (String, String),
    /// Engines to compare; answers must equal those of the first one
    #[arg(
        long,
        default_value = "datafusion,normal,attach,elevator,relevance",
        value_delimiter = ','
    )]
    engines: Vec<EngineKind>,
    #[command(flatten)]
    device: DeviceArguments,
}

/// Streams of queries on engines, and where their pictures go.
#[derive(Debug, Args)]
struct StreamArguments {
    #[command(flatten)]
    engines: EngineArguments,
    /// The seed of the queries
    #[arg(long, default_value_t = DEFAULT_SEED)]
    seed: u64,
    /// Milliseconds between the starts of two streams [default: a tenth of the longest query alone]
    #[arg(long, value_name = "N")]
    stagger_ms: Option<u64>,
    /// Write a page with pictures
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write each picture as an SVG file
    #[arg(long, value_name = "DIRECTORY")]
    svg: Option<PathBuf>,
}

/// The device, and how coscan reads from it.
#[derive(Debug, Args)]
struct DeviceArguments {
    /// coscan's pool of stored pages [default: a quarter of the bytes that the queries touch]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pool_bytes: Option<u64>,
    /// coscan's memory for decoded columns
    #[arg(long, default_value = "256MiB", value_name = "BYTES", value_parser = parse_bytes)]
    decode_bytes: u64,
    /// Bandwidth of the device, in bytes per second [default: no limit]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    bandwidth: Option<u64>,
    /// The least time of a request, in milliseconds
    #[arg(long, default_value_t = 0, value_name = "N")]
    latency_ms: u64,
    /// Read local files through the operating system's cache, and read all data once before measuring
    #[arg(long)]
    warm: bool,
    /// The fewest rows of a chunk
    #[arg(long, default_value_t = FileOptions::default().chunk_rows, value_name = "N")]
    chunk_rows: u64,
    /// Read whole row groups, all columns in one request
    #[arg(long)]
    row_layout: bool,
}

impl DeviceArguments {
    fn device(&self) -> Device {
        let limits = Limits {
            bytes_per_second: self.bandwidth,
            latency: Duration::from_millis(self.latency_ms),
        };
        Device { limits, system_cache: self.warm }
    }

    fn table_options(&self) -> FileOptions {
        let layout = if self.row_layout { PageLayout::Row } else { PageLayout::Column };
        FileOptions { chunk_rows: self.chunk_rows, layout, ..FileOptions::default() }
    }
}

impl Bench {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let measure = async {
            match &self.experiment {
                Measure::Streams(streams) => streams.run().await,
                Measure::Mixed(mixed) => mixed.run().await,
                Measure::Open(open) => open.run().await,
                Measure::Flatness(flatness) => flatness.run().await,
                Measure::Alone(alone) => alone.run().await,
                Measure::Partitions(partitions) => partitions.run().await,
                Measure::Small(small) => small.run().await,
                Measure::Throughput(throughput) => throughput.run().await,
                Measure::Updates(updates) => updates.run().await,
                Measure::Dashboard(dashboard) => dashboard.run().await,
            }
        };
        tokio::select! {
            result = measure => result.map(|()| Exit::Success),
            () = interrupted() => Ok(Exit::Interrupted),
        }
    }
}

impl EngineArguments {
    fn experiment(&self, groups: Vec<StreamGroup>) -> Experiment {
        Experiment {
            source: Source { location: self.table.1.clone(), device: self.device.device() },
            table: self.table.0.clone(),
            orders: None,
            constants: ConstantChoice::Equal,
            groups,
            seed: DEFAULT_SEED,
            stagger: None,
            pool: self.device.pool_bytes.map_or(PoolSize::PartOfTouched(0.25), PoolSize::Bytes),
            decode_bytes: self.device.decode_bytes,
            operator_bytes: 0,
            table_options: self.device.table_options(),
            warm: self.device.warm,
        }
    }
}

impl StreamArguments {
    /// The engines, on the pool of the experiment.
    fn contenders(&self) -> Vec<EngineChoice> {
        self.engines.engines.iter().copied().map(EngineChoice::from).collect()
    }

    fn experiment(&self, groups: Vec<StreamGroup>) -> Experiment {
        let stagger = self.stagger_ms.map(Duration::from_millis);
        Experiment { seed: self.seed, stagger, ..self.engines.experiment(groups) }
    }

    /// Writes the page and the pictures of a run, if they were asked for.
    fn write_pictures(&self, run: &Comparison) -> Result<(), Failure> {
        let description = describe(&run.prepared);
        write(&self.html, |path| html::write_html(path, &description, &run.reports))?;
        self.svg.as_ref().map_or(Ok(()), |directory| write_pictures(directory, run))
    }
}

impl Flatness {
    async fn run(&self) -> Result<(), Failure> {
        let mut points = Vec::new();
        let mut description = None;
        println!("{:<12} {:>8} {:>14} {:>12}", "engine", "streams", "query average", "bytes read");
        for &streams in &self.streams {
            let group =
                StreamGroup::once(self.mix.clone(), self.ranges.clone(), streams, self.queries);
            let experiment = self.common.experiment(vec![group]);
            let comparison = compare(experiment, Runs::once(&self.common.contenders())).await?;
            for report in &comparison.reports {
                let query_avg_s = report.query_avg_s();
                let bytes = crate::sizes::show_bytes(report.bytes_read);
                println!("{:<12} {streams:>8} {query_avg_s:>12.2} s {bytes:>12}", report.engine);
                points.push(FlatnessPoint { engine: report.engine.clone(), streams, query_avg_s });
            }
            comparison.check()?;
            description = Some(describe(&comparison.prepared));
        }
        if let Some(description) = description {
            write(&self.common.html, |path| {
                fs::write(path, html::flatness_page(&description, &points))
            })?;
        }
        if let Some(directory) = &self.common.svg {
            write_picture(directory, "flatness.svg", &flatness::figure(&points))?;
        }
        Ok(())
    }
}

/// Writes a file, if one was asked for.
fn write(
    path: &Option<PathBuf>,
    write: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    write(path).map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

/// The error of engines whose answers differ.
fn check(answers_equal: bool) -> Result<(), Failure> {
    if answers_equal { Ok(()) } else { Err("answers differ".into()) }
}
