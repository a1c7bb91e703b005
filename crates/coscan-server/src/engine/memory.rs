//! The memory of one query, which is a part of the server's memory with its own limit.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, human_readable_size,
};

/// The memory that the operators of one query hold.
#[derive(Debug)]
pub(super) struct QueryMemory {
    server: Arc<dyn MemoryPool>,
    limit_bytes: usize,
    held_bytes: AtomicUsize,
}

impl QueryMemory {
    pub(super) fn new(server: Arc<dyn MemoryPool>, limit_bytes: u64) -> Self {
        let limit_bytes = usize::try_from(limit_bytes).unwrap_or(usize::MAX);
        Self { server, limit_bytes, held_bytes: AtomicUsize::new(0) }
    }
}

impl MemoryPool for QueryMemory {
    fn name(&self) -> &str {
        "query"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.server.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.server.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.held_bytes.fetch_add(additional, Ordering::Relaxed);
        self.server.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.held_bytes.fetch_sub(shrink, Ordering::Relaxed);
        self.server.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let fits =
            |held: usize| held.checked_add(additional).filter(|held| *held <= self.limit_bytes);
        let held = self.held_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        if let Err(held) = held {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "the query holds {} and may hold {}; {} needs {} more. Raise `query_memory_max` or `coscan.memory_limit`",
                human_readable_size(held),
                human_readable_size(self.limit_bytes),
                reservation.consumer().name(),
                human_readable_size(additional),
            )));
        }
        self.server.try_grow(reservation, additional).inspect_err(|_| {
            self.held_bytes.fetch_sub(additional, Ordering::Relaxed);
        })
    }

    fn reserved(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit_bytes)
    }
}

impl fmt::Display for QueryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (held, limit) = (self.reserved(), self.limit_bytes);
        write!(
            f,
            "query(used: {}, limit: {})",
            human_readable_size(held),
            human_readable_size(limit)
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    use super::*;

    #[test]
    fn a_query_holds_no_more_than_its_limit_and_the_server_counts_it() {
        let server: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1000));
        let query: Arc<dyn MemoryPool> = Arc::new(QueryMemory::new(Arc::clone(&server), 600));
        let reservation = MemoryConsumer::new("sort").register(&query);
        reservation.try_grow(500).unwrap();
        assert_eq!(server.reserved(), 500);
        let error = reservation.try_grow(200).unwrap_err().to_string();
        assert!(error.contains("query_memory_max"), "{error}");
        let other: Arc<dyn MemoryPool> = Arc::new(QueryMemory::new(Arc::clone(&server), 900));
        let beside = MemoryConsumer::new("join").register(&other);
        assert!(beside.try_grow(501).is_err());
        assert_eq!((other.reserved(), server.reserved()), (0, 500));
        drop(reservation);
        assert_eq!((query.reserved(), server.reserved()), (0, 0));
    }
}
