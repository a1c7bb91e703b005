//! Signals to a server.

use std::io;

use tokio::sync::mpsc;

use crate::signals::{Registered, wait_on_thread};

/// The request of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Stop,
    Reload,
}

/// The signals in the order of arrival.
pub(super) struct Signals(mpsc::UnboundedReceiver<Signal>);

impl Signals {
    /// Receives signals from now on. If the system does not support this, none is received.
    pub(super) fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        wait_on_thread(|registered| forward(sender, registered));
        Self(receiver)
    }

    /// The next signal.
    pub(super) async fn next(&mut self) -> Signal {
        match self.0.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }
}

#[cfg(unix)]
async fn forward(sender: mpsc::UnboundedSender<Signal>, registered: Registered) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    drop(registered);
    loop {
        let signal = tokio::select! {
            _ = interrupt.recv() => Signal::Stop,
            _ = terminate.recv() => Signal::Stop,
            _ = hangup.recv() => Signal::Reload,
        };
        if sender.send(signal).is_err() {
            return Ok(());
        }
    }
}

#[cfg(windows)]
async fn forward(sender: mpsc::UnboundedSender<Signal>, registered: Registered) -> io::Result<()> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    drop(registered);
    while interrupt.recv().await.is_some() {
        if sender.send(Signal::Stop).is_err() {
            return Ok(());
        }
    }
    Ok(())
}
