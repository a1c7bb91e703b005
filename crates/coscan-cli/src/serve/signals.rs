//! Signals to a server, noticed even while queries keep all threads of the runtime busy: a thread of its own waits for
//! them.

use std::io;
use std::thread;

use tokio::runtime::Builder;
use tokio::sync::mpsc;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Stop,
    Reload,
}

/// Signals as they come.
pub(super) struct Signals(mpsc::UnboundedReceiver<Signal>);

impl Signals {
    /// Waits for signals from now on. Where that is impossible, none ever comes.
    pub(super) fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let wait = move || {
            let runtime = Builder::new_current_thread().enable_io().build();
            if let Err(error) = runtime.and_then(|runtime| runtime.block_on(forward(&sender))) {
                eprintln!("coscan: cannot wait for signals: {error}");
            }
        };
        if let Err(error) = thread::Builder::new().name("signals".to_owned()).spawn(wait) {
            eprintln!("coscan: cannot wait for signals: {error}");
        }
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
async fn forward(sender: &mpsc::UnboundedSender<Signal>) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
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

#[cfg(not(unix))]
async fn forward(sender: &mpsc::UnboundedSender<Signal>) -> io::Result<()> {
    loop {
        tokio::signal::ctrl_c().await?;
        if sender.send(Signal::Stop).is_err() {
            return Ok(());
        }
    }
}
