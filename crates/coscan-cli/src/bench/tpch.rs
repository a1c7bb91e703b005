//! Streams of queries on the tables of TPC-H, which are made where they are missing.

use std::path::PathBuf;

use clap::Args;
use coscan_bench::engines::EngineKind;
use coscan_bench::tpch;
use coscan_bench::tpch::setup::Setup;
use indicatif::ProgressBar;

use super::{DEFAULT_SEED, DeviceArguments};
use crate::Failure;
use crate::compare::spinner;
use crate::data::data_directory;

/// The tables, the engines, and streams on them.
#[derive(Debug, Args)]
pub(super) struct TpchArguments {
    #[command(flatten)]
    device: DeviceArguments,
    /// TPC-H scale factor: 1 is six million rows of lineitem
    #[arg(long, default_value_t = 1.0, value_name = "N")]
    scale: f64,
    /// Where generated data is kept [default: the user's cache directory]
    #[arg(long, value_name = "DIRECTORY")]
    data: Option<PathBuf>,
    /// Streams that run at the same time
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub(super) streams: usize,
    /// The seed of the queries
    #[arg(long, default_value_t = DEFAULT_SEED)]
    pub(super) seed: u64,
    /// Engines to compare; answers must equal those of the first one
    #[arg(long, default_value = "datafusion,relevance", value_delimiter = ',')]
    pub(super) engines: Vec<EngineKind>,
    /// Write the reports as JSON, one object per engine
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
}

impl TpchArguments {
    /// Makes the tables. `pool_bytes` is the default pool for the bytes of all tables.
    pub(super) async fn setup(
        &self,
        pool_bytes: impl FnOnce(u64) -> u64,
        operator_bytes: u64,
    ) -> Result<(Setup, ProgressBar), Failure> {
        let bar = spinner();
        bar.set_message("making tables");
        let (directory, scale_factor) = (data_directory(self.data.as_ref())?, self.scale);
        let make = move || tpch::tables(&directory, scale_factor, &|_, _| {});
        let tables = tokio::task::spawn_blocking(make).await??;
        let mut table_bytes = 0;
        for (_, path) in &tables {
            table_bytes += std::fs::metadata(path)?.len();
        }
        let device = &self.device;
        let setup = Setup {
            tables,
            scale_factor,
            device: device.device(),
            pool_bytes: device.pool_bytes.unwrap_or_else(|| pool_bytes(table_bytes)),
            decode_bytes: device.decode_bytes,
            operator_bytes,
            table_options: device.table_options(),
            warm: device.warm,
        };
        Ok((setup, bar))
    }
}

/// The error of engines whose answers differ.
pub(super) fn check(differences: &[String]) -> Result<(), Failure> {
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n").into()) }
}
