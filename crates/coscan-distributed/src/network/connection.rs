//! A connection between two servers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

/// A connection of either side, encrypted or not.
pub(super) struct Connection {
    stream: Pin<Box<dyn Bytes>>,
    /// Completes when the connection has to end.
    ended: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

trait Bytes: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Bytes for T {}

impl Connection {
    pub(super) fn new(stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        Self { stream: Box::pin(stream), ended: None }
    }

    /// Ends the connection once a token is cancelled.
    pub(super) fn ending_with(self, token: CancellationToken) -> Self {
        Self { ended: Some(Box::pin(token.cancelled_owned())), ..self }
    }
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) -> Self::ConnectInfo {}
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(ended) = &mut self.ended
            && ended.as_mut().poll(context).is_ready()
        {
            self.ended = None;
            self.stream = Box::pin(tokio::io::empty());
        }
        self.stream.as_mut().poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(context)
    }
}
