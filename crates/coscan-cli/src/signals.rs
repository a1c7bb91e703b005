//! Signals, which are received even while queries keep all threads of the runtime busy.

use std::io;
use std::sync::mpsc;
use std::thread;

use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Waits for Ctrl-C from the moment of this call, so that later work can be interrupted at any time. The future
/// completes when the user presses it.
pub(crate) fn interrupted() -> impl Future<Output = ()> {
    let mut interrupts = Interrupts::listen();
    async move { interrupts.next().await }
}

/// All Ctrl-C signals of the user. If a process has two of these, each of them gets all.
pub(crate) struct Interrupts(UnboundedReceiver<()>);

impl Interrupts {
    /// Receives Ctrl-C from now on. It no longer ends the process. If the system does not support this, nothing is
    /// received.
    pub(crate) fn listen() -> Self {
        let (sender, receiver) = unbounded_channel();
        wait_on_thread(|registered| forward(sender, registered));
        Self(receiver)
    }

    /// The next signal, which may have been received before this call.
    pub(crate) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending().await // Reported already.
        }
    }

    /// Discards the received signals.
    pub(crate) fn discard(&mut self) {
        while self.0.try_recv().is_ok() {}
    }
}

async fn forward(sender: UnboundedSender<()>, registered: Registered) -> io::Result<()> {
    #[cfg(unix)]
    let mut interrupt = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
    #[cfg(windows)]
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    drop(registered);
    // Without a receiver, the command has ended already.
    while interrupt.recv().await.is_some() && sender.send(()).is_ok() {}
    Ok(())
}

/// Dropping this reports that a future has registered for its signals.
pub(crate) type Registered = mpsc::Sender<()>;

/// Runs `wait` on a thread of its own, and returns once it has dropped its [`Registered`].
///
/// The thread is necessary because threads of the runtime check for signals between tasks, and an operator may run one
/// task for minutes. Waiting is necessary because a signal may arrive as soon as work has begun.
pub(crate) fn wait_on_thread<W, F>(wait: W)
where
    W: FnOnce(Registered) -> F + Send + 'static,
    F: Future<Output = io::Result<()>>,
{
    let (sender, receiver) = mpsc::channel();
    let run = move || {
        let runtime = Builder::new_current_thread().enable_io().build();
        if let Err(error) = runtime.and_then(|runtime| runtime.block_on(wait(sender))) {
            eprintln!("coscan: cannot wait for signals: {error}");
        }
    };
    match thread::Builder::new().name("signals".to_owned()).spawn(run) {
        Ok(_) => drop(receiver.recv()), // An error: the sender is gone, which is what is waited for.
        Err(error) => eprintln!("coscan: cannot wait for signals: {error}"),
    }
}
