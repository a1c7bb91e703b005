//! Limits queries that allocate far more than they reserve. Operators reserve the memory that they keep, but not all
//! that they allocate in one step. Some also keep memory that they do not reserve. While the process has more memory
//! than it may, an [`AllocationWatch`] over all queries ends the query that has allocated most without reserving it.
//!
//! The allocations of a query are those of the threads that run its steps, less what they free, without decoded
//! columns, which all queries share.

mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow::array::RecordBatch;
use coscan_datafusion::slice_bytes;
use coscan_runtime::thread_decoded_bytes;
use datafusion::execution::memory_pool::{MemoryPool, human_readable_size};
use tokio::sync::watch::Sender;

use crate::queries::{ErrorKind, QueryError};
pub(super) use watch::AllocationWatch;
pub use watch::{Allocator, set_allocator};

/// The allocations of one query.
#[derive(Debug)]
pub(super) struct Allocations {
    watch: Arc<AllocationWatch>,
    user: Arc<str>,
    reserved: Arc<dyn MemoryPool>,
    /// The allocated bytes, less those that were freed or handed over.
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

    /// Subtracts rows that others free. The memory of decoded columns was not counted, so this may subtract too much.
    pub(super) fn hand_over(&self, batch: &RecordBatch) {
        if self.watch.allocator().is_some() {
            self.add(-i64::try_from(slice_bytes(batch)).unwrap_or(i64::MAX));
        }
    }

    /// Adds to the bytes, which never fall far below zero. Otherwise memory that others have allocated would hide later
    /// allocations.
    fn add(&self, bytes: i64) {
        let least = -self.watch.suspect_bytes().cast_signed();
        let add = |held: i64| Some(held.saturating_add(bytes).max(least));
        let _always = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    fn unreserved_bytes(&self) -> u64 {
        let allocated = u64::try_from(self.bytes.load(Ordering::Relaxed)).unwrap_or(0);
        allocated.saturating_sub(self.reserved.reserved() as u64)
    }

    /// All bytes that the query holds.
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

    /// Completes with the reason once the query must end.
    pub(super) async fn exceeded(&self) -> QueryError {
        let mut ended = self.ended.subscribe();
        match ended.wait_for(Option::is_some).await.map(|error| error.clone()) {
            Ok(Some(error)) => error,
            _ => std::future::pending().await, // The sender lives as long as this.
        }
    }
}

#[cfg(test)]
mod tests;
