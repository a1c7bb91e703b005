//! The way of decisions to a log file. Under the driver's lock entries are only passed on; a task writes them. If
//! writing fails, recording ends and queries continue.

use std::fmt::Write as _;
use std::io;

use coscan_core::log::{Entry, Header};
use tokio::io::{AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

/// The receiver of the entries that the driver passes on.
#[derive(Debug)]
pub(crate) struct Recorder(UnboundedSender<Vec<Entry>>);

impl Recorder {
    /// Passes entries on. Returns false if they are no longer written.
    pub(crate) fn pass_on(&self, entries: Vec<Entry>) -> bool {
        entries.is_empty() || self.0.send(entries).is_ok()
    }
}

/// Writes the header, then the entries that the recorder takes, until it is dropped.
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
