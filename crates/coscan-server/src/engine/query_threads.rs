//! Threads that run queries and plan statements.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::{Builder, Handle, Runtime};

/// The stack that a thread needs for the deepest statements that are accepted, in bytes. They are walked by recursion.
pub const STACK_BYTES: usize = 16 << 20;

/// Pools of a server: users beyond so many share some.
const POOLS: usize = 4;

/// Pools that one user may have, so that others find a free one whatever the queries of one user do.
const POOLS_OF_USER_MAX: usize = 2;

/// Threads of queries.
#[derive(Debug)]
pub(super) struct QueryThreads(Option<Runtime>);

impl QueryThreads {
    /// So many threads.
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
/// queries of its own user.
#[derive(Debug)]
pub(super) struct QueryPools {
    pools: Vec<QueryThreads>,
    /// Queries of each user in each pool.
    queries: Mutex<Vec<HashMap<Arc<str>, usize>>>,
}

impl QueryPools {
    /// For so many cores.
    pub(super) fn new(cores: usize) -> io::Result<Arc<Self>> {
        let pools: Vec<_> =
            (0..POOLS).map(|_| QueryThreads::new(cores)).collect::<Result<_, _>>()?;
        let queries = Mutex::new(vec![HashMap::new(); pools.len()]);
        Ok(Arc::new(Self { pools, queries }))
    }

    /// A place for a query: where its user has queries already, or else where the fewest users have. If all threads that
    /// the user has are stuck, a second pool.
    pub(super) fn join(self: &Arc<Self>, user: &Arc<str>, is_stuck: bool) -> PoolMember {
        let mut queries = self.queries();
        let has = |pool: &usize| queries[*pool].get(user).copied();
        let own = (0..queries.len()).filter(|pool| has(pool).is_some());
        let needs_another = is_stuck && own.clone().count() < POOLS_OF_USER_MAX;
        let another = || (0..queries.len()).filter(|pool| has(pool).is_none());
        let another = || another().min_by_key(|pool| queries[*pool].len());
        let own = if needs_another { None } else { own.min_by_key(has) };
        let pool = own.or_else(another).unwrap_or(0);
        *queries[pool].entry(Arc::clone(user)).or_default() += 1;
        PoolMember { pools: Arc::clone(self), pool, user: Arc::clone(user) }
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
        self.pools.pools[self.pool].handle()
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_user_has_a_pool_and_a_second_one_if_stuck() {
        let pools = QueryPools::new(1).unwrap();
        let [ann, bob, eve] = ["ann", "bob", "eve"].map(Arc::from);
        let join = |user, is_stuck| pools.join(user, is_stuck);
        let first = join(&ann, false);
        let second = join(&ann, false);
        assert_eq!(first.pool, second.pool);
        let other = join(&bob, false);
        assert_ne!(other.pool, first.pool);
        let stuck = join(&ann, true);
        assert!(stuck.pool != first.pool && stuck.pool != other.pool);
        let still_stuck = join(&ann, true);
        assert_eq!(still_stuck.pool, stuck.pool, "two pools at most");
        let last = join(&eve, false);
        assert!(![first.pool, other.pool, stuck.pool].contains(&last.pool));
        drop((first, second, other, stuck, still_stuck, last));
        assert!(pools.queries().iter().all(HashMap::is_empty));
    }
}
