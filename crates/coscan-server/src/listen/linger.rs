//! Closing a connection without losing what was sent last.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream that, once shut down, reads and drops what its client still sends, until the client closes it.
///
/// A socket that is closed with unread bytes resets its connection, and what waited to be sent is lost (RFC 1122,
/// 4.2.2.13): the last rows of a client that sends while it reads slowly, as every client of HTTP/2 does.
#[derive(Debug)]
pub struct Linger<S> {
    stream: S,
    linger_max: Duration,
    /// The deadline, once the stream is shut down.
    ended: Option<Pin<Box<Sleep>>>,
}

impl<S> Linger<S> {
    /// Waits for the client at most `linger_max` after the shutdown.
    pub fn new(stream: S, linger_max: Duration) -> Self {
        Self { stream, linger_max, ended: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Linger<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Linger<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.ended.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
        }
        let ended = this.ended.get_or_insert_with(|| Box::pin(sleep(this.linger_max)));
        let mut bytes = [0; 4096];
        while ended.as_mut().poll(context).is_pending() {
            let mut buffer = ReadBuf::new(&mut bytes);
            let read = ready!(Pin::new(&mut this.stream).poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn a_client_that_sends_while_it_reads_slowly_gets_all_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        client.write_all(b"is not read").await.unwrap();
        stream.readable().await.unwrap();
        // As much as the buffers of both sides take.
        let mut sent = 0;
        loop {
            match stream.try_write(&[0; 65_536]) {
                Ok(written) => sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let mut stream = Linger::new(stream, Duration::from_secs(60));
        let closing = tokio::spawn(async move { stream.shutdown().await.unwrap() });
        // It is closed by then, were it not to linger.
        tokio::task::yield_now().await;
        let mut read = Vec::new();
        client.read_to_end(&mut read).await.unwrap();
        assert_eq!(read.len(), sent);
        drop(client);
        closing.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_closes_is_not_waited_for_for_ever() {
        let (stream, mut client) = tokio::io::duplex(64);
        let mut stream = Linger::new(stream, Duration::from_secs(60));
        client.write_all(b"more").await.unwrap();
        let started = tokio::time::Instant::now();
        stream.shutdown().await.unwrap();
        assert_eq!(started.elapsed().as_secs(), 60);
    }
}
