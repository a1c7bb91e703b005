//! The servers of one system of the demonstration.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use clap::ValueEnum;
use coscan_bench::clients::Clients;
use coscan_bench::runner::Engine;
use coscan_runtime::units::BYTES_MAX;
use coscan_storage::stores::StoreMetrics;

use super::engine::Coordinator;
use crate::Failure;
use crate::child::{Counts, Process, SlowStore};

/// What executes the queries of the demonstration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SystemKind {
    /// One server, which has the memory and the links of all workers
    OneServer,
    /// A server that divides its queries among the workers
    Workers,
    /// The workers of the engine alone, without coscan
    Engine,
}

/// The settings of all servers.
#[derive(Clone, Copy)]
pub(super) struct Settings<'a> {
    pub(super) workers: u16,
    pub(super) tables: &'a [(&'static str, PathBuf)],
    pub(super) key: &'a Path,
    pub(super) store_bandwidth: u64,
    pub(super) store_latency: Duration,
    pub(super) memory_bytes: u64,
    pub(super) divided_bytes_min: u64,
}

/// Running servers. They end when this is dropped.
pub(super) struct Servers {
    processes: Vec<Process>,
    entrance: Entrance,
}

/// What gets the queries.
enum Entrance {
    /// A server, and the settings of its sessions.
    Server(SocketAddr, &'static str),
    /// A session of the engine in this process.
    Engine(Arc<Coordinator>),
}

/// A client of the servers.
pub(super) enum Client {
    Server(Clients),
    Engine(Arc<Coordinator>),
}

impl Servers {
    pub(super) async fn start(kind: SystemKind, settings: &Settings<'_>) -> Result<Self, Failure> {
        match kind {
            SystemKind::OneServer => settings.start_one().await,
            SystemKind::Workers => settings.start_workers().await,
            SystemKind::Engine => settings.start_engine().await,
        }
    }

    /// The sums of what all servers have used.
    pub(super) async fn counts(&mut self) -> Result<Counts, Failure> {
        let mut sum = match &self.entrance {
            Entrance::Engine(coordinator) => coordinator.counts(),
            Entrance::Server(..) => Counts::default(),
        };
        for process in &mut self.processes {
            sum = sum + process.counts().await?;
        }
        Ok(sum)
    }

    pub(super) async fn client(&self) -> Result<Client, Failure> {
        match &self.entrance {
            // The servers count their reads themselves.
            Entrance::Server(address, settings) => {
                let reads = StoreMetrics::new();
                Ok(Client::Server(Clients::connect("demo", *address, reads, 1, settings).await?))
            }
            Entrance::Engine(coordinator) => Ok(Client::Engine(Arc::clone(coordinator))),
        }
    }
}

impl Client {
    /// The rows of a query as text, sorted.
    pub(super) async fn query(&self, sql: &str) -> Result<Vec<String>, Failure> {
        match self {
            Self::Server(clients) => sorted(&clients.query(sql).await?),
            Self::Engine(coordinator) => sorted(&coordinator.query(sql).await?),
        }
    }

    /// Whether workers execute a query.
    pub(super) async fn divides(&self, sql: &str) -> Result<bool, Failure> {
        match self {
            Self::Server(_) => {
                let plan = self.query(&format!("EXPLAIN {sql}")).await?;
                Ok(plan.iter().any(|row| row.contains("DistributedExec")))
            }
            Self::Engine(coordinator) => Ok(coordinator.divides(sql).await?),
        }
    }
}

fn sorted(batches: &[RecordBatch]) -> Result<Vec<String>, Failure> {
    let options = FormatOptions::default();
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter();
        let columns = columns.map(|column| ArrayFormatter::try_new(column, &options));
        let columns: Vec<_> = columns.collect::<Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            let values = columns.iter().map(|column| column.value(row).to_string());
            rows.push(values.collect::<Vec<_>>().join("|"));
        }
    }
    rows.sort_unstable();
    Ok(rows)
}

impl Settings<'_> {
    async fn start_one(&self) -> Result<Servers, Failure> {
        let server = Process::start(self.flags(self.workers.into())).await?;
        let entrance = Entrance::Server(server.postgres()?, "");
        Ok(Servers { processes: vec![server], entrance })
    }

    async fn start_workers(&self) -> Result<Servers, Failure> {
        let (mut processes, mut members) = (Vec::new(), Vec::new());
        for _ in 0..self.workers {
            let mut flags = self.flags(1);
            flags.extend(["--worker=127.0.0.1:0".into(), "--worker-key".into(), self.key.into()]);
            let directories = self.tables.iter().filter_map(|(_, path)| path.parent());
            flags.extend(directories.flat_map(|path| ["--worker-store".into(), path.into()]));
            let worker = Process::start(flags).await?;
            members.push(worker.worker()?.to_string());
            processes.push(worker);
        }
        let mut flags = self.flags(1);
        flags.extend(["--worker-key".into(), self.key.into()]);
        flags.push(format!("--workers={}", members.join(",")).into());
        flags.push(format!("--worker-divided-bytes-min={}", self.divided_bytes_min).into());
        let coordinator = Process::start(flags).await?;
        let address = coordinator.postgres()?;
        processes.push(coordinator);
        let entrance = Entrance::Server(address, "SET coscan.distributed = on");
        Ok(Servers { processes, entrance })
    }

    async fn start_engine(&self) -> Result<Servers, Failure> {
        let (mut processes, mut workers) = (Vec::new(), Vec::new());
        for _ in 0..self.workers {
            let mut flags = self.store_flags(1);
            flags.extend(["--key".into(), self.key.into()]);
            let worker = Process::start_command(&["cluster", "engine-worker"], flags).await?;
            workers.push(worker.worker()?);
            processes.push(worker);
        }
        let store = SlowStore {
            store_bandwidth: Some(self.store_bandwidth),
            store_latency: self.store_latency,
        };
        let store = (&store, self.memory_bytes);
        let divided = self.divided_bytes_min;
        let coordinator = Coordinator::new(&workers, self.key, self.tables, store, divided).await?;
        Ok(Servers { processes, entrance: Entrance::Engine(Arc::new(coordinator)) })
    }

    /// The flags of a server that has the memory and the links of `times` workers.
    fn flags(&self, times: u64) -> Vec<OsString> {
        let tables = self.tables.iter();
        let tables = tables.map(|(name, path)| format!("--table={name}={}", path.display()).into());
        self.store_flags(times).into_iter().chain(tables).collect()
    }

    fn store_flags(&self, times: u64) -> Vec<OsString> {
        let all = |bytes: u64| bytes.saturating_mul(times).min(BYTES_MAX);
        vec![
            format!("--store-bandwidth={}", all(self.store_bandwidth)).into(),
            format!("--store-latency={}", self.store_latency.as_secs_f64()).into(),
            format!("--memory-bytes={}", all(self.memory_bytes)).into(),
        ]
    }
}
