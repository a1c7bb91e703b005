//! Servers of demonstrations, each in a process of its own.
//!
//! The process that starts one ([`Process`]) reads a line of JSON from its output with the addresses ([`Ready`]), and
//! another one with the totals so far ([`Counts`]) for each line that it writes to its input. The server ends when its
//! input ends, so that no server outlives its demonstration.

mod process;
mod slow_store;

use std::io::Write;
use std::net::SocketAddr;
use std::ops::Add;

use coscan_bench::process::cpu_time;
use coscan_storage::stores::StoreMetrics;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

pub(crate) use self::process::{Process, START_MAX};
pub(crate) use self::slow_store::SlowStore;
use crate::Failure;

/// The addresses of a server, those at which it listens.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ready {
    pub(crate) postgres: Option<SocketAddr>,
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

impl Counts {
    /// What this process has used, which has read `read`.
    pub(crate) fn of_process(read: &StoreMetrics) -> Self {
        let read = read.snapshot();
        Self {
            store_bytes: read.bytes,
            store_requests: read.requests,
            cpu_s: cpu_time().as_secs_f64(),
            ..Self::default()
        }
    }
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

/// Says that a server is ready, and its totals whenever it is asked, until it is to end.
pub(crate) async fn answer(ready: &Ready, counts: impl Fn() -> Counts) -> Result<(), Failure> {
    say(ready)?;
    let mut lines = BufReader::new(stdin()).lines();
    while let Ok(Some(_)) = lines.next_line().await {
        say(&counts())?;
    }
    Ok(())
}

/// Writes a line of JSON.
fn say(what: &impl Serialize) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    serde_json::to_writer(&mut output, what)?;
    writeln!(output)?;
    Ok(output.flush()?)
}
