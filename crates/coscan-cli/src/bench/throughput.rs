//! `coscan bench throughput`: streams of all queries of TPC-H.

use clap::Args;
use coscan_bench::engines::EngineKind;
use coscan_bench::metrics::write_json;
use coscan_bench::report::throughput as report;
use coscan_bench::throughput;
use coscan_bench::tpch::queries::TEMPLATES;

use super::tpch::{TpchArguments, check};
use super::write;
use crate::Failure;
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
    mut_arg("seed", |seed| seed.help("The seed of orders and parameters")),
    after_help = "\
Examples:
  coscan bench throughput --bandwidth 200MB                  10 streams at scale 1, a slow device
  coscan bench throughput --scale 0.1 --streams 4 --warm     all data in memory: only processor time counts"
)]
pub(super) struct Throughput {
    #[command(flatten)]
    tpch: TpchArguments,
    /// coscan's memory for joins, aggregates and sorts, beside the pool and decoded columns; plain DataFusion has no
    /// limit
    #[arg(long, default_value = "8GiB", value_name = "BYTES", value_parser = parse_bytes)]
    operator_bytes: u64,
}

impl Throughput {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let (streams, engines) = (self.tpch.streams, &self.tpch.engines);
        if streams == 0 || engines.is_empty() {
            return Err("there is nothing to run; give at least one stream and one engine".into());
        }
        let pool_bytes = |table_bytes: u64| (table_bytes / 4).max(POOL_BYTES_MIN);
        let (setup, bar) = self.tpch.setup(pool_bytes, self.operator_bytes).await?;
        let throughput = throughput::Throughput { setup, streams, seed: self.tpch.seed };
        let total = streams * TEMPLATES.len();
        let on_answer = |kind: EngineKind, answered: usize| {
            bar.set_message(format!("{answered} of {total} queries on {kind}"));
        };
        let run = throughput.run(engines, &on_answer).await?;
        bar.finish_and_clear();
        println!("{}", report::table(&run.reports));
        write(&self.tpch.json, |path| write_json(path, &run.reports))?;
        check(&run.differences)
    }
}
