//! Messages from others: one connection for each of them that they dial.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coscan_runtime::ring::{Message, NodeId};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::fragments;
use crate::frame::{self, ALIVE, Frame, UNREACHED};
use crate::handshake::{Hello, Purpose, welcome};
use crate::link::LinkStatus;
use crate::members::Members;
use crate::node_id::node_id;
use crate::strangers::Strangers;

/// The pause when the system accepts no more connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The time within which another server must take an answer.
const ANSWERING_MAX: Duration = Duration::from_secs(10);

/// Takes connections until it is stopped.
pub(crate) async fn accept(listener: TcpListener, members: Arc<Members>) {
    let tls = TlsAcceptor::from(Arc::clone(&members.tls.server));
    let (strangers, newest) = (Strangers::default(), Newest::default());
    loop {
        let accepted = tokio::select! {
            () = members.stopping.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, address)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let stranger = strangers.enter(address.ip());
        let (tls, members, newest) = (tls.clone(), Arc::clone(&members), newest.clone());
        let strangers = strangers.clone();
        tokio::spawn(async move {
            let served = async {
                let welcomed = welcome(&members.own, stream, &tls);
                let welcomed = stranger.sent_away.run_until_cancelled(welcomed).await;
                strangers.leave(&stranger);
                match welcomed {
                    // Too many came after it, or it is this server itself.
                    None | Some(Ok(None)) => {}
                    Some(Err(error)) if strangers.is_news(address.ip()) => {
                        log::warn!("{address} may not share pages with this server: {error}");
                    }
                    Some(Err(_)) => {}
                    Some(Ok(Some((hello, stream)))) => {
                        strangers.welcome(address.ip());
                        serve(&hello, stream, &members, &newest).await;
                    }
                }
            };
            members.stopping.run_until_cancelled(served).await;
        });
    }
}

async fn serve(
    hello: &Hello,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    members: &Arc<Members>,
    newest: &Newest,
) {
    members.meet(&hello.address);
    let (from, purpose) = (node_id(&hello.address), hello.purpose);
    if purpose == Purpose::Discovery {
        return;
    }
    let turn = newest.replace((from, purpose));
    let heard = turn.heard.lock().await;
    if purpose == Purpose::Fragments {
        let received = fragments::receive(from, stream, members);
        if let Some(Err(error)) = turn.replaced.run_until_cancelled(received).await {
            log::warn!("the fragment connection from {} failed: {error}", hello.address);
        }
        newest.end((from, purpose), &turn);
        return;
    }
    if !turn.replaced.is_cancelled() {
        members.cluster.reconnected(from);
        let received = turn.replaced.run_until_cancelled(receive(from, stream, members)).await;
        if let Some(Err(error)) = received {
            log::warn!("a connection of {} to share pages has ended: {error}", hello.address);
        }
    }
    if newest.end((from, purpose), &turn) {
        members.cluster.disconnected(from);
    }
    drop(heard);
}

/// The newest connection of each server, for each purpose. Anything that an older one still sends is out of date.
#[derive(Clone, Debug, Default)]
struct Newest(Arc<Mutex<BTreeMap<(NodeId, Purpose), Turn>>>);

/// A connection that may be read.
#[derive(Clone, Debug, Default)]
struct Turn {
    /// Cancelled when a newer one has come.
    replaced: CancellationToken,
    /// The lock of the connection that is read. A newer one waits until the older has ended.
    heard: Arc<tokio::sync::Mutex<()>>,
}

impl Newest {
    /// Ends the connection that a server had before.
    fn replace(&self, of: (NodeId, Purpose)) -> Turn {
        let mut newest = self.lock();
        let before = newest.remove(&of);
        let heard = before.map(|before| {
            before.replaced.cancel();
            before.heard
        });
        let turn = Turn { heard: heard.unwrap_or_default(), ..Turn::default() };
        newest.insert(of, turn.clone());
        turn
    }

    /// Forgets a connection that has ended. Returns false if there is a newer one.
    fn end(&self, of: (NodeId, Purpose), turn: &Turn) -> bool {
        let mut newest = self.lock();
        let is_newest = !turn.replaced.is_cancelled();
        if is_newest {
            newest.remove(&of);
        }
        is_newest
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(NodeId, Purpose), Turn>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn receive(
    from: NodeId,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    members: &Arc<Members>,
) -> io::Result<()> {
    let cluster = &members.cluster;
    loop {
        let message = match frame::read_header(&mut stream).await? {
            None => return Ok(()),
            Some(Frame::Ping) => {
                let is_reached = members.links.status(from) != LinkStatus::Down;
                let answer = [if is_reached { ALIVE } else { UNREACHED }];
                let answered = async {
                    stream.write_all(&answer).await?;
                    stream.flush().await
                };
                // A server that asks, and does not read the answer, is not heard either.
                timeout(ANSWERING_MAX, answered).await.map_err(io::Error::from)??;
                continue;
            }
            Some(Frame::Membership(message)) => {
                members.handle(&message)?;
                continue;
            }
            Some(Frame::Circulating(message)) => {
                cluster.receive_circulating(message);
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
            members.links.count_received(from, frame::bytes_of(&pages));
            cluster.receive(from, message, pages);
        }
    }
}
