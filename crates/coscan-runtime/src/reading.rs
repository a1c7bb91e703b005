//! Where loads run.
//!
//! A query polls for milliseconds without giving its thread back. A load that shared the thread would find out that
//! late what a device has answered, and the device would have nothing to do meanwhile. So loads have threads of their
//! own, and the operating system wakes these at once.

use tokio::runtime::{Builder, Handle, Runtime};

use crate::options::{OptionsError, cores};

/// A thread can take in what a device of some gigabytes a second reads for so many cores.
const CORES_PER_THREAD: usize = 4;

/// The tokio runtime of a manager's loads and timers.
#[derive(Debug)]
pub(crate) struct Reading {
    handle: Handle,
    /// The runtime itself, if it is of this manager alone.
    own: Option<Runtime>,
}

impl Reading {
    /// On threads of its own.
    pub(crate) fn on_own_threads() -> Result<Self, OptionsError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(cores().div_ceil(CORES_PER_THREAD))
            .thread_name("coscan-reads")
            .enable_all()
            .build()
            .map_err(|error| OptionsError::NoThreads { reason: error.to_string() })?;
        Ok(Self { handle: runtime.handle().clone(), own: Some(runtime) })
    }

    /// On a runtime that others use, too.
    pub(crate) fn on(runtime: &Handle) -> Self {
        Self { handle: runtime.clone(), own: None }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Reading {
    /// Waits for nothing: the last to let go of a manager may be one of its loads, or an async task.
    fn drop(&mut self) {
        if let Some(runtime) = self.own.take() {
            runtime.shutdown_background();
        }
    }
}
