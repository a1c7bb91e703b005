//! The servers of the demonstration, in the process that starts them.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use coscan_server::config::RingMode;
use tokio::time::{sleep, timeout};

use crate::Failure;
use crate::child::{Counts, Process, Ready, START_MAX};

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

impl Nodes {
    /// Starts servers, and waits until they share, if they do.
    pub(super) async fn start(settings: &Settings<'_>) -> Result<Self, Failure> {
        let first = Process::start(settings.flags(None, true)).await?;
        let join = first.ready.ring.map(|address| address.to_string());
        let mut nodes = Self(vec![first]);
        for _ in 1..settings.count {
            nodes.0.push(Process::start(settings.flags(join.as_deref(), false)).await?);
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

impl Settings<'_> {
    /// The flags of a server.
    fn flags(&self, join: Option<&str>, has_dashboard: bool) -> Vec<OsString> {
        let mut flags: Vec<OsString> = vec![
            format!("--table=lineitem={}", self.table.display()).into(),
            format!("--store-bandwidth={}", self.store_bandwidth).into(),
            format!("--store-latency={}", self.store_latency.as_secs_f64()).into(),
            format!("--memory-bytes={}", self.memory_bytes).into(),
            format!("--pool-bytes={}", self.pool_bytes).into(),
        ];
        if has_dashboard {
            flags.push("--listen-http=127.0.0.1:0".into());
        }
        if self.mode != RingMode::Off {
            let directory = self.table.parent().unwrap_or(Path::new("/"));
            flags.push("--ring-listen=127.0.0.1:0".into());
            flags.push(format!("--ring-mode={}", self.mode).into());
            flags.extend(["--ring-key".into(), self.key.into()]);
            flags.extend(["--ring-store".into(), directory.into()]);
            flags.extend(join.map(|address| format!("--ring-join={address}").into()));
        }
        flags
    }
}
