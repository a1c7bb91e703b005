//! Messages to another server, over one connection that is made again when it breaks.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use coscan_runtime::Outgoing;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::credentials::MutualTls;
use crate::frame::{self, Frame};
use crate::handshake::{Purpose, dial};
use crate::link::{LinkState, LinkStatus, Queue, Queued};
use crate::pings::Pings;
use crate::stall::StallGuard;

/// The longest pause before the next attempt, up to which pauses double.
const PAUSE_MAX: Duration = Duration::from_secs(2);
const PAUSE_MIN: Duration = Duration::from_millis(50);

/// The life of a connection after which the next attempt is made at once.
const STABLE_MIN: Duration = Duration::from_secs(5);

/// The time for which a server that does not count as alive is dialled.
const FRUITLESS_MAX: Duration = Duration::from_secs(30);

/// The time for which the other side may take nothing. Pages that wait to be sent are in use.
const STALL_MAX: Duration = Duration::from_secs(2);

/// The interval at which the other side is asked whether it is alive.
const PING_INTERVAL: Duration = Duration::from_secs(1);
/// The interval as long as the other side has no connection back.
const FIRST_PING_INTERVAL: Duration = Duration::from_millis(50);

/// The time for messages that were queued before this server ended.
const FAREWELL_MAX: Duration = Duration::from_millis(500);

impl Queue {
    /// Keeps a connection, and calls `changed` whenever its status has changed. Returns when it is stopped, or when the
    /// server has not been reached for a while and is not alive.
    pub(crate) async fn run(
        mut self,
        own: &str,
        tls: &MutualTls,
        stopping: &CancellationToken,
        changed: impl Fn(LinkStatus),
        is_alive: impl Fn() -> bool,
    ) {
        let set = |state: &LinkState, status| {
            if state.status.send_replace(status) != status {
                changed(status);
            }
        };
        let (mut pause, mut fruitless_since, mut has_warned) = (PAUSE_MIN, Instant::now(), false);
        loop {
            let dialed = dial(own, &self.address, Purpose::Messages, tls);
            let Some(dialed) = stopping.run_until_cancelled(dialed).await else { return };
            let error = match dialed {
                Ok((address, stream)) if address == self.address => {
                    let since = Instant::now();
                    set(&self.state, LinkStatus::OneWay);
                    let error = self.send_all(own, stream, stopping, set).await;
                    self.state.losses.fetch_add(1, Ordering::Relaxed);
                    set(&self.state, LinkStatus::Down);
                    self.drop_all();
                    if stopping.is_cancelled() {
                        return;
                    }
                    log::warn!(
                        "the connection to {} to share pages is lost: {error}",
                        self.address
                    );
                    if since.elapsed() >= STABLE_MIN {
                        pause = PAUSE_MIN;
                    }
                    (fruitless_since, has_warned) = (Instant::now(), false);
                    error.to_string()
                }
                Ok((address, _)) => format!("the server there goes by {address}"),
                Err(error) => error.to_string(),
            };
            if fruitless_since.elapsed() >= FRUITLESS_MAX && !is_alive() {
                return;
            }
            if pause >= PAUSE_MAX && !has_warned {
                log::warn!("cannot connect to {} to share pages: {error}", self.address);
                has_warned = true;
            }
            if stopping.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return;
            }
            pause = (pause * 2).min(PAUSE_MAX);
            self.drop_all(); // What was queued just before it broke.
        }
    }

    fn drop_all(&mut self) {
        while self.control.try_recv().is_ok() || self.pages.try_recv().is_ok() {}
    }

    /// Sends queued messages, until the connection breaks or is to end.
    pub(crate) async fn send_all(
        &mut self,
        own: &str,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        stopping: &CancellationToken,
        set: impl Fn(&LinkState, LinkStatus),
    ) -> io::Error {
        self.is_between_frames = true;
        let (mut back, to) = tokio::io::split(stream);
        let mut to = BufWriter::with_capacity(64 << 10, StallGuard::new(to, STALL_MAX));
        let pings = Pings::default();
        let (state, address) = (Arc::clone(&self.state), self.address.clone());
        let mut next_ping = Instant::now();
        let sending = async {
            loop {
                if let Err(error) = self.send_next(&mut to, &mut next_ping, &pings).await {
                    return error;
                }
            }
        };
        let error = tokio::select! {
            error = sending => error,
            error = pings.hear(&mut back, |is_reached| {
                set(&state, if is_reached { LinkStatus::Up } else { LinkStatus::OneWay });
            }, || warn_one_way(&address, own)) => error,
            () = stopping.cancelled() => io::ErrorKind::ConnectionAborted.into(),
        };
        // After a part of a frame, the other server would take anything for the rest of it.
        if stopping.is_cancelled() && self.is_between_frames {
            let _in_time = tokio::time::timeout(FAREWELL_MAX, self.send_rest(&mut to)).await;
        }
        error
    }

    /// Sends the next message. Short ones go first, since others may act on them meanwhile.
    async fn send_next(
        &mut self,
        to: &mut (impl AsyncWrite + Unpin),
        next_ping: &mut Instant,
        pings: &Pings,
    ) -> io::Result<()> {
        let queued = tokio::select! {
            biased;
            () = tokio::time::sleep_until(*next_ping) => None,
            queued = self.next_queued() => Some(queued),
            // Nothing is queued, so the buffer is sent meanwhile.
            flushed = flush_then_wait(to) => return flushed,
        };
        if let Some(queued) = queued {
            return self.write(to, queued).await;
        }
        let is_up = *self.state.status.borrow() == LinkStatus::Up;
        *next_ping = Instant::now() + if is_up { PING_INTERVAL } else { FIRST_PING_INTERVAL };
        if pings.ask() {
            self.write_frame(to, &Frame::Ping, &[]).await?;
            to.flush().await?;
        }
        Ok(())
    }

    async fn write(
        &mut self,
        to: &mut (impl AsyncWrite + Unpin),
        queued: Queued,
    ) -> io::Result<()> {
        match queued {
            Queued::Membership(message) => {
                self.write_frame(to, &Frame::Membership(message), &[]).await
            }
            Queued::Circulating(message) => {
                self.write_frame(to, &Frame::Circulating(message), &[]).await
            }
            Queued::Message(outgoing) => {
                // The rest of the message is dropped when its pages are written.
                let Outgoing { message, pages, .. } = *outgoing;
                self.write_frame(to, &Frame::Message(message), &pages).await
            }
        }
    }

    async fn write_frame(
        &mut self,
        to: &mut (impl AsyncWrite + Unpin),
        frame: &Frame,
        pages: &[Bytes],
    ) -> io::Result<()> {
        let header = frame::encode(frame)?;
        self.is_between_frames = false;
        frame::write(to, &header, pages).await?;
        self.is_between_frames = true;
        self.state.traffic.count_sent(frame::bytes_of(pages));
        Ok(())
    }

    /// Sends short messages that were queued before this server ended.
    async fn send_rest(&mut self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        while let Ok(queued) = self.control.try_recv() {
            self.write(to, queued).await?;
        }
        to.flush().await
    }

    async fn next_queued(&mut self) -> Queued {
        tokio::select! {
            biased;
            Some(message) = self.control.recv() => message,
            Some(message) = self.pages.recv() => message,
            else => std::future::pending().await, // The transport is gone, and this with it.
        }
    }
}

/// Sends the buffer, and waits for something to be queued.
async fn flush_then_wait(to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    to.flush().await?;
    std::future::pending().await
}

fn warn_one_way(address: &str, own: &str) {
    log::warn!(
        "{address} cannot connect back to this server at {own}; nothing is shared with it. \
         Set ring.address to what the others can reach"
    );
}
