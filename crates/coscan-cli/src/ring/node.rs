//! `coscan ring node`: a server of a demonstration, in a process of its own.
//!
//! The process that starts it reads a line of JSON from its output with the addresses ([`Ready`]), and another one with
//! the totals so far ([`Counts`]) for each line that it writes to its input. The server ends when its input ends, so
//! that no server outlives its demonstration.

use std::io::Write;
use std::net::SocketAddr;
use std::ops::Add;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use coscan_bench::process;
use coscan_runtime::BufferManager;
use coscan_runtime::units::parse_duration;
use coscan_server::config::Config;
use coscan_server::{PeerStatus, Server};
use coscan_storage::stores::{
    LimitedStore, Limits, MeteredStore, StoreMetrics, Stores, list_files,
};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

use crate::serve::Flags;
use crate::sizes::parse_bytes;
use crate::{Exit, Failure};

/// One server of a demonstration.
#[derive(Debug, Args)]
pub(crate) struct Node {
    #[command(flatten)]
    flags: Flags,
    /// Bytes per second that it gets from the store
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    store_bandwidth: Option<u64>,
    /// Time until the store answers a request
    #[arg(long, default_value = "0s", value_name = "TIME", value_parser = parse_duration)]
    store_latency: Duration,
}

/// The addresses of a server.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Ready {
    pub(crate) postgres: SocketAddr,
    pub(crate) http: Option<SocketAddr>,
    /// The address for other servers.
    pub(crate) ring: Option<SocketAddr>,
    /// The address for tasks of other servers.
    pub(crate) worker: Option<SocketAddr>,
}

/// The totals of a server since it started.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// The bytes read from the store.
    pub(crate) store_bytes: u64,
    /// The number of requests to the store.
    pub(crate) store_requests: u64,
    /// The bytes of pages that other servers have sent.
    pub(crate) peer_bytes: u64,
    /// The bytes of those pages that were needed.
    pub(crate) taken_bytes: u64,
    /// The bytes of pages that it has sent to other servers.
    pub(crate) sent_bytes: u64,
    /// The processor time in seconds.
    pub(crate) cpu_s: f64,
    /// The number of other servers with which it shares now.
    pub(crate) sharing: usize,
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            store_bytes: self.store_bytes + other.store_bytes,
            store_requests: self.store_requests + other.store_requests,
            peer_bytes: self.peer_bytes + other.peer_bytes,
            taken_bytes: self.taken_bytes + other.taken_bytes,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            cpu_s: self.cpu_s + other.cpu_s,
            sharing: self.sharing + other.sharing,
        }
    }
}

impl Node {
    pub(crate) async fn run(&self) -> Result<Exit, Failure> {
        let mut config = Config { insecure: true, ..Config::default() };
        self.flags.apply_to(&mut config);
        let manager = BufferManager::new(config.memory.options())?;
        let metrics = StoreMetrics::new();
        for table in config.tables.values() {
            self.limit_store(&manager, &table.location, &metrics).await?;
        }
        let server = Server::start_on(&manager, &config).await?;
        let postgres = server.postgres.ok_or("a server of the demonstration needs clients")?;
        say(&Ready { postgres, http: server.http, ring: server.ring, worker: server.worker })?;
        let mut lines = BufReader::new(stdin()).lines();
        while let Ok(Some(_)) = lines.next_line().await {
            say(&counts(&server, &metrics))?;
        }
        server.stop(Duration::ZERO, std::future::pending()).await;
        Ok(Exit::Success)
    }

    /// Limits the store of a table, and counts its reads.
    async fn limit_store(
        &self,
        manager: &BufferManager,
        location: &str,
        metrics: &Arc<StoreMetrics>,
    ) -> Result<(), Failure> {
        let listing = list_files(&Stores::new(), location).await?;
        let limits = Limits { bytes_per_second: self.store_bandwidth, latency: self.store_latency };
        let limited = LimitedStore::new(listing.store, limits);
        let metered = MeteredStore::new(Arc::new(limited), Arc::clone(metrics));
        manager.stores().register(&listing.store_url, Arc::new(metered));
        Ok(())
    }
}

fn counts(server: &Server, metrics: &StoreMetrics) -> Counts {
    let read = metrics.snapshot();
    let transport = server.sql_service().transport();
    let peers = transport.into_iter().flat_map(|transport| transport.peers());
    let sharing = peers.filter(|peer| peer.status == PeerStatus::Sharing).count();
    let report = transport.map(|transport| transport.cluster().report()).unwrap_or_default();
    Counts {
        store_bytes: read.bytes,
        store_requests: read.requests,
        peer_bytes: report.bytes_received,
        taken_bytes: report.bytes_taken,
        sent_bytes: report.bytes_sent,
        cpu_s: process::cpu_time().as_secs_f64(),
        sharing,
    }
}

/// Writes a line of JSON.
fn say(what: &impl Serialize) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    serde_json::to_writer(&mut output, what)?;
    writeln!(output)?;
    Ok(output.flush()?)
}
