//! What is sent to another server: over one connection, which is made again when it breaks.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use coscan_runtime::Outgoing;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_rustls::TlsConnector;

use crate::credentials::TlsConfigs;
use crate::frame::{self, ALIVE, Frame, Hello, WELCOME};
use crate::stall::StallGuard;

/// How long a connection may take to be made.
const CONNECTING_MAX: Duration = Duration::from_secs(5);

/// The pause before the next attempt doubles up to this.
const PAUSE_MAX: Duration = Duration::from_secs(2);
const PAUSE_MIN: Duration = Duration::from_millis(50);

/// How long the other side may take nothing: pages that wait to be sent are in use.
const STALL_MAX: Duration = Duration::from_secs(2);

/// How often the other side is asked whether it is alive, and after how long without an answer it is not. Pages that were sent
/// before come first.
const PING_INTERVAL: Duration = Duration::from_secs(1);
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// The way to another server.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) address: String,
    /// Requests and what is short.
    control: UnboundedSender<Outgoing>,
    pages: UnboundedSender<Outgoing>,
    state: Arc<LinkState>,
}

#[derive(Debug, Default)]
pub(crate) struct LinkState {
    pub(crate) is_up: AtomicBool,
    pub(crate) bytes_sent: AtomicU64,
}

/// What waits to be sent.
#[derive(Debug)]
pub(crate) struct Queue {
    control: UnboundedReceiver<Outgoing>,
    pages: UnboundedReceiver<Outgoing>,
    state: Arc<LinkState>,
}

impl Link {
    pub(crate) fn new(address: String) -> (Self, Queue) {
        let (control, control_queue) = unbounded_channel();
        let (pages, pages_queue) = unbounded_channel();
        let state = Arc::<LinkState>::default();
        let queue = Queue { control: control_queue, pages: pages_queue, state: Arc::clone(&state) };
        (Self { address, control, pages, state }, queue)
    }

    /// Queues a message. While there is no connection it is lost.
    pub(crate) fn send(&self, message: Outgoing) {
        if self.state.is_up.load(Ordering::Acquire) {
            let queue = if message.pages.is_empty() { &self.control } else { &self.pages };
            let _ = queue.send(message);
        }
    }

    pub(crate) fn state(&self) -> &LinkState {
        &self.state
    }
}

impl Queue {
    /// Keeps a connection, and calls `changed` when there is one and when there is none any more.
    pub(crate) async fn run(
        mut self,
        own: &str,
        address: &str,
        tls: &TlsConfigs,
        changed: impl Fn(),
    ) {
        let mut pause = PAUSE_MIN;
        loop {
            let connecting = connect(own, address, tls);
            let connected = tokio::time::timeout(CONNECTING_MAX, connecting).await;
            let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            let error = match connected {
                Ok(stream) => {
                    pause = PAUSE_MIN;
                    log::info!("connected to {address} to share pages");
                    self.state.is_up.store(true, Ordering::Release);
                    changed();
                    let error = self.send_all(stream).await;
                    self.state.is_up.store(false, Ordering::Release);
                    changed();
                    self.drop_all();
                    log::warn!("the connection to {address} to share pages is lost: {error}");
                    error
                }
                Err(error) => error,
            };
            if pause >= PAUSE_MAX {
                log::debug!("cannot connect to {address} to share pages: {error}");
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
            self.drop_all(); // What was queued just before it broke.
        }
    }

    fn drop_all(&mut self) {
        while self.control.try_recv().is_ok() || self.pages.try_recv().is_ok() {}
    }

    /// Sends what is queued, until the connection breaks.
    async fn send_all(&mut self, stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Error {
        let (mut back, to) = tokio::io::split(stream);
        let mut to = BufWriter::with_capacity(64 << 10, StallGuard::new(to, STALL_MAX));
        let asked = watch::Sender::new(None);
        let mut asks = tokio::time::interval(PING_INTERVAL);
        asks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let sending = async {
            loop {
                if let Err(error) = self.send_next(&mut to, &mut asks, &asked).await {
                    return error;
                }
            }
        };
        tokio::select! {
            error = sending => error,
            error = hear(&mut back, &asked) => error,
        }
    }

    /// Sends what comes next: short messages first, they may tell others what to do meanwhile.
    async fn send_next(
        &mut self,
        to: &mut (impl AsyncWrite + Unpin),
        asks: &mut Interval,
        asked: &watch::Sender<Option<Instant>>,
    ) -> io::Result<()> {
        let queued = tokio::select! {
            biased;
            _ = asks.tick() => None,
            message = self.next_queued() => Some(message),
            // Nothing is queued: what is buffered is sent meanwhile.
            flushed = flush_then_wait(to) => return flushed,
        };
        match queued {
            Some(Outgoing { message, pages, .. }) => {
                let header = frame::encode(&Frame::Message(message))?;
                frame::write(to, &header, &pages).await?;
                let bytes: usize = pages.iter().map(bytes::Bytes::len).sum();
                let bytes = (header.len() + bytes) as u64;
                self.state.bytes_sent.fetch_add(bytes, Ordering::Relaxed);
            }
            // One question at a time: the answer to a later one would hide that the first is missing.
            None if asked.borrow().is_some() => {}
            None => {
                frame::write(to, &frame::encode(&Frame::Ping)?, &[]).await?;
                to.flush().await?;
                asked.send_replace(Some(Instant::now()));
            }
        }
        Ok(())
    }

    async fn next_queued(&mut self) -> Outgoing {
        tokio::select! {
            biased;
            Some(message) = self.control.recv() => message,
            Some(message) = self.pages.recv() => message,
            else => std::future::pending().await, // The transport is gone, and this with it.
        }
    }
}

/// Sends what is buffered, and waits for something to be queued.
async fn flush_then_wait(to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    to.flush().await?;
    std::future::pending().await
}

/// Takes the answers of the other side, until one is missing or the connection breaks.
async fn hear(
    back: &mut (impl AsyncRead + Unpin),
    asked: &watch::Sender<Option<Instant>>,
) -> io::Error {
    let mut asks = asked.subscribe();
    let mut answer = [0; 1];
    loop {
        let since = *asks.borrow_and_update();
        let overdue = async {
            match since {
                Some(since) => tokio::time::sleep_until(since + SILENCE_MAX).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            heard = back.read(&mut answer) => match heard {
                Err(error) => return error,
                Ok(0) => return io::ErrorKind::UnexpectedEof.into(),
                Ok(_) if answer == [ALIVE] => drop(asked.send_replace(None)),
                Ok(_) => return frame::invalid("an answer to nothing".to_owned()),
            },
            () = overdue => return io::ErrorKind::TimedOut.into(),
            _ = asks.changed() => {}
        }
    }
}

/// A connection over which the other side has welcomed this one.
async fn connect(
    own: &str,
    address: &str,
    tls: &TlsConfigs,
) -> io::Result<impl AsyncRead + AsyncWrite + Unpin + use<>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = match &tls.name {
        Some(name) => name.clone(),
        None => ServerName::try_from(host).map_err(|error| frame::invalid(error.to_string()))?,
    };
    let mut stream = TlsConnector::from(Arc::clone(&tls.client)).connect(name, stream).await?;
    stream.write_all(&frame::encode(&Hello::of(own))?).await?;
    stream.flush().await?;
    match stream.read_u8().await? {
        WELCOME => Ok(stream),
        _ => Err(frame::invalid("it does not speak this protocol".to_owned())),
    }
}
