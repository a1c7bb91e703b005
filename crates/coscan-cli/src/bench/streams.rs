//! `coscan bench streams`: streams of queries at the same time.

use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use coscan_bench::engines::EngineKind;
use coscan_bench::experiment::Experiment;
use coscan_bench::metrics::write_json;
use coscan_bench::report::{rounds as report, table};
use coscan_bench::workload::{Kind, Percent};

use super::drawn_queries::DrawnQueries;
use super::{StreamArguments, write};
use crate::Failure;
use crate::compare::{EngineChoice, Runs, compare};
use crate::sizes::parse_bytes;

/// coscan's memory for operators where queries join tables.
const JOIN_BYTES: u64 = 8 << 30;

/// Streams of queries at the same time, on each engine: the table and pictures of `coscan demo` on your own data.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  coscan bench streams --table lineitem=lineitem.parquet --bandwidth 200MB --pool-bytes 200MB
  coscan bench streams --table lineitem=lineitem.parquet --orders orders.parquet --mix cs11-6.6 \\
    --engines datafusion,relevance --pools 20,40,60,80,100 --bandwidth 200MB
                                  joins and scans with pools for more and more of the data
  coscan bench streams --table lineitem=lineitem.parquet --engines datafusion,coscan --constants distinct
                                  what is left where queries compute nothing that another one computes
  coscan bench streams --table lineitem=lineitem.parquet --engines datafusion,coscan --warm --rounds 11
                                  differences smaller than those between two runs")]
pub(super) struct Streams {
    #[command(flatten)]
    common: StreamArguments,
    /// Streams that run at the same time
    #[arg(long, default_value_t = 16)]
    streams: usize,
    /// Queries of each stream, one after another
    #[arg(long, default_value_t = 4)]
    queries: usize,
    #[command(flatten)]
    drawn: DrawnQueries,
    /// TPC-H orders, for mixes that read it: a file, directory or pattern in the store of lineitem, in the same order
    #[arg(long, value_name = "URL")]
    orders: Option<String>,
    /// Run coscan with a pool of each of these percentages of the bytes that the queries touch
    #[arg(long, value_delimiter = ',', value_name = "PERCENT", conflicts_with = "pool_bytes")]
    pools: Vec<Percent>,
    /// coscan's memory for joins, aggregates and sorts, beside the pool and decoded columns [default: 8 GiB if the mix
    /// has joins, else 0]; plain DataFusion has no limit
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    operator_bytes: Option<u64>,
    /// Runs of all streams on each engine, which take turns in going first. With several, the table and the pictures are
    /// of the run with the median of the total times, and a second table has the medians and the ratios to the first
    /// engine, with 95 % intervals from six rounds on
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(..=1000))]
    rounds: usize,
    /// Write the reports as JSON, one object per engine; with several rounds, each with its runs
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Record coscan's decisions, to replay or simulate them; with several policies or pools each has its own file: FILE
    /// with the policy's name, and the percentage of the pool, before the extension. Of several rounds the first is recorded
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

impl Streams {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let (engines, rounds) = (self.contenders(), self.rounds);
        if rounds == 0 {
            return Err("there is nothing to run; give at least one round".into());
        }
        let runs = Runs { engines: &engines, rounds, record: self.record.as_deref() };
        let comparison = compare(self.experiment(), runs).await?;
        println!("{}", table::table(&comparison.reports));
        if rounds > 1 {
            println!("{}", report::table(&comparison.rounds));
        }
        write(&self.json, |path| match rounds {
            1 => write_json(path, &comparison.reports),
            _ => write_json(path, &comparison.rounds),
        })?;
        self.common.write_pictures(&comparison)?;
        comparison.check()
    }

    fn experiment(&self) -> Experiment {
        let group = self.drawn.group(self.streams, self.queries);
        let has_joins = self.drawn.mix.kinds().iter().copied().any(Kind::is_join);
        let operator_bytes = self.operator_bytes.unwrap_or(if has_joins { JOIN_BYTES } else { 0 });
        let orders = self.orders.clone();
        let constants = self.drawn.constants;
        Experiment { orders, constants, operator_bytes, ..self.common.experiment(vec![group]) }
    }

    /// The engines. coscan is listed once for each pool.
    fn contenders(&self) -> Vec<EngineChoice> {
        let of_engine = |&kind: &EngineKind| match kind.policy() {
            Some(_) if !self.pools.is_empty() => {
                self.pools.iter().map(|&pool| EngineChoice { kind, pool: Some(pool) }).collect()
            }
            _ => vec![EngineChoice::from(kind)],
        };
        self.common.engines.engines.iter().flat_map(of_engine).collect()
    }
}
