//! Queries that allocate far more than they reserve. Operators reserve what they keep, but not all that they make in one
//! step, and some keep what they do not reserve. While the process has more memory than it may, the query that has allocated
//! most without reserving it is ended, by a [`watch`](AllocationWatch) over all of them.
//!
//! What a query allocates is what the threads that run its steps allocate meanwhile, less what they free, without decoded
//! columns, which all queries share.

mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::DataType;
use coscan_runtime::thread_decoded_bytes;
use datafusion::execution::memory_pool::{MemoryPool, human_readable_size};
use tokio::sync::watch::Sender;

use crate::queries::{ErrorKind, QueryError};
pub(super) use watch::AllocationWatch;
pub use watch::{Allocator, set_allocator};

/// What one query has allocated.
#[derive(Debug)]
pub(super) struct Allocations {
    watch: Arc<AllocationWatch>,
    user: Arc<str>,
    reserved: Arc<dyn MemoryPool>,
    /// Less what was freed and handed over.
    bytes: AtomicI64,
    ended: Sender<Option<QueryError>>,
}

impl Allocations {
    fn new(watch: Arc<AllocationWatch>, user: Arc<str>, reserved: Arc<dyn MemoryPool>) -> Self {
        Self { watch, user, reserved, bytes: AtomicI64::new(0), ended: Sender::new(None) }
    }

    fn user(&self) -> &str {
        &self.user
    }

    /// Runs a step of the query and counts what it allocates.
    pub(super) fn count<T>(&self, step: impl FnOnce() -> T) -> T {
        let Some(allocator) = self.watch.allocator() else { return step() };
        let now = || (allocator.thread_bytes)() - thread_decoded_bytes();
        let before = now();
        let result = step();
        self.add(now() - before);
        if self.unreserved_bytes() >= watch::QUERY_BYTES_MIN && !self.has_ended() {
            self.watch.look();
        }
        result
    }

    /// Others free these rows. Those of decoded columns were not counted, so this may be too much.
    pub(super) fn hand_over(&self, batch: &RecordBatch) {
        if self.watch.allocator().is_some() {
            let bytes: usize = batch.columns().iter().map(slice_bytes).sum();
            self.add(-i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }

    /// Never far below none: what others have made before must not hide what comes.
    fn add(&self, bytes: i64) {
        let least = -self.watch.suspect_bytes().cast_signed();
        let add = |held: i64| Some(held.saturating_add(bytes).max(least));
        let _always = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    fn unreserved_bytes(&self) -> u64 {
        let allocated = u64::try_from(self.bytes.load(Ordering::Relaxed)).unwrap_or(0);
        allocated.saturating_sub(self.reserved.reserved() as u64)
    }

    /// What it has in all.
    fn held_bytes(&self) -> u64 {
        let allocated = u64::try_from(self.bytes.load(Ordering::Relaxed)).unwrap_or(0);
        allocated.max(self.reserved.reserved() as u64)
    }

    fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    pub(super) fn end(&self) {
        let unreserved = usize::try_from(self.unreserved_bytes()).unwrap_or(usize::MAX);
        let text = format!(
            "the server is out of memory, and the query took {} more than it had reserved. Its rows are too wide, or it \
             keeps too many: select fewer or narrower columns, or filter earlier",
            human_readable_size(unreserved),
        );
        self.ended.send_replace(Some(QueryError::new(ErrorKind::Memory, text)));
    }

    /// Completes once the query must end, with the reason.
    pub(super) async fn exceeded(&self) -> QueryError {
        let mut ended = self.ended.subscribe();
        match ended.wait_for(Option::is_some).await.map(|error| error.clone()) {
            Ok(Some(error)) => error,
            _ => std::future::pending().await, // The sender lives as long as this.
        }
    }
}

/// Bytes of the values of an array, without what its buffers hold for others.
fn slice_bytes(array: &ArrayRef) -> usize {
    let texts = match array.data_type() {
        DataType::Utf8View => array.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => array.as_binary_view().total_buffer_bytes_used(),
        _ => 0,
    };
    texts + array.to_data().get_slice_memory_size().unwrap_or(0)
}

#[cfg(test)]
mod tests;
