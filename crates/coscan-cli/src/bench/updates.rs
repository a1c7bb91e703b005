//! `coscan bench updates`: tables that change.

use std::path::PathBuf;

use clap::Args;
use coscan_bench::metrics::write_json;
use coscan_bench::tpch;
use coscan_bench::updates::{Section, Updates};

use super::write;
use crate::Failure;
use crate::compare::spinner;
use crate::data::{Removed, data_directory, make_lineitem};
use crate::sizes::parse_bytes;

/// Tables that change, beside the same tables at rest.
///
/// Makes a database of its own in a temporary directory, and measures: the processor time of TPC-H Q1 and Q6 over a table of
/// which parts of the rows are changed; statements in a second, each durable before the next; a checkpoint; opening the database
/// again; streams of queries while their table is updated, appended to and checkpointed; and the throughput test of TPC-H
/// beside its refresh functions RF1 and RF2. Each answer of the streams is checked against its snapshot. Measures are printed
/// as they come.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  coscan bench updates --scale 0.1                             in a minute
  coscan bench updates --bandwidth 200MB --json updates.json   a slow device for the streams
  coscan bench updates --only streams,refresh                  parts of it: queries, checkpoint, statements, streams, refresh")]
pub(super) struct UpdatesCommand {
    /// TPC-H scale factor: 1 is six million rows of lineitem
    #[arg(long, default_value_t = 1.0, value_name = "N")]
    scale: f64,
    /// Where generated data is kept [default: the user's cache directory]
    #[arg(long, value_name = "DIRECTORY")]
    data: Option<PathBuf>,
    /// Memory of coscan
    #[arg(long, default_value = "4GiB", value_name = "BYTES", value_parser = parse_bytes)]
    memory_bytes: u64,
    /// Runs of each query
    #[arg(long, default_value_t = 7, value_name = "N")]
    rounds: usize,
    /// How long each kind of statement runs, in seconds
    #[arg(long, default_value_t = 3.0, value_name = "N")]
    seconds: f64,
    /// Streams that run beside changes
    #[arg(long, default_value_t = 16, value_name = "N")]
    streams: usize,
    /// Queries of each stream
    #[arg(long, default_value_t = 4, value_name = "N")]
    queries: usize,
    /// Bandwidth of the device for the streams, in bytes per second [default: no limit]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    bandwidth: Option<u64>,
    /// What is measured: queries, checkpoint, statements, streams, refresh [default: all]
    #[arg(long, value_name = "PART,…", value_delimiter = ',')]
    only: Vec<Section>,
    /// Write the measures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl UpdatesCommand {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        if self.rounds == 0 || self.streams == 0 || self.queries == 0 {
            return Err("there is nothing to run; give at least one round, stream and query".into());
        }
        let data = data_directory(self.data.as_ref())?;
        make_lineitem(data.clone(), self.scale).await?;
        let (directory, scale_factor) = (data.clone(), self.scale);
        let tables = move || tpch::tables(&directory, scale_factor, &|_, _| {});
        let tables = tokio::task::spawn_blocking(tables).await??;
        let directory = data.join(format!("updates-{}.db", std::process::id()));
        let sections = match &self.only[..] {
            [] => Section::ALL.into(),
            only => only.iter().copied().collect(),
        };
        let updates = Updates {
            sections,
            scale_factor,
            tables,
            directory: directory.clone(),
            memory_bytes: self.memory_bytes,
            rounds: self.rounds,
            seconds: self.seconds,
            streams: self.streams,
            queries: self.queries,
            bandwidth: self.bandwidth,
        };
        let _removed = Removed(directory);
        let bar = spinner();
        let step = |step: &str| bar.set_message(step.to_owned());
        let report = updates.run(&step, &|measures| bar.suspend(|| println!("{measures}\n"))).await;
        bar.finish_and_clear();
        let report = report?;
        write(&self.json, |path| write_json(path, std::slice::from_ref(&report)))
    }
}
