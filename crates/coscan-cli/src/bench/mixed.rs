//! `coscan bench mixed`: long scans in any order and in order, short scans and lookups at the same time.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use coscan_bench::metrics::write_json;
use coscan_bench::report::mixed::{self, MixedRun, TOGETHER};
use coscan_bench::workload::{Mix, Percent, StreamGroup};

use super::{StreamArguments, write};
use crate::Failure;
use crate::compare::{Runs, prepare, run_engines, spinner};

/// Scans in order, scans in any order, short scans and lookups: all at the same time, then each kind alone.
///
/// Long scans run once; short scans and lookups repeat until the long scans have ended. Shows the latencies on each
/// engine, in seconds and as multiples of the time that the query takes alone, beside those without the other kinds of
/// streams. 0 streams leave a kind out.
#[derive(Debug, Args)]
#[command(
    mut_arg("engines", |engines| engines.default_value("datafusion,normal,relevance")),
    after_help = "\
Examples:
  coscan bench mixed --table lineitem=lineitem.parquet --bandwidth 200MB --pool-bytes 200MB
  coscan bench mixed --table lineitem=lineitem.parquet --in-order-streams 0 --streams 16
                                                   short scans under 16 long ones
  coscan bench streams --table lineitem=lineitem.parquet --mix FSO
                                                   queries in any order and in order in the same streams"
)]
pub(super) struct Mixed {
    #[command(flatten)]
    common: StreamArguments,
    /// Streams that read in order: the revenue of each order from some key on, ORDER BY l_orderkey LIMIT
    #[arg(long, default_value_t = 4, value_name = "N")]
    in_order_streams: usize,
    /// Streams that read in any order: TPC-H Q6 and Q1
    #[arg(long, default_value_t = 12, value_name = "N")]
    streams: usize,
    /// Streams of scans of 1 % in any order
    #[arg(long, default_value_t = 2, value_name = "N")]
    short_streams: usize,
    /// Streams that look up the rows of one key
    #[arg(long, default_value_t = 2, value_name = "N")]
    point_streams: usize,
    /// Queries of each long stream, one after another
    #[arg(long, default_value_t = 4, value_name = "N")]
    queries: usize,
    /// Queries that each stream of short scans or lookups draws; after the last it starts over
    #[arg(long, default_value_t = 64, value_name = "N")]
    short_queries: usize,
    /// Milliseconds from the end of a short query to the start of the next
    #[arg(long, default_value_t = 100, value_name = "N")]
    think_ms: u64,
    /// Kinds of scans in any order, long and short, each letter equally likely: F is TPC-H Q6 (fast), S is Q1 (slow)
    #[arg(long, default_value = "FS")]
    mix: Mix,
    /// Percentages of the table that long queries read, each equally likely
    #[arg(long, default_value = "10,50,100", value_delimiter = ',')]
    ranges: Vec<Percent>,
    /// Write the reports as JSON, one object per run
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Mixed {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let groups = self.groups()?;
        let bar = spinner();
        let experiment = self.common.experiment(groups.clone());
        let (prepared, standalone) = prepare(experiment, &bar).await?;
        let mut experiments = vec![(TOGETHER, prepared.clone())];
        if groups.len() > 1 {
            let alone = groups.iter().enumerate();
            experiments
                .extend(alone.map(|(index, group)| (group.name.as_str(), prepared.only(index))));
        }
        let (mut runs, mut comparisons) = (Vec::new(), Vec::new());
        for (run, prepared) in experiments {
            bar.suspend(|| eprintln!("{run}:"));
            let group = |stream: usize| groups[prepared.streams[stream].group].name.clone();
            let streams = (0..prepared.streams.len()).map(group).collect();
            let engines = self.common.contenders();
            let comparison = run_engines(prepared, &standalone, Runs::once(&engines), &bar).await?;
            let engines = comparison.reports.clone();
            runs.push(MixedRun { run: run.to_owned(), streams, engines });
            comparisons.push(comparison);
        }
        bar.finish_and_clear();
        println!("{}", mixed::table(&runs));
        write(&self.json, |path| write_json(path, &runs))?;
        // The pictures show the run of all streams.
        self.common.write_pictures(&comparisons[0])?;
        comparisons.iter().try_for_each(|comparison| comparison.check())
    }

    /// The streams that run at the same time. The long ones come first, so that the short ones start when all long ones
    /// run.
    fn groups(&self) -> Result<Vec<StreamGroup>, Failure> {
        let long = |name: &str, mix, streams| StreamGroup {
            name: name.to_owned(),
            ..StreamGroup::once(mix, self.ranges.clone(), streams, self.queries)
        };
        let short = |name: &str, mix, percent, streams| StreamGroup {
            name: name.to_owned(),
            think: Duration::from_millis(self.think_ms),
            repeats: true,
            ..StreamGroup::once(mix, vec![percent], streams, self.short_queries)
        };
        let mut groups = vec![
            long("in order", "O".parse()?, self.in_order_streams),
            long("any order", self.mix.clone(), self.streams),
            short("short", self.mix.clone(), "1".parse()?, self.short_streams),
            short("points", "P".parse()?, Percent::ONE_KEY, self.point_streams),
        ];
        groups.retain(|group| group.streams > 0);
        Ok(groups)
    }
}
