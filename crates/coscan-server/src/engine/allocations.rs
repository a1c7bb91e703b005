//! Queries that allocate far more than they reserve. Operators reserve what they keep, but not all that they make in one
//! step, and some keep what they do not reserve. While the process holds more than it may, the query that has allocated
//! most without reserving it is ended.
//!
//! What a query allocates is what the threads that run its steps allocate meanwhile, less what they free.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use coscan_runtime::{BufferManager, ManagerReport};
use datafusion::execution::memory_pool::{MemoryPool, human_readable_size};
use tokio::sync::watch;

use crate::queries::{ErrorKind, QueryError};

/// What the allocator of the program counts. Without it, nothing bounds what queries allocate and do not reserve.
#[derive(Clone, Copy, Debug)]
pub struct AllocatorCounters {
    /// What the process has allocated and not freed, in bytes.
    pub process_bytes: fn() -> u64,
    /// What the calling thread has allocated, less what it has freed, in bytes.
    pub thread_bytes: fn() -> i64,
}

static COUNTERS: OnceLock<AllocatorCounters> = OnceLock::new();

/// Tells the servers of this process what its allocator counts. Only the first call counts, and only for servers that
/// start afterwards.
pub fn count_allocations(counters: AllocatorCounters) {
    let _only_once = COUNTERS.set(counters);
}

/// A query is not ended for less than one of so many parts of the memory.
const SUSPECT_PART: u64 = 16;

/// Nor for less than this, in bytes: batches of wide rows that are on their way.
const SUSPECT_BYTES_MIN: u64 = 32 << 20;

/// Beside what it holds without queries, the process may hold so many tenths of the memory.
const PROCESS_TENTHS: u64 = 11;

/// The allocations of all queries.
#[derive(Debug)]
pub(super) struct AllocationWatch {
    counters: Option<AllocatorCounters>,
    manager: BufferManager,
    /// What the process held when the first query came, in bytes, without what the budget counts.
    idle_bytes: OnceLock<u64>,
    queries: Mutex<Vec<Weak<Allocations>>>,
}

impl AllocationWatch {
    /// Over a server with this manager's memory.
    pub(super) fn new(manager: &BufferManager) -> Arc<Self> {
        Self::with(COUNTERS.get().copied(), manager)
    }

    fn with(counters: Option<AllocatorCounters>, manager: &BufferManager) -> Arc<Self> {
        let (manager, idle_bytes) = (manager.clone(), OnceLock::new());
        Arc::new(Self { counters, manager, idle_bytes, queries: Mutex::default() })
    }

    /// A query that reserves its memory in a pool of its own.
    pub(super) fn query(self: &Arc<Self>, reserved: &Arc<dyn MemoryPool>) -> Arc<Allocations> {
        let allocations = Arc::new(Allocations {
            watch: Arc::clone(self),
            reserved: Arc::clone(reserved),
            bytes: AtomicI64::new(0),
            ended: watch::Sender::new(None),
        });
        if let Some(counters) = self.counters {
            self.idle_bytes.get_or_init(|| {
                let ManagerReport {
                    pool_held_bytes,
                    decoded_bytes,
                    operator_bytes,
                    metadata_bytes,
                    ..
                } = self.manager.report();
                let counted = pool_held_bytes + decoded_bytes + operator_bytes + metadata_bytes;
                (counters.process_bytes)().saturating_sub(counted)
            });
            let mut queries = self.queries();
            queries.retain(|query| query.strong_count() > 0);
            queries.push(Arc::downgrade(&allocations));
        }
        allocations
    }

    fn queries(&self) -> MutexGuard<'_, Vec<Weak<Allocations>>> {
        self.queries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn memory_bytes(&self) -> u64 {
        self.manager.options().memory_bytes
    }

    /// How much of a query is worth a look, in bytes.
    fn suspect_bytes(&self) -> u64 {
        (self.memory_bytes() / SUSPECT_PART).max(SUSPECT_BYTES_MIN)
    }

    /// Ends the query that has allocated most, if the process holds too much without those that are about to end.
    fn look(&self, counters: AllocatorCounters) {
        let queries: Vec<_> = self.queries().iter().filter_map(Weak::upgrade).collect();
        let (ended, others): (Vec<_>, Vec<_>) =
            queries.iter().partition(|query| query.ended.borrow().is_some());
        let ending: u64 = ended.iter().map(|query| query.unreserved_bytes()).sum();
        let held = (counters.process_bytes)().saturating_sub(ending);
        let idle_bytes = self.idle_bytes.get().copied().unwrap_or(0);
        if held <= idle_bytes + self.memory_bytes() / 10 * PROCESS_TENTHS {
            return;
        }
        let largest = others.iter().max_by_key(|query| query.unreserved_bytes());
        if let Some(query) = largest {
            query.end();
        }
    }
}

/// What one query has allocated.
#[derive(Debug)]
pub(super) struct Allocations {
    watch: Arc<AllocationWatch>,
    reserved: Arc<dyn MemoryPool>,
    /// Less what was freed and handed over; may be less than none, since others free what it has made.
    bytes: AtomicI64,
    ended: watch::Sender<Option<QueryError>>,
}

impl Allocations {
    /// Runs a step of the query and counts what it allocates.
    pub(super) fn count<T>(&self, step: impl FnOnce() -> T) -> T {
        let Some(counters) = self.watch.counters else { return step() };
        let before = (counters.thread_bytes)();
        let result = step();
        self.add((counters.thread_bytes)() - before);
        if self.unreserved_bytes() >= self.watch.suspect_bytes() {
            self.watch.look(counters);
        }
        result
    }

    /// Others free this.
    pub(super) fn hand_over(&self, bytes: usize) {
        self.add(-i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Never below none: what others have made before must not hide what comes.
    fn add(&self, bytes: i64) {
        let add = |held: i64| Some(held.saturating_add(bytes).max(0));
        let _always = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    fn unreserved_bytes(&self) -> u64 {
        let allocated = u64::try_from(self.bytes.load(Ordering::Relaxed)).unwrap_or(0);
        allocated.saturating_sub(self.reserved.reserved() as u64)
    }

    fn end(&self) {
        let unreserved = usize::try_from(self.unreserved_bytes()).unwrap_or(usize::MAX);
        let error = QueryError::new(
            ErrorKind::Memory,
            format!(
                "the server is out of memory, and the query took {} more than it had reserved. Its rows are too wide, or \
                 it keeps too many: select fewer or narrower columns, or filter earlier",
                human_readable_size(unreserved),
            ),
        );
        self.ended.send_if_modified(|ended| {
            let is_first = ended.is_none();
            *ended = Some(error);
            is_first
        });
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::cell::Cell;
    use std::sync::atomic::AtomicU64;

    use coscan_runtime::Options;
    use datafusion::execution::memory_pool::{MemoryConsumer, UnboundedMemoryPool};
    use futures::FutureExt;

    use super::*;

    const MIB: i64 = 1 << 20;

    thread_local! {
        static THREAD: Cell<i64> = const { Cell::new(0) };
    }

    /// Tests that run at the same time must not see each other's process.
    macro_rules! counters {
        ($process:ident) => {{
            static PROCESS: AtomicU64 = AtomicU64::new(0);
            $process = &PROCESS;
            let counters = AllocatorCounters {
                process_bytes: || PROCESS.load(Ordering::Relaxed),
                thread_bytes: || THREAD.get(),
            };
            let manager = BufferManager::new(Options::with_memory_bytes(1000 << 20)).unwrap();
            AllocationWatch::with(Some(counters), &manager)
        }};
    }

    fn pool() -> Arc<dyn MemoryPool> {
        Arc::new(UnboundedMemoryPool::default())
    }

    fn allocate(query: &Allocations, bytes: i64) {
        query.count(|| THREAD.set(THREAD.get() + bytes));
    }

    fn error(query: &Allocations) -> Option<QueryError> {
        query.exceeded().now_or_never()
    }

    #[test]
    fn the_query_that_took_most_ends_once_the_process_holds_too_much() {
        let process: &AtomicU64;
        let watch = counters!(process);
        process.store(200 << 20, Ordering::Relaxed);
        let [small, large, reserved] = [pool(), pool(), pool()];
        let memory = MemoryConsumer::new("sort").register(&reserved);
        let [small, large, reserved] = [small, large, reserved].map(|pool| watch.query(&pool));
        memory.try_grow(900 << 20).unwrap();
        process.store(1300 << 20, Ordering::Relaxed);
        allocate(&reserved, 900 * MIB);
        allocate(&large, 200 * MIB);
        assert_eq!(error(&large), None, "there is memory");
        process.store(1301 << 20, Ordering::Relaxed);
        allocate(&small, 100 * MIB);
        assert_eq!(error(&large).unwrap().kind, ErrorKind::Memory);
        assert_eq!((error(&small), error(&reserved)), (None, None));
        allocate(&small, 1);
        assert_eq!(error(&small), None, "what the other one has is about to come back");
        drop(large);
        allocate(&small, 1);
        assert!(error(&small).is_some());
    }

    #[test]
    fn what_was_freed_or_handed_over_does_not_count() {
        let process: &AtomicU64;
        let watch = counters!(process);
        let query = watch.query(&pool());
        process.store(2000 << 20, Ordering::Relaxed);
        allocate(&query, -500 * MIB);
        for _ in 0..10 {
            allocate(&query, 50 * MIB);
            query.hand_over(25 << 20);
            allocate(&query, -25 * MIB);
        }
        assert_eq!(error(&query), None);
        allocate(&query, 100 * MIB);
        assert!(error(&query).is_some());
    }
}
