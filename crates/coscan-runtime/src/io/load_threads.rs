//! The threads of loads.
//!
//! A poll of a query may take milliseconds. A load on the same thread would notice the device's answer that late, and
//! the device would be idle meanwhile. So loads have threads of their own, which the operating system wakes at once.

use tokio::runtime::{Builder, Handle, Runtime};

use crate::machine::cores;
use crate::options::OptionsError;

/// The number of cores for each thread. One thread keeps up with a device of some gigabytes per second.
const CORES_PER_THREAD: usize = 4;

/// The tokio runtime of a manager's loads and timers.
#[derive(Debug)]
pub(crate) struct IoRuntime {
    handle: Handle,
    /// The runtime itself, if it belongs to this manager alone.
    own: Option<Runtime>,
}

impl IoRuntime {
    /// Creates a runtime on threads of its own.
    pub(crate) fn on_own_threads() -> Result<Self, OptionsError> {
        let runtime = Builder::new_multi_thread()
            // There is one more thread, so that loads continue while the pump looks for memory.
            .worker_threads(cores().div_ceil(CORES_PER_THREAD) + 1)
            .thread_name("coscan-reads")
            .enable_all()
            .build()
            .map_err(|error| OptionsError::NoThreads { reason: error.to_string() })?;
        Ok(Self { handle: runtime.handle().clone(), own: Some(runtime) })
    }

    /// Uses a runtime that the program uses, too.
    pub(crate) fn on(runtime: &Handle) -> Self {
        Self { handle: runtime.clone(), own: None }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for IoRuntime {
    /// Does not wait: this may run in one of the loads, or in an async task.
    fn drop(&mut self) {
        if let Some(runtime) = self.own.take() {
            runtime.shutdown_background();
        }
    }
}
