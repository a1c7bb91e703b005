//! Closes a connection without losing the last bytes that were sent.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The end of a connection. Once its stream is shut down, bytes that the client still sends are read and dropped, until
/// the client closes the connection, too.
///
/// A socket that is closed with unread bytes resets its connection, and bytes that wait to be sent are lost (RFC 1122,
/// 4.2.2.13). For a client that sends while it reads slowly, as every HTTP/2 client does, these would be the last rows.
#[derive(Debug)]
pub struct Linger {
    linger_max: Duration,
    /// The deadline, once the stream is shut down.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Linger {
    /// Waits for the client for at most `linger_max` after the shutdown.
    #[must_use]
    pub fn new(linger_max: Duration) -> Self {
        Self { linger_max, deadline: None }
    }

    /// Shuts a stream down. Completes once the client has closed it, too, or the deadline has passed.
    ///
    /// # Errors
    /// If the shutdown fails.
    pub fn poll_shutdown<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if self.deadline.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(context))?;
        }
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(self.linger_max)));
        let mut bytes = [0; 4096];
        while deadline.as_mut().poll(context).is_pending() {
            let mut buffer = ReadBuf::new(&mut bytes);
            let read = ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer));
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
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    async fn closed(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let mut linger = Linger::new(Duration::from_secs(60));
        poll_fn(|context| linger.poll_shutdown(&mut stream, context)).await.unwrap();
    }

    #[tokio::test]
    async fn a_client_that_sends_while_it_reads_slowly_gets_all_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        client.write_all(b"is not read").await.unwrap();
        stream.readable().await.unwrap();
        // These are as many bytes as the buffers of both sides hold.
        let mut sent = 0;
        loop {
            match stream.try_write(&[0; 65_536]) {
                Ok(written) => sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let closing = tokio::spawn(closed(stream));
        // Without lingering, the connection would be closed by then.
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
        client.write_all(b"more").await.unwrap();
        let started = tokio::time::Instant::now();
        closed(stream).await;
        assert_eq!(started.elapsed().as_secs(), 60);
    }
}
