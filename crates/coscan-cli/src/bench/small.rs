//! `coscan bench small`: streams of small queries on small tables.

use std::path::PathBuf;

use clap::Args;
use coscan_bench::engines::EngineKind;
use coscan_bench::metrics::write_json;
use coscan_bench::report::small as report;
use coscan_bench::small;
use coscan_bench::tpch;

use super::{DeviceArguments, unwritable};
use crate::Failure;
use crate::compare::spinner;
use crate::data::data_directory;

/// Streams of small queries, joins among them, on small tables: the cost of coscan where there is little to gain.
///
/// Makes TPC-H tables (kept for the next run), draws lookups, filters, aggregates, top-k queries and joins, and runs
/// them on each engine in turn, for several rounds. Shows the median, the 90th and the 99th percentile of query times
/// and the total time, beside those of the first engine.
#[derive(Debug, Args)]
#[command(
    mut_arg("pool_bytes", |pool_bytes| pool_bytes.help("coscan's pool of stored pages [default: all tables]")),
    mut_arg("warm", |warm| warm.help("Read local files through the operating system's cache, and run a query of each \
        kind on each engine before measuring")),
    after_help = "\
Examples:
  coscan bench small --warm                        all data in memory: only processor time counts
  coscan bench small --bandwidth 200MB             a slow device; each engine starts with nothing in memory
  coscan bench small --warm --streams 1            one query after another"
)]
pub(super) struct Small {
    #[command(flatten)]
    device: DeviceArguments,
    /// TPC-H scale factor: at 0.15, lineitem has about 30 MB
    #[arg(long, default_value_t = 0.15, value_name = "N")]
    scale: f64,
    /// Where generated data is kept [default: the user's cache directory]
    #[arg(long, value_name = "DIRECTORY")]
    data: Option<PathBuf>,
    /// Streams that run at the same time
    #[arg(long, default_value_t = 12, value_name = "N")]
    streams: usize,
    /// Queries of each stream in a round, one after another
    #[arg(long, default_value_t = 20, value_name = "N")]
    queries: usize,
    /// Runs of all streams on each engine
    #[arg(long, default_value_t = 11, value_name = "N")]
    rounds: usize,
    /// The seed of the queries
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Engines to compare; times are shown beside those of the first one, and answers must equal its answers
    #[arg(long, default_value = "datafusion,relevance", value_delimiter = ',')]
    engines: Vec<EngineKind>,
    /// Write the reports as JSON, one object per engine
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Small {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        if self.streams == 0 || self.queries == 0 || self.rounds == 0 || self.engines.is_empty() {
            return Err(
                "there is nothing to run; give at least one stream, query, round and engine".into(),
            );
        }
        let bar = spinner();
        bar.set_message("making tables");
        let small = self.prepare().await?;
        let on_run = |round: usize, kind: EngineKind| {
            bar.set_message(format!("round {} of {} on {kind}", round + 1, self.rounds));
        };
        let run = small.run(&self.engines, &on_run).await?;
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

    async fn prepare(&self) -> Result<small::Small, Failure> {
        let (directory, scale) = (data_directory(self.data.as_ref())?, self.scale);
        let make = move || tpch::tables(&directory, scale, &|_, _| {});
        let tables = tokio::task::spawn_blocking(make).await??;
        let mut table_bytes = 0;
        for (_, path) in &tables {
            table_bytes += std::fs::metadata(path)?.len();
        }
        Ok(small::Small {
            tables,
            scale_factor: scale,
            device: self.device.device(),
            pool_bytes: self.device.pool_bytes.unwrap_or(table_bytes),
            decode_bytes: self.device.decode_bytes,
            table_options: self.device.table_options(),
            warm: self.device.warm,
            streams: self.streams,
            queries_per_stream: self.queries,
            rounds: self.rounds,
            seed: self.seed,
        })
    }
}
