//! The servers of the demonstration, in the process that starts them.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use coscan_server::config::RingMode;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::{sleep, timeout};

use super::node::{Counts, Ready};
use crate::Failure;

/// The time limit for servers to start, to connect to each other, and to answer.
const START_MAX: Duration = Duration::from_secs(60);

/// The settings with which all servers of a run are started.
#[derive(Clone, Debug)]
pub(super) struct Settings<'a> {
    pub(super) count: usize,
    pub(super) table: &'a Path,
    pub(super) key: &'a Path,
    pub(super) mode: RingMode,
    pub(super) store_bandwidth: u64,
    pub(super) store_latency: Duration,
    pub(super) memory_bytes: u64,
    pub(super) pool_bytes: u64,
}

/// Running servers. They end when this is dropped.
pub(super) struct Nodes(Vec<Process>);

/// The process of one server.
struct Process {
    ready: Ready,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// The process is killed when this is dropped.
    _child: Child,
}

impl Nodes {
    /// Starts servers, and waits until they share, if they do.
    pub(super) async fn start(settings: &Settings<'_>) -> Result<Self, Failure> {
        let first = Process::start(settings, None, true).await?;
        let join = first.ready.ring.map(|address| address.to_string());
        let mut nodes = Self(vec![first]);
        for _ in 1..settings.count {
            nodes.0.push(Process::start(settings, join.as_deref(), false).await?);
        }
        if settings.mode != RingMode::Off {
            let know_each_other = timeout(START_MAX, nodes.know_each_other());
            know_each_other.await.map_err(|_| "the servers do not find each other")??;
        }
        Ok(nodes)
    }

    /// The addresses of each server.
    pub(super) fn ready(&self) -> impl Iterator<Item = Ready> {
        self.0.iter().map(|process| process.ready)
    }

    /// The sums of the totals of all servers so far.
    pub(super) async fn counts(&mut self) -> Result<Counts, Failure> {
        let mut sum = Counts::default();
        for process in &mut self.0 {
            sum = sum + process.counts().await?;
        }
        Ok(sum)
    }

    async fn know_each_other(&mut self) -> Result<(), Failure> {
        let count = self.0.len();
        while self.counts().await?.sharing < count * (count - 1) {
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }
}

impl Process {
    async fn start(
        settings: &Settings<'_>,
        join: Option<&str>,
        has_dashboard: bool,
    ) -> Result<Self, Failure> {
        let mut command = crate::program::again()?;
        command.args(["ring", "node", "--listen-postgres", "127.0.0.1:0", "--log-level", "warn"]);
        command.arg(format!("--table=lineitem={}", settings.table.display()));
        command.arg(format!("--store-bandwidth={}", settings.store_bandwidth));
        command.arg(format!("--store-latency={}", settings.store_latency.as_secs_f64()));
        command.arg(format!("--memory-bytes={}", settings.memory_bytes));
        command.arg(format!("--pool-bytes={}", settings.pool_bytes));
        if has_dashboard {
            command.arg("--listen-http=127.0.0.1:0");
        }
        if settings.mode != RingMode::Off {
            command.arg("--ring-listen=127.0.0.1:0").arg(format!("--ring-mode={}", settings.mode));
            command.arg("--ring-key").arg(settings.key);
            command.arg("--ring-store").arg(settings.table.parent().unwrap_or(Path::new("/")));
            command.args(join.map(|address| format!("--ring-join={address}")));
        }
        // Ctrl-C ends this process, and the processes that it has started end with it.
        #[cfg(unix)]
        command.process_group(0);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let input = input.ok_or("a server has no input")?;
        let mut output = BufReader::new(output.ok_or("a server has no output")?).lines();
        let ready = timeout(START_MAX, read(&mut output));
        let ready = ready.await.map_err(|_| "a server takes too long to start")??;
        Ok(Self { ready, input, output, _child: child })
    }

    async fn counts(&mut self) -> Result<Counts, Failure> {
        self.input.write_all(b"\n").await?;
        let counts = timeout(START_MAX, read(&mut self.output));
        counts.await.map_err(|_| "a server does not answer")?
    }
}

/// Reads a line of JSON.
async fn read<T: DeserializeOwned>(
    output: &mut Lines<BufReader<ChildStdout>>,
) -> Result<T, Failure> {
    let line = output.next_line().await?;
    Ok(serde_json::from_str(&line.ok_or("a server has ended; what it said is above")?)?)
}
