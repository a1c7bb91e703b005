//! `coscan bench small`: streams of small queries on small tables.

use clap::Args;
use coscan_bench::metrics::write_json;
use coscan_bench::report::small as report;
use coscan_bench::small;

use super::tpch::{TpchArguments, check};
use super::write;
use crate::Failure;

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
    mut_arg("scale", |scale| scale.default_value("0.15").help("TPC-H scale factor: at 0.15, lineitem has about 30 MB")),
    mut_arg("streams", |streams| streams.default_value("12")),
    mut_arg("engines", |engines| engines.help("Engines to compare; times are shown beside those of the first one, and \
        answers must equal its answers")),
    after_help = "\
Examples:
  coscan bench small --warm                        all data in memory: only processor time counts
  coscan bench small --bandwidth 200MB             a slow device; each engine starts with nothing in memory
  coscan bench small --warm --streams 1            one query after another"
)]
pub(super) struct Small {
    #[command(flatten)]
    tpch: TpchArguments,
    /// Queries of each stream in a round, one after another
    #[arg(long, default_value_t = 20, value_name = "N")]
    queries: usize,
    /// Runs of all streams on each engine
    #[arg(long, default_value_t = 11, value_name = "N")]
    rounds: usize,
}

impl Small {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let (streams, engines) = (self.tpch.streams, &self.tpch.engines);
        if streams == 0 || self.queries == 0 || self.rounds == 0 || engines.is_empty() {
            return Err(
                "there is nothing to run; give at least one stream, query, round and engine".into(),
            );
        }
        let (setup, bar) = self.tpch.setup(|table_bytes| table_bytes, 0).await?;
        let (queries_per_stream, rounds, seed) = (self.queries, self.rounds, self.tpch.seed);
        let small = small::Small { setup, streams, queries_per_stream, rounds, seed };
        let on_run = |round: usize, engine: &str| {
            bar.set_message(format!("round {} of {rounds} on {engine}", round + 1));
        };
        let run = small.run(engines, &on_run).await?;
        bar.finish_and_clear();
        println!("{}", report::table(&run.reports));
        write(&self.tpch.json, |path| write_json(path, &run.reports))?;
        check(&run.differences)
    }
}
