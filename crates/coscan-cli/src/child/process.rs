//! A server of a demonstration, in the process that starts it.

use std::ffi::OsString;
#[cfg(feature = "distributed")]
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use super::{Counts, Ready};
use crate::Failure;

/// The time limit for servers to start, to connect to each other, and to answer.
pub(crate) const START_MAX: Duration = Duration::from_secs(60);

/// The process of one server.
pub(crate) struct Process {
    pub(crate) ready: Ready,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// The process is killed when this is dropped.
    _child: Child,
}

impl Process {
    /// Starts a server of coscan on any port of this machine, with these flags.
    pub(crate) async fn start(flags: impl IntoIterator<Item = OsString>) -> Result<Self, Failure> {
        let node = ["ring", "node", "--listen-postgres", "127.0.0.1:0", "--log-level", "warn"];
        Self::start_command(&node, flags).await
    }

    /// Starts a hidden command of this program that is a server of a demonstration.
    pub(crate) async fn start_command(
        server: &[&str],
        flags: impl IntoIterator<Item = OsString>,
    ) -> Result<Self, Failure> {
        let mut command = crate::own_command::again()?;
        command.args(server).args(flags);
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

    /// The address for clients.
    #[cfg(feature = "distributed")]
    pub(crate) fn postgres(&self) -> Result<SocketAddr, Failure> {
        Ok(self.ready.postgres.ok_or("a server does not listen for clients")?)
    }

    /// The address for tasks.
    #[cfg(feature = "distributed")]
    pub(crate) fn worker(&self) -> Result<SocketAddr, Failure> {
        Ok(self.ready.worker.ok_or("a worker does not listen")?)
    }

    /// The totals of the server so far.
    pub(crate) async fn counts(&mut self) -> Result<Counts, Failure> {
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
