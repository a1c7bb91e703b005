//! Ctrl-C, noticed even while queries keep all threads of the runtime busy.

use std::future;
use std::thread;

use tokio::runtime::Builder;
use tokio::sync::oneshot;

/// Completes when the user presses Ctrl-C. Until it is first polled, Ctrl-C ends the process as usual.
///
/// Threads of the runtime check for signals between tasks, and an operator may run one task for minutes. So a thread of
/// its own waits for this signal.
pub(crate) async fn interrupted() {
    let (sender, receiver) = oneshot::channel();
    let wait = move || {
        let runtime = Builder::new_current_thread().enable_io().build();
        if runtime.is_ok_and(|runtime| runtime.block_on(tokio::signal::ctrl_c()).is_ok()) {
            // Without a receiver, the command has ended already.
            sender.send(()).ok();
        }
    };
    let waiting = thread::Builder::new().name("interrupt".to_owned()).spawn(wait);
    if waiting.is_err() || receiver.await.is_err() {
        future::pending().await // Without a thread or signals, Ctrl-C is never noticed.
    }
}
