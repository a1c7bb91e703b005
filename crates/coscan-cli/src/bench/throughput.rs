//! `coscan bench throughput`: streams of all queries of TPC-H.

use std::path::PathBuf;

use clap::Args;
use coscan_bench::engines::EngineKind;
use coscan_bench::metrics::write_json;
use coscan_bench::report::throughput as report;
use coscan_bench::throughput;
use coscan_bench::tpch;
use coscan_bench::tpch::queries::TEMPLATES;

use super::{DEFAULT_SEED, DeviceArguments, unwritable};
use crate::Failure;
use crate::compare::spinner;
use crate::data::data_directory;
use crate::sizes::parse_bytes;

/// The minimum default pool, which holds a few chunks of all columns.
const POOL_BYTES_MIN: u64 = 16 << 20;

/// The throughput test of TPC-H: streams that run at the same time, each all 22 queries in random order.
///
/// Makes the eight TPC-H tables (kept for the next run) and runs the streams on each engine, one engine after another.
/// Orders are drawn, not those of TPC-H's Appendix A. Parameters are random, too, and the same on every engine. Shows
/// times, what was read, queries per hour times scale, the average time of each query, and how much of the data that was
/// still needed several scans needed at once. No rows change meanwhile, so results are not those of an official TPC-H
/// run.
#[derive(Debug, Args)]
#[command(
    mut_arg("pool_bytes", |pool_bytes| pool_bytes.help("coscan's pool of stored pages [default: a quarter of all \
        tables, at least 16 MiB]")),
    mut_arg("warm", |warm| warm.help("Read local files through the operating system's cache, and run every query once \
        on each engine before measuring")),
    after_help = "\
Examples:
  coscan bench throughput --bandwidth 200MB                  10 streams at scale 1, a slow device
  coscan bench throughput --scale 0.1 --streams 4 --warm     all data in memory: only processor time counts"
)]
pub(super) struct Throughput {
    #[command(flatten)]
    device: DeviceArguments,
    /// coscan's memory for joins, aggregates and sorts, beside the pool and decoded columns; plain DataFusion has no
    /// limit
    #[arg(long, default_value = "8GiB", value_name = "BYTES", value_parser = parse_bytes)]
    operator_bytes: u64,
    /// TPC-H scale factor: 1 is six million rows of lineitem
    #[arg(long, default_value_t = 1.0, value_name = "N")]
    scale: f64,
    /// Where generated data is kept [default: the user's cache directory]
    #[arg(long, value_name = "DIRECTORY")]
    data: Option<PathBuf>,
    /// Streams that run at the same time
    #[arg(long, default_value_t = 10, value_name = "N")]
    streams: usize,
    /// The seed of orders and parameters
    #[arg(long, default_value_t = DEFAULT_SEED)]
    seed: u64,
    /// Engines to compare; answers must equal those of the first one
    #[arg(long, default_value = "datafusion,relevance", value_delimiter = ',')]
    engines: Vec<EngineKind>,
    /// Write the reports as JSON, one object per engine
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Throughput {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        if self.streams == 0 || self.engines.is_empty() {
            return Err("there is nothing to run; give at least one stream and one engine".into());
        }
        let bar = spinner();
        bar.set_message("making tables");
        let throughput = self.prepare().await?;
        let total = self.streams * TEMPLATES.len();
        let on_answer = |kind: EngineKind, answered: usize| {
            bar.set_message(format!("{answered} of {total} queries on {kind}"));
        };
        let run = throughput.run(&self.engines, &on_answer).await?;
        bar.finish_and_clear();
        println!("{}", report::table(&run.reports));
        if let Some(path) = &self.json {
            write_json(path, &run.reports).map_err(|error| unwritable(path, &error))?;
        }
        match run.differences.is_empty() {
            true => Ok(()),
            false => Err(run.differences.join("\n").into()),
        }
    }

    async fn prepare(&self) -> Result<throughput::Throughput, Failure> {
        let (directory, scale) = (data_directory(self.data.as_ref())?, self.scale);
        let make = move || tpch::tables(&directory, scale, &|_, _| {});
        let tables = tokio::task::spawn_blocking(make).await??;
        let mut table_bytes = 0;
        for (_, path) in &tables {
            table_bytes += std::fs::metadata(path)?.len();
        }
        Ok(throughput::Throughput {
            tables,
            scale_factor: scale,
            device: self.device.device(),
            pool_bytes: self.device.pool_bytes.unwrap_or((table_bytes / 4).max(POOL_BYTES_MIN)),
            decode_bytes: self.device.decode_bytes,
            operator_bytes: self.operator_bytes,
            table_options: self.device.table_options(),
            warm: self.device.warm,
            streams: self.streams,
            seed: self.seed,
        })
    }
}
