//! `coscan bench dashboard`: panels that are refreshed while files are added.

use std::path::PathBuf;

use clap::Args;
use coscan_bench::dashboard::{Dashboard, PANELS};
use coscan_bench::engines::EngineKind;
use coscan_bench::metrics::write_json;
use coscan_bench::report::dashboard as report;
use coscan_bench::tpch::{DAYS_MAX, lineitem_by_day};

use super::tpch::check;
use super::{DeviceArguments, write};
use crate::Failure;
use crate::compare::spinner;
use crate::data::{Removed, data_directory};
use crate::sizes::parse_bytes;

/// The minimum default pool, which holds a few chunks of all columns.
const POOL_BYTES_MIN: u64 = 16 << 20;

/// The panels of a dashboard over a directory with a file for each day, refreshed all at once while files are added.
///
/// Makes files of TPC-H lineitem (kept for the next run). Before each refresh but the first the file of one more day is added.
/// The panels are aggregations over all files, whose text does not change. Shows the time of the first refresh and the median
/// of the later ones, and what was read, beside the columns of the new file, which any engine has to read. Plain DataFusion
/// lists the directory anew at each refresh, as coscan does; listing takes no time of the device.
#[derive(Debug, Args)]
#[command(
    mut_arg("pool_bytes", |pool_bytes| pool_bytes.help("coscan's pool of stored pages [default: a quarter of all files, \
        at least 16 MiB]")),
    mut_arg("bandwidth", |bandwidth| bandwidth.default_value("50MB").help("Bandwidth of the device, in bytes per second")),
    mut_arg("latency_ms", |latency_ms| latency_ms.default_value("30")),
    mut_arg("warm", |warm| warm.help("Read local files through the operating system's cache")),
    after_help = "\
Examples:
  coscan bench dashboard                                           14 panels over 40 files of 25 MB, 10 refreshes
  coscan bench dashboard --files 10 --file-bytes 2MB --refreshes 4     in half a minute
  coscan bench dashboard --engines datafusion,relevance,coscan-running,coscan
                                                                   what reads, running results and kept results save"
)]
pub(super) struct DashboardCommand {
    #[command(flatten)]
    device: DeviceArguments,
    /// Panels, which are computed at the same time
    #[arg(long, default_value_t = PANELS.len(), value_name = "N")]
    panels: usize,
    /// Refreshes of all panels
    #[arg(long, default_value_t = 10, value_name = "N")]
    refreshes: usize,
    /// Files at the first refresh
    #[arg(long, default_value_t = 40, value_name = "N")]
    files: usize,
    /// About the size of each file
    #[arg(long, default_value = "25MB", value_name = "BYTES", value_parser = parse_bytes)]
    file_bytes: u64,
    /// Where generated data is kept [default: the user's cache directory]
    #[arg(long, value_name = "DIRECTORY")]
    data: Option<PathBuf>,
    /// Engines to compare; answers must equal those of the first one
    #[arg(long, default_value = "datafusion,relevance,coscan", value_delimiter = ',')]
    engines: Vec<EngineKind>,
    /// Write the reports as JSON, one object per engine
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl DashboardCommand {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let (refreshes, engines) = (self.refreshes, &self.engines);
        if refreshes == 0 || self.files == 0 || engines.is_empty() {
            return Err(
                "there is nothing to run; give at least one refresh, file and engine".into()
            );
        }
        if !(1..=PANELS.len()).contains(&self.panels) {
            return Err(
                format!("there are {} panels; give --panels from 1 to that", PANELS.len()).into()
            );
        }
        let days = self.files.saturating_add(refreshes - 1);
        if days > DAYS_MAX {
            let added = refreshes - 1;
            return Err(
                format!("give at most {DAYS_MAX} files, with the {added} that are added").into()
            );
        }
        let bar = spinner();
        let data = data_directory(self.data.as_ref())?;
        let (directory, file_bytes, making) = (data.clone(), self.file_bytes, bar.clone());
        let make = move || {
            let on_file =
                |made: usize| making.set_message(format!("making files, {made} of {days}"));
            lineitem_by_day(&directory, days, file_bytes, &on_file)
        };
        let files = tokio::task::spawn_blocking(make).await??;
        let mut table_bytes = 0;
        for file in &files {
            table_bytes += std::fs::metadata(file)?.len();
        }
        let directory = data.join(format!("dashboard-{}", std::process::id()));
        let _removed = Removed(directory.clone());
        let device = &self.device;
        let dashboard = Dashboard {
            files,
            refreshes,
            directory,
            panels: PANELS[..self.panels].to_vec(),
            device: device.device(),
            pool_bytes: device.pool_bytes.unwrap_or((table_bytes / 4).max(POOL_BYTES_MIN)),
            decode_bytes: device.decode_bytes,
            table_options: device.table_options(),
        };
        let on_refresh = |refresh: usize, engine: EngineKind| {
            bar.set_message(format!("refresh {} of {refreshes} on {engine}", refresh + 1));
        };
        let run = dashboard.run(engines, &on_refresh).await?;
        bar.finish_and_clear();
        println!("{}", report::table(&run));
        write(&self.json, |path| write_json(path, &run.compared.reports))?;
        check(&run.compared.differences)
    }
}
