//! `coscan bench alone`: one query at a time.

use std::path::PathBuf;

use clap::Args;
use coscan_bench::alone::AloneReport;
use coscan_bench::engines::EngineKind;
use coscan_bench::experiment::Prepared;
use coscan_bench::metrics::write_json;
use coscan_bench::workload::{Percent, StreamGroup};

use super::{EngineArguments, check, write};
use crate::Failure;

/// One query at a time, on plain DataFusion and on coscan in turn. No query runs beside another; coscan keeps columns decoded
/// from one round to the next, as far as --decode-bytes allows.
///
/// Ratios are the medians of the rounds, with 95 % intervals from six rounds on. Without -e the table must be TPC-H lineitem: Q1, Q6, a count, two selective filters and the last five rows run.
#[derive(Debug, Args)]
#[command(
    mut_arg("table", |table| table.help("The table: its name in queries, and a file, directory, pattern or URL")),
    mut_arg("pool_bytes", |pool_bytes| pool_bytes.help("coscan's pool of stored pages [default: a quarter of the bytes \
        that the queries touch; with -e, of the table]")),
    after_help = "\
Examples:
  coscan bench alone --table lineitem=lineitem.parquet --warm
  coscan bench alone --table trips=trips/ --engines relevance -e 'SELECT max(distance) FROM trips'"
)]
pub(super) struct Alone {
    #[command(flatten)]
    common: EngineArguments,
    /// Runs of each query on each engine
    #[arg(long, default_value_t = 11, value_name = "N")]
    rounds: usize,
    /// Run this query instead, on any table; may be given several times
    #[arg(short = 'e', long = "execute", value_name = "SQL")]
    queries: Vec<String>,
    /// Write the reports as JSON, one object per query
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Alone {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let prepared = self.prepare().await?;
        let mut reports = Vec::new();
        println!(
            "{:<12} {:<30} {:>12} {:>12}  {:<23} ratio of CPU time",
            "engine", "query", "datafusion", "coscan", "ratio"
        );
        for &kind in self.common.engines.iter().filter(|&&kind| kind != EngineKind::DataFusion) {
            for report in prepared.alone(kind, self.rounds, &self.queries).await? {
                let (plain_ms, coscan_ms) = (report.datafusion_s * 1e3, report.coscan_s * 1e3);
                let AloneReport { query, answers_equal, .. } = &report;
                let (ratio, cpu_ratio) = (report.ratio.to_string(), report.cpu_ratio);
                let warning = if *answers_equal { "" } else { "  ANSWERS DIFFER" };
                let name = kind.to_string();
                println!(
                    "{name:<12} {query:<30} {plain_ms:>9.2} ms {coscan_ms:>9.2} ms  \
                     {ratio:<23} {cpu_ratio}{warning}"
                );
                reports.push(report);
            }
        }
        write(&self.json, |path| write_json(path, &reports))?;
        check(reports.iter().all(|report| report.answers_equal))
    }

    /// Prepares the experiment. Built-in queries need lineitem, those of the user do not.
    async fn prepare(&self) -> Result<Prepared, Failure> {
        if !self.queries.is_empty() {
            return self.common.experiment(Vec::new()).prepare_without_streams().await;
        }
        let group = StreamGroup::once("FS".parse()?, vec![Percent::WHOLE], 1, 1);
        self.common.experiment(vec![group]).prepare().await
    }
}
