//! The decision log of a manager on its way to a file. Under the driver's lock lines are only handed on; a task writes
//! them. If writing fails, recording ends and queries go on.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use coscan_core::log::{Entry, Header};
use tokio::io::{AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use crate::driver::Driver;

/// A decision log that is being written. It goes on until [`Self::finish`], or the manager and all its scans and tables
/// are gone.
#[derive(Debug)]
pub struct Recording {
    pub(crate) driver: Arc<Driver>,
    pub(crate) writer: JoinHandle<io::Result<u64>>,
}

impl Recording {
    /// Ends the log and waits until all of it is written; returns the number of its entries.
    ///
    /// # Errors
    /// If any of it could not be written.
    pub async fn finish(self) -> io::Result<u64> {
        self.driver.stop_recording();
        self.writer.await.map_err(io::Error::other)?
    }
}

/// Where the driver hands entries on.
#[derive(Debug)]
pub(crate) struct Recorder(UnboundedSender<Vec<Entry>>);

impl Recorder {
    /// False if nobody writes any more.
    pub(crate) fn pass_on(&self, entries: Vec<Entry>) -> bool {
        entries.is_empty() || self.0.send(entries).is_ok()
    }
}

/// Writes the header and then what the recorder is handed, until it is gone.
pub(crate) fn start(
    runtime: &Handle,
    header: &Header,
    file: impl AsyncWrite + Send + Unpin + 'static,
) -> (Recorder, JoinHandle<io::Result<u64>>) {
    let (sender, receiver) = unbounded_channel();
    let first = format!("{header}\n");
    let writer = runtime.spawn(async move {
        let written = write(first, receiver, BufWriter::new(file)).await;
        if let Err(error) = &written {
            log::warn!("decisions are no longer recorded: the log cannot be written: {error}");
        }
        written
    });
    (Recorder(sender), writer)
}

async fn write(
    first: String,
    mut entries: UnboundedReceiver<Vec<Entry>>,
    mut file: impl AsyncWrite + Unpin,
) -> io::Result<u64> {
    let (mut lines, mut count) = (first, 0);
    file.write_all(lines.as_bytes()).await?;
    while let Some(entries) = entries.recv().await {
        lines.clear();
        for entry in &entries {
            writeln!(lines, "{entry}").map_err(io::Error::other)?;
        }
        file.write_all(lines.as_bytes()).await?;
        count += entries.len() as u64;
    }
    file.shutdown().await?;
    Ok(count)
}
