//! Flags with the names of the settings in the configuration file.
#![allow(rustdoc::broken_intra_doc_links, reason = "brackets are names of settings, for --help")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use coscan_runtime::units::parse_duration;
use coscan_server::config::{Config, LogFormat, Ring, RingMode, TableLocation, Tls};

use super::worker_flags::WorkerFlags;
use crate::sizes::parse_bytes;
use crate::table_argument::parse_table;

#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// A table: its name, and a file, directory, pattern or URL of Parquet files, or the directory of a Delta Lake table.
    /// May be given several times [tables.NAME]
    #[arg(short, long = "table", value_name = "NAME=URL", value_parser = parse_table)]
    tables: Vec<(String, String)>,
    /// A replica of a table: the name of the table, and other files with the same rows, in another order or other row
    /// groups. Each scan reads the copy that costs least. May be given several times [tables.NAME.replicas]
    #[arg(long = "replica", value_name = "NAME=URL", value_parser = parse_table)]
    replicas: Vec<(String, String)>,
    /// The directory of a database: users change its tables as `writes` in the users file says. Created if there is none
    /// [database]
    #[arg(long, value_name = "DIR")]
    database: Option<PathBuf>,
    /// Where clients of the PostgreSQL protocol connect [listen.postgres]
    #[arg(long, value_name = "ADDRESS")]
    listen_postgres: Option<SocketAddr>,
    /// Where clients of Arrow Flight SQL connect, such as ADBC and JDBC drivers [listen.flight]
    #[arg(long, value_name = "ADDRESS")]
    listen_flight: Option<SocketAddr>,
    /// Where browsers see the scheduler at work, and Prometheus scrapes /metrics [listen.http]
    #[arg(long, value_name = "ADDRESS")]
    listen_http: Option<SocketAddr>,
    /// Serve /metrics without a login to this machine [http.local_metrics]
    #[arg(long)]
    local_metrics: bool,
    /// Let pages of this machine, such as notebooks, show the dashboard in a frame [http.local_frames]
    #[arg(long)]
    local_frames: bool,
    /// The file of users; `coscan user NAME` makes its entries [users_file]
    #[arg(long, value_name = "FILE")]
    users_file: Option<PathBuf>,
    /// No users and passwords: everyone on this machine reads all tables. On loopback addresses only [insecure]
    #[arg(long)]
    insecure: bool,
    /// The certificate, as a PEM file; needed where other machines can connect [tls.certificate]
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// Its private key, as a PEM file [tls.key]
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// The level of the log: off, error, warn, info, debug or trace; by default info [log.level]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<log::LevelFilter>,
    /// The format of the log: text or json; by default text [log.format]
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    log_format: Option<LogFormat>,
    /// Memory for pages, decoded columns, footers and operators; by default half of the machine's [memory.bytes]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory_bytes: Option<u64>,
    /// The most of it for stored pages; by default half [memory.pool_bytes]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pool_bytes: Option<u64>,
    /// Queries that run at once; by default 8 for each core [limits.queries_running]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    queries_running: Option<usize>,
    /// Queries that wait; more are refused; by default 1000 [limits.queries_waiting]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    queries_waiting: Option<usize>,
    /// How long a query waits before it is refused; by default 5min [limits.wait_max]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    wait_max: Option<Duration>,
    /// How long it may take to parse and to plan a statement; by default 1min [limits.planning_time_max]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    planning_time_max: Option<Duration>,
    /// How long a query may run; by default without limit [limits.query_time_max]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    query_time_max: Option<Duration>,
    /// Memory for the operators of a query; by default half of all memory [limits.query_memory_max]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = "Limits")]
    query_memory_max: Option<u64>,
    /// Memory for the operators of all queries of a user; by default three quarters of all memory [limits.user_memory_max]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = "Limits")]
    user_memory_max: Option<u64>,
    /// How long a client may take no bytes of its result; by default 5min [limits.result_stall_max]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    result_stall_max: Option<Duration>,
    /// How long a PostgreSQL connection may be idle; by default without limit [limits.idle_max]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    idle_max: Option<Duration>,
    /// Connections at once of users who have logged in; by default 1100 [limits.connections_max]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    connections_max: Option<usize>,
    /// How long a client may take to log in; by default 10s [limits.login_max]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    login_max: Option<Duration>,
    /// How long a token of Flight SQL stays valid while it is not used; by default 12h [limits.token_lifetime]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    token_lifetime: Option<Duration>,
    /// The longest message of a client, and so the longest statement; by default 1MiB [limits.message_bytes_max]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = "Limits")]
    message_bytes_max: Option<u64>,
    /// How long running queries may go on when the server stops; by default 30s [limits.stop_grace]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    stop_grace: Option<Duration>,
    /// Share what is read with other servers: the address at which they connect to this one; see docs/ring.md [ring.listen]
    #[arg(long, value_name = "ADDRESS", help_heading = "Many servers")]
    ring_listen: Option<SocketAddr>,
    /// Where the other servers reach this one; by default what --ring-listen says [ring.address]
    #[arg(long, value_name = "HOST:PORT", help_heading = "Many servers")]
    ring_address: Option<String>,
    /// A server that shares: it knows the others; may be given several times, in case one is down [ring.join]
    #[arg(long = "ring-join", value_name = "HOST:PORT", help_heading = "Many servers")]
    ring_join: Vec<String>,
    /// Where this server is: pages do not travel between zones [ring.zone]
    #[arg(long, value_name = "NAME", help_heading = "Many servers")]
    ring_zone: Option<String>,
    /// Share the files below this URL or directory, which all servers see; may be given several times [ring.stores]
    #[arg(long = "ring-store", value_name = "PREFIX", help_heading = "Many servers")]
    ring_stores: Vec<String>,
    /// off: read everything alone; direct: get each page from its owner; circulate: pages go round from
    /// server to server (for comparison); auto: direct while other servers give at least 1.2 times the bytes per second of
    /// the store; by default direct [ring.mode]
    #[arg(long, value_name = "MODE", value_parser = parse_mode, help_heading = "Many servers")]
    ring_mode: Option<RingMode>,
    /// The key shared by all servers, from `coscan ring key`; with --ring-certificate, its private key [ring.key]
    #[arg(long, value_name = "FILE", help_heading = "Many servers")]
    ring_key: Option<PathBuf>,
    /// The authority of the servers' certificates, if they have their own [ring.ca]
    #[arg(long, value_name = "FILE", help_heading = "Many servers")]
    ring_ca: Option<PathBuf>,
    /// The certificate of this server, as a PEM file; --ring-key is then its private key [ring.certificate]
    #[arg(long, value_name = "FILE", help_heading = "Many servers")]
    ring_certificate: Option<PathBuf>,
    #[command(flatten)]
    workers: WorkerFlags,
}

impl Flags {
    /// Overrides settings by the flags. Tables and replicas are added.
    pub(crate) fn apply_to(&self, config: &mut Config) {
        let tables = self.tables.iter().cloned();
        config.tables.extend(tables.map(|(name, location)| (name, TableLocation::from(location))));
        for (name, location) in &self.replicas {
            // A table that is not configured has no location, which is an error of the
            // configuration.
            config.tables.entry(name.clone()).or_default().replicas.push(location.clone());
        }
        if let Some(path) = &self.database {
            config.database = Some(path.clone());
        }
        config.listen.postgres = self.listen_postgres.or(config.listen.postgres);
        config.listen.flight = self.listen_flight.or(config.listen.flight);
        config.listen.http = self.listen_http.or(config.listen.http);
        config.http.local_metrics |= self.local_metrics;
        config.http.local_frames |= self.local_frames;
        if let Some(path) = &self.users_file {
            config.users_file = Some(path.clone());
        }
        config.insecure |= self.insecure;
        if let (Some(certificate), Some(key)) = (&self.tls_certificate, &self.tls_key) {
            config.tls = Some(Tls { certificate: certificate.clone(), key: key.clone() });
        }
        set(&mut config.log.level, self.log_level);
        set(&mut config.log.format, self.log_format);
        config.memory.bytes = self.memory_bytes.or(config.memory.bytes);
        config.memory.pool_bytes = self.pool_bytes.or(config.memory.pool_bytes);
        let limits = &mut config.limits;
        set(&mut limits.queries_running, self.queries_running);
        set(&mut limits.queries_waiting, self.queries_waiting);
        set(&mut limits.wait_max, self.wait_max);
        set(&mut limits.planning_time_max, self.planning_time_max);
        limits.query_time_max = self.query_time_max.or(limits.query_time_max);
        limits.query_memory_max = self.query_memory_max.or(limits.query_memory_max);
        limits.user_memory_max = self.user_memory_max.or(limits.user_memory_max);
        set(&mut limits.result_stall_max, self.result_stall_max);
        limits.idle_max = self.idle_max.or(limits.idle_max);
        set(&mut limits.connections_max, self.connections_max);
        set(&mut limits.login_max, self.login_max);
        set(&mut limits.token_lifetime, self.token_lifetime);
        set(&mut limits.message_bytes_max, self.message_bytes_max);
        set(&mut limits.stop_grace, self.stop_grace);
        self.apply_to_ring(&mut config.ring);
        self.workers.apply_to(&mut config.workers);
    }

    fn apply_to_ring(&self, ring: &mut Option<Ring>) {
        let is_set = self.ring_listen.is_some()
            || self.ring_address.is_some()
            || !self.ring_join.is_empty()
            || self.ring_zone.is_some()
            || !self.ring_stores.is_empty()
            || self.ring_mode.is_some()
            || self.ring_key.is_some()
            || self.ring_ca.is_some()
            || self.ring_certificate.is_some();
        if !is_set {
            return;
        }
        let ring = ring.get_or_insert_default();
        ring.listen = self.ring_listen.or(ring.listen);
        ring.address = self.ring_address.clone().or(ring.address.take());
        ring.join.extend(self.ring_join.iter().cloned());
        set(&mut ring.zone, self.ring_zone.clone());
        ring.stores.extend(self.ring_stores.iter().cloned());
        set(&mut ring.mode, self.ring_mode);
        ring.key = self.ring_key.clone().or(ring.key.take());
        ring.ca = self.ring_ca.clone().or(ring.ca.take());
        ring.certificate = self.ring_certificate.clone().or(ring.certificate.take());
    }
}

pub(crate) fn parse_mode(text: &str) -> Result<RingMode, &'static str> {
    match text {
        "off" => Ok(RingMode::Off),
        "direct" => Ok(RingMode::Direct),
        "circulate" => Ok(RingMode::Circulate),
        "auto" => Ok(RingMode::Auto),
        _ => Err("write off, direct, circulate or auto"),
    }
}

fn parse_format(text: &str) -> Result<LogFormat, &'static str> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("write text or json"),
    }
}

fn set<T>(setting: &mut T, flag: Option<T>) {
    if let Some(flag) = flag {
        *setting = flag;
    }
}
