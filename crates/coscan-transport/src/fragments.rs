//! Fragments that go round a ring of servers. They have a connection of their own to the successor, which stands still
//! while the successor has no space.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use coscan_runtime::ring::{CirculateMessage, NodeId};
use coscan_runtime::{CirculatingMessage, OutgoingFragment};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, timeout};

use crate::frame::{self, Frame, invalid};
use crate::handshake::{Purpose, dial};
use crate::link::{FragmentQueue, LinkState, LinkStatus};
use crate::members::Members;

/// The pause after a connection that broke or was not made.
const PAUSE: Duration = Duration::from_millis(100);

/// The time for which a live server may take no fragment before it counts as broken, or as having other limits.
const REFUSED_MAX: Duration = Duration::from_secs(3);

/// The interval of pings on an idle connection.
const PING_INTERVAL: Duration = Duration::from_secs(5);

impl FragmentQueue {
    /// Sends fragments in order until the link is gone. The connection is made for the first.
    pub(crate) async fn run(mut self, members: Arc<Members>) {
        let stopping = members.stopping.clone();
        stopping.run_until_cancelled(self.send_all(&members)).await;
    }

    async fn send_all(&mut self, members: &Members) {
        let mut connection = None;
        loop {
            let is_down = is_down(&self.state);
            let next = async {
                let Some(Connection { to, .. }) = &mut connection else {
                    return Ok(self.fragments.recv().await);
                };
                tokio::select! {
                    next = next(&mut self.fragments, to) => next,
                    () = is_down => Err(io::ErrorKind::ConnectionAborted.into()),
                }
            };
            match next.await {
                Ok(Some(fragment)) => self.send(fragment, &mut connection, members).await,
                Ok(None) => return,
                Err(_) => connection = None,
            }
        }
    }

    /// Sends a fragment, again if its connection breaks, unless it is not to be sent any more. If a live server does
    /// not take it for long, it is dropped, so that others may move. A node that needs it asks again.
    async fn send(
        &self,
        fragment: OutgoingFragment,
        connection: &mut Option<Connection>,
        members: &Members,
    ) {
        let mut refused_since = None;
        while fragment.bytes().is_some() {
            let sent = tokio::select! {
                sent = self.try_send(&fragment, connection, members) => sent,
                // A server that is gone need not announce it, since its link does.
                () = is_down(&self.state) => Err(io::ErrorKind::ConnectionAborted.into()),
            };
            let Err(error) = sent else { return fragment.sent() };
            *connection = None;
            if *self.state.status.borrow() == LinkStatus::Down {
                refused_since = None; // The ring will change.
            } else if refused_since.get_or_insert_with(Instant::now).elapsed() >= REFUSED_MAX {
                log::warn!("{} takes no fragments, although it is there: {error}", self.address);
                return fragment.sent();
            }
            sleep(PAUSE).await;
        }
    }

    async fn try_send(
        &self,
        fragment: &OutgoingFragment,
        connection: &mut Option<Connection>,
        members: &Members,
    ) -> io::Result<()> {
        let losses = self.state.losses.load(Ordering::Relaxed);
        // A server that has lost one connection has lost the other, too, though this may not be
        // known yet.
        let Connection { to, .. } = match connection.take_if(|it| it.losses == losses) {
            Some(known) => connection.insert(known),
            None => {
                let to = self.connect(members).await?;
                connection.insert(Connection { to, losses })
            }
        };
        let message = CirculateMessage::Fragment(fragment.header);
        let frame = Frame::Circulating(CirculatingMessage { files: Vec::new(), message });
        if let Some(bytes) = fragment.bytes() {
            let header = frame::encode(&frame)?;
            frame::write(to, &header, std::slice::from_ref(&bytes)).await?;
            to.flush().await?;
            self.state.traffic.count_sent(bytes.len() as u64);
        }
        Ok(())
    }

    async fn connect(&self, members: &Members) -> io::Result<Stream> {
        let dialed = dial(&members.own, &self.address, Purpose::Fragments, &members.tls).await;
        let (_, stream) = dialed.map_err(|error| invalid(error.to_string()))?;
        Ok(BufWriter::with_capacity(64 << 10, Box::new(stream)))
    }
}

/// A connection, and the number of other connections that were lost before.
struct Connection {
    to: Stream,
    losses: u64,
}

type Stream = BufWriter<Box<dyn AsyncWrite + Send + Unpin>>;

async fn is_down(state: &LinkState) {
    let mut status = state.status.subscribe();
    let _ = status.wait_for(|&status| status == LinkStatus::Down).await;
}

/// The next fragment. Until it comes, signs of life are sent.
async fn next(
    fragments: &mut UnboundedReceiver<OutgoingFragment>,
    to: &mut Stream,
) -> io::Result<Option<OutgoingFragment>> {
    loop {
        if let Ok(next) = timeout(PING_INTERVAL, fragments.recv()).await {
            return Ok(next);
        }
        to.write_all(&frame::encode(&Frame::Ping)?).await?;
        to.flush().await?;
    }
}

/// Takes fragments from the predecessor, each when there is space for it.
pub(crate) async fn receive(
    from: NodeId,
    mut stream: impl AsyncRead + Unpin,
    members: &Members,
) -> io::Result<()> {
    loop {
        let header = match frame::read_header(&mut stream).await? {
            None => return Ok(()),
            Some(Frame::Ping) => continue,
            Some(Frame::Circulating(CirculatingMessage {
                message: CirculateMessage::Fragment(header),
                ..
            })) => header,
            Some(_) => return Err(invalid("expected a fragment".to_owned())),
        };
        if members.links.status(from) != LinkStatus::Up {
            return Err(invalid("it shares nothing with this server".to_owned()));
        }
        let space = members.cluster.fragment_space().await;
        let space = space.ok_or_else(|| invalid("nothing goes round here".to_owned()))?;
        let bytes = header.fragment.len_bytes();
        if bytes > space.bytes_max() {
            return Err(invalid(format!("a fragment of {bytes} bytes is too large")));
        }
        let page = frame::read_page(&mut stream, bytes as usize).await?;
        members.links.count_received(from, bytes);
        space.fill(header, page);
    }
}
