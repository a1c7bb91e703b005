//! What others send: one connection for each of them that they dial.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use coscan_runtime::Cluster;
use coscan_runtime::ring::{Message, NodeId};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::frame::{self, ALIVE, Frame, Hello, WELCOME};
use crate::node_id::node_id;

/// Connections at a time, those that have not said who they are included.
const CONNECTIONS_MAX: usize = 1024;

/// How long others may take to say who they are.
const INTRODUCTION_MAX: Duration = Duration::from_secs(5);

/// How long to wait when the system accepts no more connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Takes connections until it is cancelled.
pub(crate) async fn accept(
    listener: TcpListener,
    tls: TlsAcceptor,
    cluster: Arc<Cluster>,
    stopping: CancellationToken,
) {
    let (free, newest) = (Arc::new(Semaphore::new(CONNECTIONS_MAX)), Newest::default());
    loop {
        let accepted = tokio::select! {
            () = stopping.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, address)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&free).try_acquire_owned() else { continue };
        let (tls, cluster, stopping) = (tls.clone(), Arc::clone(&cluster), stopping.clone());
        let newest = newest.clone();
        tokio::spawn(async move {
            let served = async {
                let introduced = introduced(stream, &tls);
                let introduced = tokio::time::timeout(INTRODUCTION_MAX, introduced).await;
                let (hello, stream) = introduced.map_err(|_| io::ErrorKind::TimedOut)??;
                let from = node_id(&hello.address);
                let replaced = newest.replace(from);
                cluster.reconnected(from);
                tokio::select! {
                    biased;
                    () = replaced.cancelled() => Ok(()),
                    ended = receive(from, stream, &cluster) => ended,
                }
            };
            tokio::select! {
                () = stopping.cancelled() => {}
                ended = served => if let Err(error) = ended {
                    log::warn!("a connection of {address} to share pages has ended: {error}");
                },
            }
            drop(permit);
        });
    }
}

/// The newest connection of each server, by the token that ends it. What an older one still has to say is out of date.
#[derive(Clone, Debug, Default)]
struct Newest(Arc<Mutex<BTreeMap<NodeId, CancellationToken>>>);

impl Newest {
    /// Ends the connection that a server had before. Returns the token of the new one.
    fn replace(&self, node: NodeId) -> CancellationToken {
        let token = CancellationToken::new();
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = newest.insert(node, token.clone()) {
            before.cancel();
        }
        token
    }
}

/// TLS and the first frame.
async fn introduced(
    stream: TcpStream,
    tls: &TlsAcceptor,
) -> io::Result<(Hello, impl AsyncRead + AsyncWrite + Unpin + use<>)> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::with_capacity(64 << 10, tls.accept(stream).await?);
    let hello: Option<Hello> = frame::read_header(&mut stream).await?;
    let hello = hello.ok_or(io::ErrorKind::UnexpectedEof)?;
    hello.check()?;
    stream.write_all(&[WELCOME]).await?;
    stream.flush().await?;
    Ok((hello, stream))
}

async fn receive(
    from: NodeId,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    cluster: &Cluster,
) -> io::Result<()> {
    loop {
        let message = match frame::read_header(&mut stream).await? {
            None => return Ok(()),
            Some(Frame::Ping) => {
                stream.write_all(&[ALIVE]).await?;
                stream.flush().await?;
                continue;
            }
            Some(Frame::Message(message)) => message,
        };
        let sizes = frame::page_sizes(&message)?;
        let is_expected = match &message {
            Message::Pages { get, file, pages } => cluster.expects(from, *get, file, pages),
            _ => true,
        };
        let rest = async {
            if is_expected {
                return frame::read_pages(&mut stream, &sizes).await.map(Some);
            }
            frame::skip_pages(&mut stream, &sizes).await.map(|()| None)
        };
        if let Some(pages) = rest.await? {
            cluster.receive(from, message, pages);
        }
    }
}
