//! The configuration of a server: a TOML file, and flags of the same names.

mod limits;
mod log;
mod ring;
mod tables;
mod units;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::{fs, io};

use coscan_runtime::Options;
use serde::Deserialize;

pub use self::log::{Log, LogFormat};
pub use limits::Limits;
pub use ring::{Ring, RingMode};
pub use tables::TableLocation;
pub use workers::Workers;

/// The configuration of a server.
///
/// ```toml
/// users_file = "users.toml"
/// database = "/var/lib/coscan/main.db"
///
/// [tables]
/// orders = "s3://bucket/orders/"
/// lineitem = { location = "s3://bucket/lineitem/", replicas = ["s3://bucket/lineitem_by_shipdate/"] }
///
/// [listen]
/// postgres = "0.0.0.0:5432"
/// flight = "0.0.0.0:5434"
/// http = "0.0.0.0:8443"
///
/// [tls]
/// certificate = "server.crt"
/// key = "server.key"
///
/// [memory]
/// bytes = "16GiB"
///
/// [limits]
/// queries_running = 32
/// query_time_max = "10min"
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Tables: a file, directory, pattern or URL of Parquet files, or the directory of a Delta table, under each name; and
    /// replicas.
    pub tables: BTreeMap<String, TableLocation>,
    /// The directory of a database, whose tables users with the right to may change. It is created if there is none.
    pub database: Option<PathBuf>,
    /// The addresses at which clients connect.
    pub listen: Listen,
    /// The certificate. Without one, the server listens at loopback addresses only.
    pub tls: Option<Tls>,
    /// The file of users, written by `coscan user NAME`.
    pub users_file: Option<PathBuf>,
    /// Whether the server runs without users and passwords, so that everyone on this machine may read all tables. This
    /// is possible at loopback addresses only.
    pub insecure: bool,
    /// Settings of HTTP.
    pub http: Http,
    /// The log.
    pub log: Log,
    /// Memory settings.
    pub memory: Memory,
    /// Limits on clients.
    pub limits: Limits,
    /// Other servers with which this one shares what it reads.
    pub ring: Option<Ring>,
    /// Workers, among which queries are divided.
    pub workers: Option<Workers>,
}

/// The addresses to listen at, one for each protocol. At least one is required.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Listen {
    /// The address of the PostgreSQL protocol.
    pub postgres: Option<SocketAddr>,
    /// The address of Arrow Flight SQL.
    pub flight: Option<SocketAddr>,
    /// The address of the dashboard and metrics, over HTTP.
    pub http: Option<SocketAddr>,
}

impl Listen {
    /// All addresses.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        [self.postgres, self.flight, self.http].into_iter().flatten()
    }
}

/// Settings of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    /// Whether `/metrics` needs no login from this machine.
    pub local_metrics: bool,
    /// Whether pages of this machine, such as notebooks, may show the dashboard in a frame.
    pub local_frames: bool,
}

/// A certificate and its key, both as PEM files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The certificate, followed by its chain.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
}

/// Memory of the server, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// The memory for pages, decoded columns, footers and operators. Default: half of the machine's memory.
    #[serde(deserialize_with = "units::bytes_option")]
    pub bytes: Option<u64>,
    /// The maximum part of it for stored pages. Default: half of `bytes`.
    #[serde(deserialize_with = "units::bytes_option")]
    pub pool_bytes: Option<u64>,
}

impl Memory {
    /// The options of a buffer manager with this memory.
    #[must_use]
    pub fn options(&self) -> Options {
        let mut options = self.bytes.map_or_else(Options::default, Options::with_memory_bytes);
        if let Some(pool_bytes) = self.pool_bytes {
            options.pool_bytes = pool_bytes;
            options.pool_bytes_min = options.pool_bytes_min.min(pool_bytes);
            options.decode_bytes =
                options.decode_bytes.min(options.memory_bytes.saturating_sub(pool_bytes));
        }
        options
    }
}

/// The reason why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is not in the required form.
    #[error("{path}: {source}", path = path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// The place and the reason.
        source: Box<toml::de::Error>,
    },
    /// The settings do not fit together. There is one sentence for each problem.
    #[error("{}", .0.join("\n"))]
    Wrong(Vec<String>),
}

impl Config {
    /// Reads a configuration file. Relative paths in it start at its directory.
    ///
    /// # Errors
    /// If it cannot be read, or is not in the required form. Whether the settings fit together is
    /// [checked](crate::check) later.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let mut config: Self = toml::from_str(&text).map_err(|source| ConfigError::Toml {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let paths = config.tls.iter_mut().flat_map(|tls| [&mut tls.certificate, &mut tls.key]);
        for path in paths.chain(&mut config.users_file).chain(&mut config.database) {
            *path = directory.join(&*path);
        }
        if let Some(ring) = &mut config.ring {
            ring.resolve_paths(directory);
        }
        if let Some(workers) = &mut config.workers {
            workers.resolve_paths(directory);
        }
        Ok(config)
    }

    /// Describes invalid settings, one sentence for each.
    pub(crate) fn errors(&self) -> Vec<String> {
        let mut errors = self.limits.errors();
        errors.extend(self.listen_errors());
        errors.extend(self.table_errors());
        errors.extend(self.ring.iter().flat_map(Ring::errors));
        errors.extend(self.workers.iter().flat_map(Workers::errors));
        if let (Some(pool), Some(bytes)) = (self.memory.pool_bytes, self.memory.bytes)
            && pool > bytes
        {
            errors.push("memory.pool_bytes is more than memory.bytes".to_owned());
        }
        errors
    }

    fn listen_errors(&self) -> Vec<String> {
        let addresses: Vec<_> = self.listen.addresses().collect();
        let distinct: BTreeSet<_> = addresses.iter().filter(|at| at.port() != 0).collect();
        let fixed = addresses.iter().filter(|at| at.port() != 0).count();
        let mut errors = Vec::new();
        let is_worker = self.workers.as_ref().is_some_and(|workers| workers.listen.is_some());
        if addresses.is_empty() && !is_worker {
            errors.push(
                "there is no address to listen at; set listen.postgres, for example 127.0.0.1:5432"
                    .to_owned(),
            );
        }
        if self.listen.flight.is_some() && !cfg!(feature = "flight-sql") {
            errors.push("listen.flight is set, and this program has no Flight SQL".to_owned());
        }
        if distinct.len() < fixed {
            errors.push("two protocols listen at the same address".to_owned());
        }
        errors
    }

    fn table_errors(&self) -> Vec<String> {
        let is_wrong =
            |(name, table): &(&String, &TableLocation)| name.is_empty() || table.is_incomplete();
        let wrong = self.tables.iter().filter(is_wrong);
        wrong.map(|(name, _)| format!("tables.{name:?} has no name or no location")).collect()
    }

    /// Whether an address can be reached from this machine only.
    pub(crate) fn is_loopback(address: SocketAddr) -> bool {
        match address.ip() {
            IpAddr::V4(ip) => ip.is_loopback(),
            IpAddr::V6(ip) => ip.is_loopback(),
        }
    }
}
