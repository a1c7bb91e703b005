//! Counts the bytes that are sent to clients.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A protocol of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The PostgreSQL protocol.
    Postgres,
    /// Arrow Flight SQL.
    Flight,
    /// The dashboard and metrics.
    Http,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 3] = [Self::Postgres, Self::Flight, Self::Http];

    /// The name of the protocol in logs and metrics, as in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Flight => "flight",
            Self::Http => "http",
        }
    }
}

/// The bytes that were sent over all connections of each protocol, including those of TLS. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct SentBytes([Arc<AtomicU64>; Protocol::ALL.len()]);

impl SentBytes {
    /// The bytes of one protocol so far.
    #[must_use]
    pub fn of(&self, protocol: Protocol) -> u64 {
        self.0[protocol as usize].load(Ordering::Relaxed)
    }

    pub(super) fn counting(&self, protocol: Protocol, stream: TcpStream) -> CountedStream {
        CountedStream { stream, sent: Arc::clone(&self.0[protocol as usize]) }
    }
}

/// A connection whose sent bytes are counted.
#[derive(Debug)]
pub struct CountedStream {
    stream: TcpStream,
    sent: Arc<AtomicU64>,
}

impl CountedStream {
    /// The next byte, which stays to be read, or `None` at the end of the stream.
    ///
    /// # Errors
    /// If the connection has failed.
    pub async fn peek(&self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        let read = self.stream.peek(&mut byte).await?;
        Ok((read > 0).then_some(byte[0]))
    }

    fn counted(&self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = polled {
            self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        polled
    }
}

impl AsyncRead for CountedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for CountedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.counted(polled)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write_vectored(context, parts);
        this.counted(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
