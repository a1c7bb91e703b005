//! Connections, with the state of their clients.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OnceCell;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::transport::server::Connected;

use crate::listen::{Accepted, Certificate, Linger, MaybeTls, Place, TooManyConnections};
use crate::sql::Session;
use crate::users::User;

/// The protocol in the ALPN extension of TLS.
const ALPN: &[u8] = b"h2";
/// The maximum time for a client to close its connection after the last bytes were sent.
const LINGER_MAX: Duration = Duration::from_secs(30);

/// The client of a connection.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    place: Arc<Place>,
    is_logged_in: AtomicBool,
    /// The session of the connection, on servers without passwords.
    session: OnceCell<Arc<Session>>,
}

impl Caller {
    fn new(address: SocketAddr, place: Arc<Place>) -> Self {
        let shared = Shared { place, is_logged_in: false.into(), session: OnceCell::new() };
        Self { address, shared: Arc::new(shared) }
    }

    /// Registers that a user has logged in over this connection, which counts from now on.
    ///
    /// # Errors
    /// If there are too many connections.
    pub(super) fn logged_in(&self, user: &User) -> Result<(), TooManyConnections> {
        self.shared.place.admit(user)?;
        self.shared.is_logged_in.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The session of this connection, which `login` creates on first use.
    pub(super) async fn session(
        &self,
        login: impl Future<Output = Result<Arc<Session>, Status>>,
    ) -> Result<Arc<Session>, Status> {
        self.shared.session.get_or_try_init(|| login).await.cloned()
    }

    /// Completes after this time unless a user has logged in by then, or once the connection must make place for
    /// others.
    async fn overdue(self, login_max: Duration) {
        tokio::select! {
            () = tokio::time::sleep(login_max) => {}
            () = self.shared.place.must_leave() => return,
        }
        if self.shared.is_logged_in.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    }
}

/// A connection, which is counted until it is dropped. It ends if no user logs in over it in time, and when the server
/// has stopped.
pub(super) struct Connection {
    stream: MaybeTls,
    linger: Linger,
    caller: Caller,
    /// `None` once it has completed.
    end: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
}

impl Connection {
    /// Accepts a connection, which is encrypted if there is a certificate.
    ///
    /// # Errors
    /// If the TLS handshake fails or takes too long.
    pub(super) async fn new(
        accepted: Accepted,
        certificate: Option<&Certificate>,
        login_max: Duration,
        stopped: CancellationToken,
    ) -> io::Result<Self> {
        let Accepted { stream, address, place } = accepted;
        let stream = match certificate {
            Some(certificate) => {
                let accepting =
                    TlsAcceptor::from(certificate.for_protocols(&[ALPN]).0).accept(stream);
                MaybeTls::Tls(Box::new(tokio::time::timeout(login_max, accepting).await??))
            }
            None => MaybeTls::Plain(stream),
        };
        let caller = Caller::new(address, place);
        let overdue = caller.clone().overdue(login_max);
        let end = async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                () = overdue => {}
            }
        };
        let linger = Linger::new(LINGER_MAX);
        Ok(Self { stream, linger, caller, end: Some(Box::pin(end)) })
    }

    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if let Some(end) = &mut self.end {
            if end.as_mut().poll(context).is_pending() {
                return Ok(());
            }
            self.end = None;
        }
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}

impl Connected for Connection {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        let Self { stream, linger, .. } = &mut *self;
        linger.poll_shutdown(stream, context)
    }
}
