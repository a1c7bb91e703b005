//! Sends messages to a client. They are collected, and written when there are enough or when the client waits for them.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use pgwire::messages::PgWireBackendMessage;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// The number of bytes at which collected messages are written.
const GATHERED_BYTES: usize = 64 << 10;

/// The sending half of a connection.
#[derive(Debug)]
pub(super) struct Writer<W> {
    stream: W,
    gathered: BytesMut,
    stall_max: Duration,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Creates a writer that fails if the client reads no byte for `stall_max`.
    pub(super) fn new(stream: W, stall_max: Duration) -> Self {
        Self { stream, gathered: BytesMut::new(), stall_max }
    }

    /// Adds a message.
    pub(super) fn add(&mut self, message: &PgWireBackendMessage) -> io::Result<()> {
        message.encode(&mut self.gathered).map_err(io::Error::other)
    }

    /// Adds encoded messages.
    pub(super) fn add_encoded(&mut self, messages: &[u8]) {
        self.gathered.extend_from_slice(messages);
    }

    /// Whether it is time to [`flush`](Self::flush).
    pub(super) fn is_full(&self) -> bool {
        self.gathered.len() >= GATHERED_BYTES
    }

    /// Writes all collected messages.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        while !self.gathered.is_empty() {
            let write = self.stream.write_buf(&mut self.gathered);
            if tokio::time::timeout(self.stall_max, write).await?? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        if self.gathered.capacity() > GATHERED_BYTES {
            self.gathered = BytesMut::new(); // Idle connections hold little.
        }
        tokio::time::timeout(self.stall_max, self.stream.flush()).await?
    }

    /// Writes all collected messages, and ends the connection.
    pub(super) async fn close(mut self) -> io::Result<()> {
        self.flush().await?;
        self.stream.shutdown().await
    }
}
