//! Threads that run queries and plan statements.

use std::io;
use std::thread::available_parallelism;

use tokio::runtime::{Builder, Handle, Runtime};

/// The stack that a thread needs for the deepest statements that are accepted, in bytes. They are walked by recursion.
pub const STACK_BYTES: usize = 16 << 20;

/// Threads for each core. An operator that keeps a thread for long leaves the core to be shared with others.
const THREADS_PER_CORE: usize = 4;

/// Threads of queries.
#[derive(Debug)]
pub(super) struct QueryThreads(Option<Runtime>);

impl QueryThreads {
    /// So many threads; `None` for some per core.
    pub(super) fn new(count: Option<usize>) -> io::Result<Self> {
        let cores = || available_parallelism().map_or(1, usize::from);
        let threads = count.unwrap_or_else(|| THREADS_PER_CORE * cores());
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(threads).enable_all();
        builder.thread_name("coscan-queries").thread_stack_size(STACK_BYTES);
        Ok(Self(Some(builder.build()?)))
    }

    pub(super) fn handle(&self) -> Handle {
        match &self.0 {
            Some(runtime) => runtime.handle().clone(),
            None => Handle::current(), // Only while they are dropped.
        }
    }
}

impl Drop for QueryThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background(); // A busy thread is not waited for.
        }
    }
}
