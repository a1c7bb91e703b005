//! Fragments that go round a ring of servers: a connection of their own to the successor, which stands still while that has
//! no space.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use coscan_runtime::ring::{CirculateMessage, NodeId};
use coscan_runtime::{CirculatingMessage, OutgoingFragment};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{sleep, timeout};

use crate::frame::{self, Frame, invalid};
use crate::handshake::{Purpose, dial};
use crate::link::{LinkState, LinkStatus};
use crate::members::Members;

/// The pause after a connection that broke or was not made.
const PAUSE: Duration = Duration::from_millis(100);

/// The interval of pings on an idle connection.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// Fragments that wait to be sent to another server.
#[derive(Debug)]
pub(crate) struct FragmentQueue {
    pub(crate) address: String,
    pub(crate) fragments: UnboundedReceiver<OutgoingFragment>,
    pub(crate) state: Arc<LinkState>,
}

impl FragmentQueue {
    /// Sends them in order until there is no link any more. The connection is made for the first.
    pub(crate) async fn run(mut self, members: Arc<Members>) {
        let stopping = members.stopping.clone();
        stopping.run_until_cancelled(self.send_all(&members)).await;
    }

    async fn send_all(&mut self, members: &Members) {
        let mut connection = None;
        loop {
            let next = async {
                let Some(to) = &mut connection else { return Ok(self.fragments.recv().await) };
                next(&mut self.fragments, to).await
            };
            match next.await {
                Ok(Some(fragment)) => self.send(fragment, &mut connection, members).await,
                Ok(None) => return,
                Err(_) => connection = None,
            }
        }
    }

    /// Sends a fragment, again if its connection breaks, unless it is not to be sent any more.
    async fn send(
        &self,
        fragment: OutgoingFragment,
        connection: &mut Option<Connection>,
        members: &Members,
    ) {
        while fragment.bytes().is_some() {
            let sent = async {
                let to = match connection {
                    Some(to) => to,
                    None => connection.insert(self.connect(members).await?),
                };
                let message = CirculateMessage::Fragment(fragment.header);
                let frame = Frame::Circulating(CirculatingMessage { files: Vec::new(), message });
                if let Some(bytes) = fragment.bytes() {
                    let header = frame::encode(&frame)?;
                    frame::write(to, &header, std::slice::from_ref(&bytes)).await?;
                    to.flush().await?;
                    self.state.traffic.count_sent(bytes.len() as u64);
                }
                io::Result::Ok(())
            };
            // A server that is gone need not say so: its link tells.
            let sent = tokio::select! {
                sent = sent => sent,
                () = self.is_down() => Err(io::ErrorKind::ConnectionAborted.into()),
            };
            match sent {
                Ok(()) => return fragment.sent(),
                Err(error) => {
                    log::debug!("a fragment is not sent to {} yet: {error}", self.address);
                    *connection = None;
                    sleep(PAUSE).await;
                }
            }
        }
    }

    async fn connect(&self, members: &Members) -> io::Result<Connection> {
        let dialed = dial(&members.own, &self.address, Purpose::Fragments, &members.tls).await;
        let (_, stream) = dialed.map_err(|error| invalid(error.to_string()))?;
        Ok(BufWriter::with_capacity(64 << 10, Box::new(stream)))
    }

    async fn is_down(&self) {
        let mut status = self.state.status.subscribe();
        let _ = status.wait_for(|&status| status == LinkStatus::Down).await;
    }
}

type Connection = BufWriter<Box<dyn AsyncWrite + Send + Unpin>>;

/// The next fragment; until then, signs of life.
async fn next(
    fragments: &mut UnboundedReceiver<OutgoingFragment>,
    to: &mut Connection,
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
