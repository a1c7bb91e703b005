//! Threads that run queries and plan statements.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::runtime::{Builder, Handle, Runtime};

/// The stack size of threads, in bytes. The deepest accepted statements, which are visited by recursion, need it.
pub const STACK_BYTES: usize = 16 << 20;

/// The number of pools of a server. If there are more users, some share a pool.
const POOLS: usize = 4;

/// The maximum number of pools of one user. Other users thus find a free pool, whatever the queries of this user do.
const POOLS_OF_USER_MAX: usize = 2;

/// The time after which a pool is stuck if all its threads still poll the same tasks, in milliseconds.
const STUCK_MS: u64 = 100;

/// The threads of queries.
#[derive(Debug)]
pub(super) struct QueryThreads(Option<Runtime>);

impl QueryThreads {
    /// Starts `count` threads.
    pub(super) fn new(count: usize) -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(count).enable_all();
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

/// Pools of threads, each with one for each core. The queries of a user run in one pool, as if nobody else was there: more
/// threads than cores would take turns on them, and find the caches cold. An operator that keeps a thread for long holds up
/// queries of its own user, and of others only if there are more users than pools.
#[derive(Debug)]
pub(super) struct QueryPools {
    pools: Vec<Pool>,
    cores: usize,
    made: Instant,
    /// The queries of each user in each pool.
    queries: Mutex<Vec<HashMap<Arc<str>, usize>>>,
}

#[derive(Debug)]
struct Pool {
    threads: QueryThreads,
    /// The number of threads that poll a task now.
    busy: AtomicUsize,
    /// The time when a thread last began or ended to poll, in milliseconds since the pools were made.
    changed_ms: AtomicU64,
}

impl QueryPools {
    /// Pools for a machine with `cores` cores.
    pub(super) fn new(cores: usize) -> io::Result<Arc<Self>> {
        let pool = |_| {
            let threads = QueryThreads::new(cores)?;
            Ok(Pool { threads, busy: AtomicUsize::new(0), changed_ms: AtomicU64::new(0) })
        };
        let pools: Vec<_> = (0..POOLS).map(pool).collect::<io::Result<_>>()?;
        let queries = Mutex::new(vec![HashMap::new(); pools.len()]);
        Ok(Arc::new(Self { pools, cores, made: Instant::now(), queries }))
    }

    /// Finds a place for a query, in the pool where its user has queries already, or else in the pool of the fewest users.
    /// If the threads of the user's pool are stuck, this is a second pool.
    pub(super) fn join(self: &Arc<Self>, user: &Arc<str>) -> PoolMember {
        let mut queries = self.queries();
        let (own, others): (Vec<_>, Vec<_>) =
            (0..queries.len()).partition(|pool| queries[*pool].contains_key(user));
        let of_own = |pool: &usize| (self.is_stuck(*pool), queries[*pool].get(user).copied());
        let own_best = own.iter().copied().min_by_key(of_own);
        let of_others = |pool: &usize| (self.is_stuck(*pool), queries[*pool].len());
        let other = others.into_iter().min_by_key(of_others);
        let has_room = own_best.is_some_and(|pool| !self.is_stuck(pool));
        let may_move = own.len() < POOLS_OF_USER_MAX && !has_room;
        let other = other.filter(|pool| own.is_empty() || !self.is_stuck(*pool));
        let pool = other.filter(|_| may_move).or(own_best).unwrap_or(0);
        *queries[pool].entry(Arc::clone(user)).or_default() += 1;
        PoolMember { pools: Arc::clone(self), pool, user: Arc::clone(user) }
    }

    /// Whether all threads of a pool have kept the same tasks for a while.
    fn is_stuck(&self, pool: usize) -> bool {
        let Pool { busy, changed_ms, .. } = &self.pools[pool];
        busy.load(Ordering::Relaxed) >= self.cores
            && self.now_ms().saturating_sub(changed_ms.load(Ordering::Relaxed)) >= STUCK_MS
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.made.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn queries(&self) -> MutexGuard<'_, Vec<HashMap<Arc<str>, usize>>> {
        self.queries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a query in a pool, as long as any task works for it.
#[derive(Debug)]
pub(super) struct PoolMember {
    pools: Arc<QueryPools>,
    pool: usize,
    user: Arc<str>,
}

impl PoolMember {
    pub(super) fn threads(&self) -> Handle {
        self.pools.pools[self.pool].threads.handle()
    }

    /// Polls a task on this thread, which is one of the pool's.
    pub(super) fn poll<T>(&self, poll: impl FnOnce() -> T) -> T {
        let _busy = Busy::new(&self.pools, self.pool);
        poll()
    }
}

impl Drop for PoolMember {
    fn drop(&mut self) {
        let mut queries = self.pools.queries();
        if let Some(count) = queries[self.pool].get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                queries[self.pool].remove(&self.user);
            }
        }
    }
}

/// A thread at work, until this is dropped, also by a panic.
struct Busy<'a> {
    pools: &'a QueryPools,
    pool: usize,
}

impl<'a> Busy<'a> {
    fn new(pools: &'a QueryPools, pool: usize) -> Self {
        pools.pools[pool].busy.fetch_add(1, Ordering::Relaxed);
        let busy = Self { pools, pool };
        busy.change();
        busy
    }

    fn change(&self) {
        self.pools.pools[self.pool].changed_ms.store(self.pools.now_ms(), Ordering::Relaxed);
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.pools.pools[self.pool].busy.fetch_sub(1, Ordering::Relaxed);
        self.change();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::*;

    /// Makes a pool look as if its only thread had polled the same task for a second.
    fn stick<'a>(pools: &'a QueryPools, member: &PoolMember) -> Busy<'a> {
        let busy = Busy::new(pools, member.pool);
        pools.pools[member.pool].changed_ms.store(0, Ordering::Relaxed);
        busy
    }

    #[test]
    fn a_user_moves_to_a_second_pool_and_others_avoid_the_one_that_is_stuck() {
        let mut pools = QueryPools::new(1).unwrap();
        Arc::get_mut(&mut pools).unwrap().made = Instant::now() - Duration::from_secs(1);
        let names = ["ann", "bob", "eve", "max", "zoe"].map(Arc::from);
        let [ann, bob, eve, max, zoe] = &names;
        let first = pools.join(ann);
        assert_eq!(pools.join(ann).pool, first.pool);
        let others = [bob, eve].map(|user| pools.join(user));
        let stuck = stick(&pools, &first);
        let second = pools.join(ann);
        let taken = [first.pool, others[0].pool, others[1].pool];
        assert!(!taken.contains(&second.pool));
        assert_eq!(pools.join(ann).pool, second.pool, "not back to the one that is stuck");
        let still_stuck = stick(&pools, &second);
        assert!([first.pool, second.pool].contains(&pools.join(ann).pool), "two pools at most");
        for user in [max, zoe] {
            assert!(others.iter().any(|other| other.pool == pools.join(user).pool));
        }
        drop(stuck);
        assert_eq!(pools.join(ann).pool, first.pool, "it works again");
        drop((first, second, others, still_stuck));
        assert!(pools.queries().iter().all(HashMap::is_empty));
        assert!(pools.pools.iter().all(|pool| pool.busy.load(Ordering::Relaxed) == 0));
    }
}
