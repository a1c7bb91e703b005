//! Generated tables to serve.

use std::path::PathBuf;

use clap::Args;
use coscan_bench::tpch;
use coscan_server::config::Config;

use crate::Failure;
use crate::data::data_directory;

/// The default address of a demonstration. Its port is not 5432, which PostgreSQL may use.
const POSTGRES: &str = "127.0.0.1:5433";
const FLIGHT: &str = "127.0.0.1:5434";
const HTTP: &str = "127.0.0.1:5480";

#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Serve generated TPC-H tables without passwords, unless --users-file is given. Without any address, at
    /// 127.0.0.1:5433 (PostgreSQL), 127.0.0.1:5434 (Flight SQL) and 127.0.0.1:5480 (browsers)
    #[arg(long, help_heading = "Demonstration")]
    demo: bool,
    /// TPC-H scale factor: 1 is six million rows of lineitem
    #[arg(
        long,
        default_value_t = 1.0,
        value_name = "N",
        requires = "demo",
        help_heading = "Demonstration"
    )]
    scale: f64,
    /// Where generated data is kept [default: the user's cache directory]
    #[arg(long, value_name = "DIRECTORY", requires = "demo", help_heading = "Demonstration")]
    data: Option<PathBuf>,
}

impl Demo {
    /// Makes the tables, unless an earlier run left them, and adds them.
    pub(super) async fn apply_to(&self, config: &mut Config) -> Result<(), Failure> {
        if !self.demo {
            return Ok(());
        }
        let (directory, scale) = (data_directory(self.data.as_ref())?, self.scale);
        let make = move || {
            if !tpch::lineitem_path(&directory, scale).exists() {
                eprintln!(
                    "coscan: generating TPC-H tables (scale {scale}) in {}",
                    directory.display()
                );
            }
            let lineitem = tpch::lineitem(&directory, scale, &|_, _| {})?;
            let mut tables = tpch::others(&directory, scale)?;
            tables.push(("lineitem", lineitem));
            Ok::<_, tpch::TpchError>(tables)
        };
        for (name, path) in tokio::task::spawn_blocking(make).await?? {
            config
                .tables
                .entry(name.to_owned())
                .or_insert_with(|| path.display().to_string().into());
        }
        if config.listen.addresses().next().is_none() {
            config.listen.postgres = Some(POSTGRES.parse()?);
            if cfg!(feature = "flight-sql") {
                config.listen.flight = Some(FLIGHT.parse()?);
            }
            config.listen.http = Some(HTTP.parse()?);
        }
        config.insecure |= config.users_file.is_none();
        Ok(())
    }
}
