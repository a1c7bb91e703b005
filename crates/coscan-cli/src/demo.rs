//! `coscan demo`: coscan beside plain DataFusion, on generated data.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use coscan_bench::engines::{Device, EngineKind, Source};
use coscan_bench::experiment::{Experiment, PoolSize};
use coscan_bench::report::{html, table};
use coscan_bench::workload::{ConstantChoice, StreamGroup};
use coscan_runtime::storage::stores::Limits;
use coscan_runtime::storage::table::FileOptions;

use crate::compare::{EngineChoice, Runs, compare, describe, write_pictures};
use crate::data::{data_directory, make_lineitem};
use crate::signals::interrupted;
use crate::sizes::parse_bytes;
use crate::{Exit, Failure};

/// Show the gain of sharing scans: 16 streams of queries on a slow device, with and without coscan.
///
/// Makes TPC-H lineitem (kept for the next run), runs 16 streams of 4 queries on plain DataFusion and on coscan under
/// each policy, checks that all answers are equal, prints the table of Cooperative Scans (VLDB 2007), Table 2, and
/// writes a page with pictures.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// TPC-H scale factor: 1 is six million rows
    #[arg(long, default_value_t = 1.0, value_name = "N")]
    scale: f64,
    /// Bytes per second of the slow device
    #[arg(long, default_value = "50MB", value_name = "BYTES", value_parser = parse_bytes)]
    bandwidth: u64,
    /// The seed of the queries
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Where generated data is kept [default: the user's cache directory]
    #[arg(long, value_name = "DIRECTORY")]
    data: Option<PathBuf>,
    /// Write the page with pictures to this file
    #[arg(long, default_value = "coscan-demo.html", value_name = "FILE")]
    html: PathBuf,
    /// Also write each picture as an SVG file
    #[arg(long, value_name = "DIRECTORY")]
    svg: Option<PathBuf>,
}

impl Demo {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        tokio::select! {
            result = self.compare() => result.map(|()| Exit::Success),
            () = interrupted() => Ok(Exit::Interrupted),
        }
    }

    async fn compare(&self) -> Result<(), Failure> {
        let lineitem = make_lineitem(data_directory(self.data.as_ref())?, self.scale).await?;
        let percents = ["1", "10", "50", "100"].into_iter().map(str::parse);
        let percents = percents.collect::<Result<_, _>>()?;
        let experiment = Experiment {
            source: Source {
                location: lineitem.display().to_string(),
                device: Device {
                    limits: Limits {
                        bytes_per_second: Some(self.bandwidth),
                        latency: Duration::ZERO,
                    },
                    system_cache: false,
                },
            },
            table: "lineitem".to_owned(),
            orders: None,
            constants: ConstantChoice::Equal,
            groups: vec![StreamGroup::once("FS".parse()?, percents, 16, 4)],
            seed: self.seed,
            stagger: None,
            pool: PoolSize::PartOfTouched(0.25),
            decode_bytes: 256 << 20,
            operator_bytes: 0,
            table_options: FileOptions::default(),
            warm: false,
        };
        eprintln!("16 streams of 4 queries on lineitem, scale {}:", self.scale);
        let engines: Vec<_> = EngineKind::usual().into_iter().map(EngineChoice::from).collect();
        let comparison = compare(experiment, Runs::once(&engines)).await?;
        println!("{}", table::table(&comparison.reports));
        html::write_html(&self.html, &describe(&comparison.prepared), &comparison.reports)
            .map_err(|error| format!("cannot write {}: {error}", self.html.display()))?;
        println!("Pictures: {}", self.html.display());
        if let Some(directory) = &self.svg {
            write_pictures(directory, &comparison)?;
        }
        comparison.check()
    }
}
