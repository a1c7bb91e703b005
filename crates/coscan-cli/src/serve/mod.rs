//! `coscan serve`: a server for many clients.

#[cfg(not(target_env = "msvc"))]
mod allocator;
mod demo;
mod flags;
mod logging;
#[cfg(test)]
mod reference;
mod signals;
mod worker_flags;

use std::path::PathBuf;

use clap::Args;
use coscan_server::config::{Config, LogFormat};
use coscan_server::{Server, Stopped};

use crate::{Exit, Failure};
use demo::Demo;
pub(crate) use flags::{Flags, parse_mode};
use signals::{Signal, Signals};

/// Serve SQL on Parquet files and Delta Lake tables to many clients, which share what they read.
///
/// Clients use the PostgreSQL protocol (psql, psycopg) or Arrow Flight SQL (ADBC, JDBC). A web page shows the scheduler
/// at work. Users and their passwords are in a file, whose entries `coscan user NAME` makes. All settings can be made
/// in a TOML file and by flags of the same names; flags take precedence.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  coscan serve --demo                              generated tables: PostgreSQL, Flight SQL and the web page
  coscan serve --demo --listen-flight 127.0.0.1:5434     Flight SQL only
  (umask 077; coscan user ann >> users.toml)       asks for a password
  coscan serve --table trips=s3://bucket/trips/ --users-file users.toml --listen-postgres 127.0.0.1:5432
  coscan serve --demo --listen-http 127.0.0.1:8080 --listen-postgres 127.0.0.1:5432
  coscan serve --config coscan.toml --check        check the configuration without starting

Ctrl-C and SIGTERM stop the server: running queries may end within stop_grace (30s); a second Ctrl-C cancels them.
SIGHUP reads the files of the configuration, users and certificate again, and lists the files of all tables again.")]
pub(crate) struct Serve {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check the configuration, list everything that is wrong, and do not start the server
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    demo: Demo,
}

impl Serve {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut signals = Signals::new();
        let config = tokio::select! {
            config = self.configuration() => config?,
            _ = signals.next() => return Ok(Exit::Interrupted),
        };
        if self.check {
            Server::check(&config).await?;
            for warning in coscan_server::exposed_files(&config) {
                println!("warning: {warning}");
            }
            println!("the configuration is valid");
            return Ok(Exit::Success);
        }
        logging::start(config.log);
        warn_of_exposed_files(&config);
        #[cfg(not(target_env = "msvc"))]
        if let Some(allocator) = allocator::allocator() {
            coscan_server::set_allocator(allocator);
        }
        let server = tokio::select! {
            server = Server::start(&config) => server?,
            _ = signals.next() => return Ok(Exit::Interrupted),
        };
        greet(&config, &server);
        while signals.next().await == Signal::Reload {
            self.reload(&server, config.log.format).await;
        }
        let grace = config.limits.stop_grace;
        let say = |text: &str| say(config.log.format, text);
        say(&format!("stopping: waiting up to {grace:?} for running queries"));
        let hurry = async { while signals.next().await != Signal::Stop {} };
        if server.stop(grace, hurry).await == Stopped::Cancelled {
            say("cancelled the queries that were left");
        }
        Ok(Exit::Success)
    }

    async fn reload(&self, server: &Server, format: LogFormat) {
        let reloaded = async {
            let config = self.configuration().await?;
            warn_of_exposed_files(&config);
            server.reload(&config).await.map_err(Failure::from)
        };
        match reloaded.await {
            Ok(()) => say(format, "configuration reloaded"),
            Err(error) => {
                let text = format!("cannot reload, keeping the configuration: {error}");
                match format {
                    LogFormat::Text => eprintln!("coscan: {text}"),
                    LogFormat::Json => log::error!("{text}"),
                }
            }
        }
    }

    /// The settings of the file, overridden by flags, with the tables of the demonstration.
    async fn configuration(&self) -> Result<Config, Failure> {
        let mut config = match &self.config {
            Some(path) => Config::read(path)?,
            None => Config::default(),
        };
        self.flags.apply_to(&mut config);
        self.demo.apply_to(&mut config).await?;
        Ok(config)
    }
}

fn warn_of_exposed_files(config: &Config) {
    for warning in coscan_server::exposed_files(config) {
        log::warn!("{warning}");
    }
}

fn greet(config: &Config, server: &Server) {
    let say = |text: &str| say(config.log.format, text);
    let tables = config.tables.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    match &config.database {
        None if tables.is_empty() => {}
        None => say(&format!("serves {tables}")),
        Some(path) if tables.is_empty() => say(&format!("serves the database {}", path.display())),
        Some(path) => say(&format!("serves {tables}, and the database {}", path.display())),
    }
    if let Some(address) = server.postgres {
        let (host, port) = (address.ip(), address.port());
        let user = if config.insecure { "anyone" } else { "NAME" };
        say(&format!("PostgreSQL clients connect with: psql -h {host} -p {port} -U {user} coscan"));
    }
    if let Some(address) = server.flight {
        let scheme = if config.tls.is_some() { "grpc+tls" } else { "grpc" };
        say(&format!("Flight SQL clients connect to: {scheme}://{address}"));
    }
    if let Some(address) = server.http {
        let scheme = if config.tls.is_some() { "https" } else { "http" };
        let who = if config.insecure { "" } else { ", for administrators" };
        say(&format!("browsers see the scheduler at work at {scheme}://{address}/{who}"));
    }
    if let Some(address) = server.ring {
        say(&format!("other servers connect to {address} to share what they read"));
    }
    if let Some(address) = server.worker {
        say(&format!("other servers send tasks to {address}"));
    }
    if let Some(workers) = config.workers.as_ref().filter(|workers| !workers.members.is_empty()) {
        let members = workers.members.join(", ");
        say(&format!("divides queries among {members} after: SET coscan.distributed = on"));
    }
    if config.insecure {
        say("checks no passwords; only this machine can connect");
    }
}

/// Writes a line to standard error, as JSON if the log is JSON.
fn say(format: LogFormat, text: &str) {
    match format {
        LogFormat::Text => eprintln!("coscan: {text}"),
        LogFormat::Json => log::info!("{text}"),
    }
}
