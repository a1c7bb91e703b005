//! One way of executing the queries of the demonstration, and its figures.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{AsArray, RecordBatch};
use coscan_bench::clients::Clients;
use coscan_bench::runner::Engine;
use coscan_runtime::units::BYTES_MAX;
use coscan_sim::report::draw::columns::{Align, Block, beside};
use coscan_sim::report::draw::numbers::{count, decimal, megabytes};
use coscan_storage::stores::StoreMetrics;
use futures::future::try_join_all;
use serde::Serialize;

use crate::Failure;
use crate::compare::spinner;
use crate::ring::node::Counts;
use crate::ring::process::Process;
use crate::sizes::show_bytes;

/// Workers and their coordinator, or one server.
pub(super) struct Arm<'a> {
    /// The number of workers; `None` for one server.
    pub(super) workers: Option<u16>,
    /// How many times the memory and the bandwidth of a worker each server has.
    pub(super) times: u64,
    pub(super) tables: &'a [(&'static str, PathBuf)],
    pub(super) key: &'a Path,
    pub(super) store_bandwidth: u64,
    pub(super) store_latency: Duration,
    pub(super) memory_bytes: u64,
    pub(super) divided_bytes_min: u64,
}

/// The figures of an arm.
#[derive(Debug, Serialize)]
pub(super) struct ArmReport {
    name: String,
    /// The time until the last stream has ended, in seconds.
    total_s: f64,
    store_bytes: u64,
    store_requests: u64,
    /// The processor time of all servers, in seconds.
    cpu_s: f64,
    /// The queries that were divided among workers.
    divided: usize,
    /// The first answer that differs from that of the first arm.
    pub(super) difference: Option<String>,
    #[serde(skip)]
    answers: Vec<Vec<Answer>>,
}

/// The name of a query, and its rows as text, sorted.
type Answer = (String, Vec<String>);

impl Arm<'_> {
    /// Runs all streams at the same time on new servers. Answers are compared with those of `first`, if there is one.
    pub(super) async fn run(
        &self,
        streams: &[Vec<(String, String)>],
        first: Option<&ArmReport>,
    ) -> Result<ArmReport, Failure> {
        let name = self.name();
        let bar = spinner();
        bar.set_message(format!("{name}: starting"));
        let (mut servers, coordinator) = self.start().await?;
        bar.set_message(format!("{name}: {} streams of 22 queries", streams.len()));
        let divided = match self.workers {
            Some(_) => divided(coordinator, &streams[0]).await?,
            None => 0,
        };
        let before = counts(&mut servers).await?;
        let started = Instant::now();
        let settings = if self.workers.is_some() { "SET coscan.distributed = on" } else { "" };
        let running = streams.iter().map(|stream| run_stream(coordinator, settings, stream));
        let answers = try_join_all(running).await?;
        let total_s = started.elapsed().as_secs_f64();
        let after = counts(&mut servers).await?;
        bar.finish_and_clear();
        let report = ArmReport {
            difference: first.and_then(|first| difference(&first.answers, &answers)),
            name,
            total_s,
            store_bytes: after.store_bytes - before.store_bytes,
            store_requests: after.store_requests - before.store_requests,
            cpu_s: after.cpu_s - before.cpu_s,
            divided,
            answers,
        };
        eprintln!(
            "  {:<12} {:>7.1} s   {:>8} from the store",
            report.name,
            report.total_s,
            show_bytes(report.store_bytes)
        );
        Ok(report)
    }

    fn name(&self) -> String {
        self.workers.map_or_else(|| "one server".to_owned(), |workers| format!("{workers} workers"))
    }

    /// Starts the servers. Returns the address of the one that gets the queries.
    async fn start(&self) -> Result<(Vec<Process>, SocketAddr), Failure> {
        let Some(count) = self.workers else {
            let server = Process::start(self.flags()).await?;
            let address = server.ready.postgres;
            return Ok((vec![server], address));
        };
        let (mut servers, mut members) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let mut flags = self.flags();
            flags.extend(["--worker=127.0.0.1:0".into(), "--worker-key".into(), self.key.into()]);
            let directories = self.tables.iter().filter_map(|(_, path)| path.parent());
            flags.extend(directories.flat_map(|path| ["--worker-store".into(), path.into()]));
            let worker = Process::start(flags).await?;
            let address = worker.ready.worker.ok_or("a worker does not listen")?;
            members.push(address.to_string());
            servers.push(worker);
        }
        let mut flags = self.flags();
        flags.extend(["--worker-key".into(), self.key.into()]);
        flags.push(format!("--workers={}", members.join(",")).into());
        flags.push(format!("--worker-divided-bytes-min={}", self.divided_bytes_min).into());
        let coordinator = Process::start(flags).await?;
        let address = coordinator.ready.postgres;
        servers.push(coordinator);
        Ok((servers, address))
    }

    fn flags(&self) -> Vec<OsString> {
        let all = |bytes: u64| bytes.saturating_mul(self.times).min(BYTES_MAX);
        let tables = self.tables.iter();
        let tables = tables.map(|(name, path)| format!("--table={name}={}", path.display()).into());
        let mut flags: Vec<OsString> = tables.collect();
        flags.push(format!("--store-bandwidth={}", all(self.store_bandwidth)).into());
        flags.push(format!("--store-latency={}", self.store_latency.as_secs_f64()).into());
        flags.push(format!("--memory-bytes={}", all(self.memory_bytes)).into());
        flags
    }
}

async fn counts(servers: &mut [Process]) -> Result<Counts, Failure> {
    let mut sum = Counts::default();
    for server in servers {
        sum = sum + server.counts().await?;
    }
    Ok(sum)
}

async fn run_stream(
    server: SocketAddr,
    settings: &str,
    queries: &[(String, String)],
) -> Result<Vec<Answer>, Failure> {
    let clients = client(server, settings).await?;
    let mut answers = Vec::new();
    for (name, sql) in queries {
        let rows = clients.query(sql).await;
        let rows = rows.map_err(|error| format!("{name}: {error}"))?;
        answers.push((name.clone(), sorted(&rows)));
    }
    Ok(answers)
}

/// The number of queries that EXPLAIN shows as divided.
async fn divided(server: SocketAddr, queries: &[(String, String)]) -> Result<usize, Failure> {
    let clients = client(server, "SET coscan.distributed = on").await?;
    let mut divided = 0;
    for (name, sql) in queries {
        let plan = clients.query(&format!("EXPLAIN {sql}")).await;
        let plan = sorted(&plan.map_err(|error| format!("{name}: {error}"))?);
        divided += usize::from(plan.iter().any(|row| row.contains("DistributedExec")));
    }
    Ok(divided)
}

async fn client(server: SocketAddr, settings: &str) -> Result<Arc<Clients>, Failure> {
    // The servers report their reads themselves, so that clients do not count them.
    let clients = Clients::connect("demo", server, StoreMetrics::new(), 1, settings).await?;
    Ok(Arc::new(clients))
}

/// The rows, whose columns are texts.
fn sorted(batches: &[RecordBatch]) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let columns = batch.columns().iter();
            let values = columns.map(|column| column.as_string::<i32>().value(row));
            rows.push(values.collect::<Vec<_>>().join("|"));
        }
    }
    rows.sort_unstable();
    rows
}

fn difference(right: &[Vec<Answer>], answers: &[Vec<Answer>]) -> Option<String> {
    let all = right.iter().flatten().zip(answers.iter().flatten());
    let different = all.into_iter().find(|(right, answer)| right != answer);
    different.map(|((name, _), _)| format!("{name} has another answer over workers"))
}

/// The figures of all arms side by side.
pub(super) fn table(reports: &[ArmReport]) -> String {
    let rows = [
        "total time [s]",
        "from the store [MB]",
        "requests to the store",
        "processor time of the servers [s]",
        "queries divided, of 22",
        "answers as in the first column",
    ];
    let names = Block::new("", "", &[rows.map(str::to_owned).to_vec()], Align::Left);
    let columns = reports.iter().enumerate().map(|(index, report)| {
        let values = vec![
            decimal(report.total_s),
            megabytes(report.store_bytes),
            count(report.store_requests),
            decimal(report.cpu_s),
            report.divided.to_string(),
            match (index, &report.difference) {
                (0, _) => "-",
                (_, None) => "yes",
                (_, Some(_)) => "NO",
            }
            .to_owned(),
        ];
        Block::new(&report.name, "", &[values], Align::Right)
    });
    beside(&names, &columns.collect::<Vec<_>>())
}
