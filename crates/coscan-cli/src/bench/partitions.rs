//! `coscan bench partitions`: one scan on several numbers of partitions.

use std::path::PathBuf;

use clap::Args;
use coscan_bench::experiment::{Experiment, PoolSize};
use coscan_bench::metrics::write_json;
use coscan_bench::report::partitions as report;
use coscan_bench::workload::{Percent, StreamGroup};

use super::{EngineArguments, check, write};
use crate::Failure;
use crate::compare::spinner;

/// One scan on 1, 2, 4 and 8 partitions: how much faster it becomes, and whether every partition has work until the end.
///
/// Runs TPC-H Q1 and Q6 over the whole table with everything in memory, on each engine in turn, and shows the median time,
/// the speed relative to the first number of partitions, how long the most idle partition had nothing to do, in percent
/// of the scan's time, and the fewest and the most chunks that a partition read. A partition is idle before its first
/// batch is asked for, while it waits for data, and after its last row; while it waits for a processor it is not. No more
/// partitions than cores can work at the same time.
#[derive(Debug, Args)]
#[command(
    mut_arg("engines", |engines| engines.default_value("datafusion,relevance")),
    mut_arg("pool_bytes", |pool_bytes| pool_bytes.help("coscan's pool of stored pages [default: the bytes that the \
        queries touch]")),
    mut_arg("warm", |warm| warm.hide(true)),
    after_help = "\
Examples:
  coscan bench partitions --table lineitem=lineitem.parquet
  coscan bench partitions --table lineitem=lineitem.parquet --partitions 1,2 --rounds 11 --json partitions.json"
)]
pub(super) struct Partitions {
    #[command(flatten)]
    common: EngineArguments,
    /// Numbers of partitions; speeds are relative to the first
    #[arg(long, default_value = "1,2,4,8", value_delimiter = ',', value_name = "N")]
    partitions: Vec<usize>,
    /// Runs of each query with each number of partitions on each engine
    #[arg(long, default_value_t = 5, value_name = "N")]
    rounds: usize,
    /// Write the reports as JSON, one object per query, number of partitions and engine
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Partitions {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        if self.partitions.is_empty() || self.partitions.contains(&0) || self.rounds == 0 {
            return Err(
                "there is nothing to run; give numbers of partitions and rounds from 1".into()
            );
        }
        let bar = spinner();
        let prepared = self.experiment()?.prepare().await?;
        let on_run = |query: &str, partitions: usize| {
            bar.set_message(format!("{query} on {partitions} partitions"));
        };
        let engines = &self.common.engines;
        let reports = prepared.partitions(engines, &self.partitions, self.rounds, &on_run).await?;
        bar.finish_and_clear();
        println!("{}", report::table(&reports));
        write(&self.json, |path| write_json(path, &reports))?;
        check(reports.iter().all(|report| report.answers_equal))
    }

    /// The experiment with everything in memory, in the system's cache and, by default, in the pool.
    fn experiment(&self) -> Result<Experiment, Failure> {
        let group = StreamGroup::once("FS".parse()?, vec![Percent::WHOLE], 1, 2);
        let mut experiment = self.common.experiment(vec![group]);
        experiment.warm = true;
        experiment.source.device.system_cache = true;
        experiment.pool =
            self.common.device.pool_bytes.map_or(PoolSize::PartOfTouched(1.0), PoolSize::Bytes);
        Ok(experiment)
    }
}
