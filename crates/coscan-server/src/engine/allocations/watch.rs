//! The memory of the process, and who is to blame for too much of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use coscan_runtime::{BufferManager, ManagerReport};
use datafusion::execution::memory_pool::MemoryPool;

use super::Allocations;

/// The allocator of the program. Without it, nothing bounds what queries allocate and do not reserve.
#[derive(Clone, Copy, Debug)]
pub struct Allocator {
    /// What the calling thread has allocated, less what it has freed, in bytes.
    pub thread_bytes: fn() -> i64,
    /// What the process has of the system, freed memory that the allocator keeps for later included, in bytes.
    pub resident_bytes: fn() -> u64,
    /// Gives such memory back to the system.
    pub give_back: fn(),
}

static ALLOCATOR: OnceLock<Allocator> = OnceLock::new();

/// Tells the servers of this process which allocator it has. Only the first call counts, and only for servers that start
/// afterwards.
pub fn set_allocator(allocator: Allocator) {
    let _only_once = ALLOCATOR.set(allocator);
}

/// No query is ended unless those of its user have one of so many parts of the memory beside what they reserved.
const SUSPECT_DIVISOR: u64 = 16;

/// Nor for less than this, in bytes: batches of wide rows that are on their way.
const SUSPECT_BYTES_MIN: u64 = 32 << 20;

/// Queries that have less, in bytes, are not the reason.
pub(super) const QUERY_BYTES_MIN: u64 = 8 << 20;

/// Beside what it has without queries, the process may have so many tenths of the memory.
const PROCESS_TENTHS: u64 = 11;

/// How often the process looks whether it has too much memory, and at least if to give back has not helped.
const GIVE_BACK_EVERY: Duration = Duration::from_millis(100);
const GIVE_BACK_AT_LEAST_EVERY: Duration = Duration::from_secs(10);

/// What helps: one of so many parts of the memory.
const HELP_DIVISOR: u64 = 64;

/// How often it looks who is to blame: what was ended needs some time to end.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The allocations of all queries.
#[derive(Debug)]
pub(in crate::engine) struct AllocationWatch {
    allocator: Option<Allocator>,
    manager: BufferManager,
    /// What the process had when the first query came, in bytes, without what the budget counts.
    idle_bytes: OnceLock<u64>,
    queries: Mutex<Vec<Weak<Allocations>>>,
    looked: Mutex<Option<Instant>>,
    look_every: Duration,
}

impl AllocationWatch {
    /// Over a server with this manager's memory.
    pub(in crate::engine) fn new(manager: &BufferManager) -> Arc<Self> {
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

    /// A query of a user that reserves its memory in a pool of its own.
    pub(in crate::engine) fn query(
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

    /// How much of a user's queries is too much when memory is short, in bytes.
    pub(super) fn suspect_bytes(&self) -> u64 {
        (self.memory_bytes() / SUSPECT_DIVISOR).max(SUSPECT_BYTES_MIN)
    }

    /// What the process has that the budget does not count.
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

    fn resident_bytes_max(&self) -> u64 {
        let idle_bytes = self.idle_bytes.get().copied().unwrap_or(0);
        idle_bytes + self.memory_bytes() / 10 * PROCESS_TENTHS
    }

    /// Gives memory back to the system whenever the process has too much of it. Allocators keep what is freed for some
    /// seconds, since to ask for it again costs time.
    pub(in crate::engine) async fn give_back(&self) {
        let Some(allocator) = self.allocator else { return };
        let mut every = GIVE_BACK_EVERY;
        loop {
            tokio::time::sleep(every).await;
            let before = (allocator.resident_bytes)();
            if before <= self.resident_bytes_max() {
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

    /// Ends the largest query of the user who has allocated most, if the process has too much memory even without queries
    /// that are about to end. What the queries of a user have counts together: many small ones are as bad as a large one.
    pub(super) fn look(&self) {
        let Some(allocator) = self.allocator else { return };
        // One looks at a time.
        let Ok(mut looked) = self.looked.try_lock() else { return };
        if looked.is_some_and(|looked| looked.elapsed() < self.look_every) {
            return;
        }
        *looked = Some(Instant::now());
        let queries: Vec<_> = self.queries().iter().filter_map(Weak::upgrade).collect();
        let ended = queries.iter().filter(|query| query.has_ended());
        let most = self.resident_bytes_max() + ended.map(|query| query.held_bytes()).sum::<u64>();
        if (allocator.resident_bytes)() <= most {
            return;
        }
        (allocator.give_back)();
        if (allocator.resident_bytes)() <= most {
            return;
        }
        let mut users: BTreeMap<&str, (u64, Vec<(u64, &Allocations)>)> = BTreeMap::new();
        for query in queries.iter().filter(|query| !query.has_ended()) {
            let bytes = query.unreserved_bytes();
            let (sum, of_user) = users.entry(query.user()).or_default();
            *sum += bytes;
            of_user.push((bytes, query));
        }
        let most = users.into_values().max_by_key(|(sum, _)| *sum);
        let Some((_, queries)) = most.filter(|(sum, _)| *sum >= self.suspect_bytes()) else {
            return;
        };
        let largest = queries.into_iter().max_by_key(|(bytes, _)| *bytes);
        if let Some((_, query)) = largest.filter(|(bytes, _)| *bytes >= QUERY_BYTES_MIN) {
            query.end();
        }
    }
}
