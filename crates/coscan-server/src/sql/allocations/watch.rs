//! Watches the memory of the process, and finds the query that holds too much of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use coscan_runtime::{BufferManager, ManagerReport};
use datafusion::execution::memory_pool::MemoryPool;

use super::Allocations;

/// The functions of the program's allocator. Without them, nothing bounds memory that queries allocate and do not
/// reserve.
#[derive(Clone, Copy, Debug)]
pub struct Allocator {
    /// The bytes that the calling thread has allocated, less those it has freed.
    pub thread_bytes: fn() -> i64,
    /// The bytes that the process has from the system, including freed memory that the allocator keeps for later.
    pub resident_bytes: fn() -> u64,
    /// Returns such memory to the system.
    pub give_back: fn(),
}

static ALLOCATOR: OnceLock<Allocator> = OnceLock::new();

/// Sets the allocator of this process for its servers. Only the first call counts, and only for servers that start
/// afterwards.
pub fn set_allocator(allocator: Allocator) {
    let _only_once = ALLOCATOR.set(allocator);
}

/// The divisor of the server's memory that gives the minimum of unreserved bytes of a user whose queries may be ended.
const SUSPECT_DIVISOR: u64 = 16;

/// The lower limit of that minimum, in bytes, which batches of wide rows may reach.
const SUSPECT_BYTES_MIN: u64 = 32 << 20;

/// The divisor of the server's memory that gives the limit of unreserved bytes of all queries, above which a margin is
/// kept.
const UNRESERVED_DIVISOR: u64 = 2;

/// The divisor of the server's memory that gives this margin.
const MARGIN_DIVISOR: u64 = 4;

/// Queries that hold fewer bytes are not ended.
pub(super) const QUERY_BYTES_MIN: u64 = 8 << 20;

/// The interval of checks whether the process has too much memory. The second interval applies if returning memory has
/// not helped.
const GIVE_BACK_EVERY: Duration = Duration::from_millis(100);
const GIVE_BACK_AT_LEAST_EVERY: Duration = Duration::from_secs(10);

/// The divisor of the server's memory that gives the minimum of returned bytes that count as help.
const HELP_DIVISOR: u64 = 64;

/// The interval of searches for a query to end, since an ended query needs some time to free its memory.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The allocations of all queries.
#[derive(Debug)]
pub(in crate::sql) struct AllocationWatch {
    allocator: Option<Allocator>,
    manager: BufferManager,
    /// The bytes of the process when the first query started, without those that the budget counts.
    idle_bytes: OnceLock<u64>,
    queries: Mutex<Vec<Weak<Allocations>>>,
    looked: Mutex<Option<Instant>>,
    look_every: Duration,
}

impl AllocationWatch {
    /// Creates the watch for a server with this manager's memory.
    pub(in crate::sql) fn new(manager: &BufferManager) -> Arc<Self> {
        Self::with(ALLOCATOR.get().copied(), manager, LOOK_EVERY)
    }

    pub(super) fn with(
        allocator: Option<Allocator>,
        manager: &BufferManager,
        look_every: Duration,
    ) -> Arc<Self> {
        let (manager, idle_bytes) = (manager.clone(), OnceLock::new());
        let (queries, looked) = (Mutex::default(), Mutex::default());
        Arc::new(Self { allocator, manager, idle_bytes, queries, looked, look_every })
    }

    /// The allocations of a new query of a user, which reserves its memory in a pool of its own.
    pub(in crate::sql) fn query(
        self: &Arc<Self>,
        user: &Arc<str>,
        reserved: &Arc<dyn MemoryPool>,
    ) -> Arc<Allocations> {
        let (watch, user, reserved) = (Arc::clone(self), Arc::clone(user), Arc::clone(reserved));
        let allocations = Arc::new(Allocations::new(watch, user, reserved));
        if let Some(allocator) = self.allocator {
            self.idle_bytes.get_or_init(|| self.beside_budget_bytes(allocator));
            let mut queries = self.queries();
            queries.retain(|query| query.strong_count() > 0);
            queries.push(Arc::downgrade(&allocations));
        }
        allocations
    }

    pub(super) fn allocator(&self) -> Option<Allocator> {
        self.allocator
    }

    /// The bytes of a user's queries that are too much when memory is short.
    pub(super) fn suspect_bytes(&self) -> u64 {
        (self.memory_bytes() / SUSPECT_DIVISOR).max(SUSPECT_BYTES_MIN)
    }

    /// The bytes of the process that the budget does not count.
    fn beside_budget_bytes(&self, allocator: Allocator) -> u64 {
        let ManagerReport {
            pool_held_bytes, decoded_bytes, operator_bytes, metadata_bytes, ..
        } = self.manager.report();
        let counted = pool_held_bytes + decoded_bytes + operator_bytes + metadata_bytes;
        (allocator.resident_bytes)().saturating_sub(counted)
    }

    fn queries(&self) -> MutexGuard<'_, Vec<Weak<Allocations>>> {
        self.queries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn memory_bytes(&self) -> u64 {
        self.manager.options().memory_bytes
    }

    /// The memory above which queries are ended and freed memory is returned. While a query is found and frees its
    /// memory, others allocate more: the more of it is unreserved, the faster. So a margin stays free if much is.
    fn resident_bytes_max(&self, queries: &[Arc<Allocations>]) -> u64 {
        let (idle_bytes, bytes) =
            (self.idle_bytes.get().copied().unwrap_or(0), self.memory_bytes());
        let live = queries.iter().filter(|query| !query.has_ended());
        let unreserved: u64 = live.map(|query| query.unreserved_bytes()).sum();
        let margin =
            if unreserved > bytes / UNRESERVED_DIVISOR { bytes / MARGIN_DIVISOR } else { 0 };
        idle_bytes + bytes - margin
    }

    fn live_queries(&self) -> Vec<Arc<Allocations>> {
        self.queries().iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns memory to the system whenever the process has too much of it. Allocators keep freed memory for some
    /// seconds, since requesting it again costs time.
    pub(in crate::sql) async fn give_back(&self) {
        let Some(allocator) = self.allocator else { return };
        let mut every = GIVE_BACK_EVERY;
        loop {
            tokio::time::sleep(every).await;
            let before = (allocator.resident_bytes)();
            // Earlier than queries are ended, since what is free grows until the next look.
            let margin = self.memory_bytes() / MARGIN_DIVISOR / 2;
            if before <= self.resident_bytes_max(&self.live_queries()) - margin {
                every = GIVE_BACK_EVERY;
                continue;
            }
            tokio::task::spawn_blocking(allocator.give_back).await.ok();
            let helped = before.saturating_sub((allocator.resident_bytes)());
            every = if helped >= self.memory_bytes() / HELP_DIVISOR {
                GIVE_BACK_EVERY
            } else {
                (every * 2).min(GIVE_BACK_AT_LEAST_EVERY)
            };
        }
    }

    /// Ends the query that is to blame, if the process has too much memory even without queries that are about to end.
    /// The queries of a user count together as well, since many small ones take as much as a large one.
    pub(super) fn look(&self) {
        let Some(allocator) = self.allocator else { return };
        // Only one thread at a time searches.
        let Ok(mut looked) = self.looked.try_lock() else { return };
        if looked.is_some_and(|looked| looked.elapsed() < self.look_every) {
            return;
        }
        *looked = Some(Instant::now());
        let queries = self.live_queries();
        let ended = queries.iter().filter(|query| query.has_ended());
        let most =
            self.resident_bytes_max(&queries) + ended.map(|query| query.held_bytes()).sum::<u64>();
        if (allocator.resident_bytes)() <= most {
            return;
        }
        // Returning memory takes time, and another task does so now and then.
        let Some(query) = self.to_blame(&queries) else { return };
        (allocator.give_back)();
        if (allocator.resident_bytes)() > most {
            query.end();
        }
    }

    /// Returns the query that has allocated most, if that is much. Otherwise returns the largest query of the user whose
    /// queries have allocated most together, if that is much.
    fn to_blame<'a>(&self, queries: &'a [Arc<Allocations>]) -> Option<&'a Allocations> {
        let queries = queries.iter().filter(|query| !query.has_ended());
        let sizes = queries.map(|query| (query.unreserved_bytes(), &**query));
        let sizes: Vec<_> = sizes.filter(|(bytes, _)| *bytes >= QUERY_BYTES_MIN).collect();
        let (bytes, largest) = sizes.iter().copied().max_by_key(|(bytes, _)| *bytes)?;
        if bytes >= self.suspect_bytes() {
            return Some(largest);
        }
        let mut users: BTreeMap<&str, u64> = BTreeMap::new();
        for (bytes, query) in &sizes {
            *users.entry(query.user()).or_default() += bytes;
        }
        let (user, bytes) = users.into_iter().max_by_key(|(_, bytes)| *bytes)?;
        let own = sizes.into_iter().filter(|(_, query)| query.user() == user);
        let largest = own.max_by_key(|(bytes, _)| *bytes).map(|(_, query)| query);
        largest.filter(|_| bytes >= self.suspect_bytes())
    }
}
