//! A limit on the time for which a client may read no bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream whose writes fail once its client has read no byte for `stall_max`.
#[derive(Debug)]
pub struct StallLimit<S> {
    stream: S,
    stall_max: Duration,
    /// The deadline, while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> StallLimit<S> {
    /// Adds the limit to a stream.
    pub fn new(stream: S, stall_max: Duration) -> Self {
        Self { stream, stall_max, stalled: None }
    }

    fn limited<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(self.stall_max)));
        match stalled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallLimit<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallLimit<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.limited(context, polled)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_flush(context);
        this.limited(context, polled)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_shutdown(context);
        this.limited(context, polled)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::Instant;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_given_up_one_that_is_slow_is_not() {
        let (near, mut far) = tokio::io::duplex(1);
        let mut limited = StallLimit::new(near, LIMIT);
        let slow = async {
            for _ in 0..3 {
                tokio::time::sleep(LIMIT * 2 / 3).await;
                far.read_u8().await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(limited.write_all(b"123"), slow);
        written.unwrap();
        limited.write_all(b"4").await.unwrap();
        let started = Instant::now();
        let error = limited.write_all(b"5").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed().as_secs(), LIMIT.as_secs());
    }
}
