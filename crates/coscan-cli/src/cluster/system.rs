//! The figures of one system of the demonstration.

use std::cmp::Ordering;
use std::time::Instant;

use coscan_bench::process::cores;
use coscan_sim::report::draw::columns::{Align, Block, beside};
use coscan_sim::report::draw::numbers::{count, decimal, megabytes};
use futures::future::try_join_all;
use serde::Serialize;

use super::servers::{Servers, Settings, SystemKind};
use crate::Failure;
use crate::compare::spinner;
use crate::sizes::show_bytes;

/// The name of a query, and its text.
pub(super) type Query = (String, String);

/// The name of a query, and its rows as text, sorted, or its error.
type Answer = (String, Result<Vec<String>, String>);

/// A system, and its runs.
#[derive(Debug, Serialize)]
pub(super) struct System {
    name: String,
    /// The queries that are divided among workers.
    divided: usize,
    runs: Vec<Figures>,
    #[serde(skip)]
    kind: SystemKind,
}

/// The figures of one run.
#[derive(Clone, Debug, Serialize)]
struct Figures {
    /// The time until the last stream has ended, in seconds.
    total_s: f64,
    store_bytes: u64,
    store_requests: u64,
    /// The processor time of all servers, in seconds.
    cpu_s: f64,
    /// The queries that failed, and the first error.
    failed: usize,
    error: Option<String>,
    /// The first answer that differs from that of the first run.
    difference: Option<String>,
}

impl System {
    pub(super) fn new(kind: SystemKind, workers: u16) -> Self {
        let name = match kind {
            SystemKind::OneServer => "one server".to_owned(),
            SystemKind::Workers => format!("{workers} workers"),
            SystemKind::Engine => format!("engine, {workers} workers"),
        };
        Self { name, divided: 0, runs: Vec::new(), kind }
    }

    /// Runs all streams at the same time on new servers. Compares the answers with those of the first run of all, or
    /// keeps them as such.
    pub(super) async fn run(
        &mut self,
        settings: &Settings<'_>,
        streams: &[Vec<Query>],
        right: &mut Option<Vec<Vec<Answer>>>,
    ) -> Result<(), Failure> {
        let (bar, name) = (spinner(), &self.name);
        bar.set_message(format!("{name}: starting"));
        let mut servers = Servers::start(self.kind, settings).await?;
        bar.set_message(format!("{name}: {} streams of 22 queries", streams.len()));
        if self.kind != SystemKind::OneServer {
            self.divided = divided(&servers, &streams[0]).await?;
        }
        let before = servers.counts().await?;
        let started = Instant::now();
        let running = streams.iter().map(|stream| run_stream(&servers, stream));
        let answers = try_join_all(running).await?;
        let total_s = started.elapsed().as_secs_f64();
        let after = servers.counts().await?;
        bar.finish_and_clear();
        let mut errors = answers.iter().flatten().filter_map(|(name, answer)| {
            answer.as_ref().err().map(|error| format!("{name}: {error}"))
        });
        let error = errors.next();
        let figures = Figures {
            failed: usize::from(error.is_some()) + errors.count(),
            error,
            total_s,
            store_bytes: after.store_bytes - before.store_bytes,
            store_requests: after.store_requests - before.store_requests,
            cpu_s: after.cpu_s - before.cpu_s,
            difference: right.as_ref().and_then(|right| difference(name, right, &answers)),
        };
        right.get_or_insert(answers);
        let read = show_bytes(figures.store_bytes);
        eprintln!("  {name:<18} {total_s:>7.1} s   {read:>8} from the store");
        if let Some(error) = &figures.error {
            eprintln!("    {} queries failed; the first: {error}", figures.failed);
        }
        self.runs.push(figures);
        Ok(())
    }

    /// The first answer that differs from that of the first run of all.
    fn difference(&self) -> Option<&String> {
        self.runs.iter().find_map(|run| run.difference.as_ref())
    }

    /// What is wrong: an answer that differs, or a query that has none. The engine alone may fail, for instance for want of memory.
    pub(super) fn fault(&self) -> Option<&String> {
        let mut errors = self.runs.iter().filter_map(|run| run.error.as_ref());
        let failed = errors.next().filter(|_| self.kind != SystemKind::Engine);
        self.difference().or(failed)
    }

    /// The median of all runs.
    fn median<T: PartialOrd + Default>(&self, figure: impl Fn(&Figures) -> T) -> T {
        let mut values: Vec<_> = self.runs.iter().map(figure).collect();
        values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
        let middle = values.len().saturating_sub(1) / 2;
        values.into_iter().nth(middle).unwrap_or_default()
    }
}

async fn run_stream(servers: &Servers, queries: &[Query]) -> Result<Vec<Answer>, Failure> {
    let mut client = servers.client().await?;
    let mut answers = Vec::new();
    for (name, sql) in queries {
        let rows = client.query(sql).await.map_err(|error| error.to_string());
        if rows.is_err() {
            client = servers.client().await?;
        }
        answers.push((name.clone(), rows));
    }
    Ok(answers)
}

/// The number of queries that are divided among workers.
async fn divided(servers: &Servers, queries: &[Query]) -> Result<usize, Failure> {
    let client = servers.client().await?;
    let mut divided = 0;
    for (name, sql) in queries {
        let divides = client.divides(sql).await.map_err(|error| format!("{name}: {error}"))?;
        divided += usize::from(divides);
    }
    Ok(divided)
}

fn difference(system: &str, right: &[Vec<Answer>], answers: &[Vec<Answer>]) -> Option<String> {
    let all = right.iter().flatten().zip(answers.iter().flatten());
    let mut both = all.filter(|((_, right), (_, answer))| right.is_ok() && answer.is_ok());
    let different = both.find(|(right, answer)| right != answer);
    different.map(|((name, _), _)| format!("{name} has another answer with {system}"))
}

/// The figures of all systems side by side, medians of their runs.
pub(super) fn table(systems: &[System]) -> String {
    let rows = [
        "total time [s]",
        "from the store [MB]",
        "requests to the store",
        "processor time [s]",
        "use of processors [%]",
        "queries divided, of 22",
        "queries that failed",
        "answers as in the first column",
    ];
    let names = Block::new("", "", &[rows.map(str::to_owned).to_vec()], Align::Left);
    let cores = u32::try_from(cores()).map_or(1.0, f64::from);
    let columns = systems.iter().enumerate().map(|(index, system)| {
        let in_use = |run: &Figures| 100.0 * run.cpu_s / (run.total_s * cores);
        let values = vec![
            decimal(system.median(|run| run.total_s)),
            megabytes(system.median(|run| run.store_bytes)),
            count(system.median(|run| run.store_requests)),
            decimal(system.median(|run| run.cpu_s)),
            decimal(system.median(in_use)),
            system.divided.to_string(),
            system.median(|run| run.failed).to_string(),
            match (index, system.difference()) {
                (0, None) => "-",
                (_, None) => "yes",
                (_, Some(_)) => "NO",
            }
            .to_owned(),
        ];
        Block::new(&system.name, "", &[values], Align::Right)
    });
    beside(&names, &columns.collect::<Vec<_>>())
}
