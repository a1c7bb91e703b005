//! The memory of one query, which is a part of the server's memory with its own limit.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, human_readable_size,
};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// The memory that the operators of each user's queries hold, of those users that run any.
#[derive(Debug, Default)]
pub(super) struct UserMemories(Mutex<HashMap<Arc<str>, Weak<UserMemory>>>);

/// The memory that the operators of a user's queries hold, of which other users' queries need some.
#[derive(Debug)]
pub(super) struct UserMemory {
    user: Arc<str>,
    limit_bytes: usize,
    held_bytes: AtomicUsize,
}

impl UserMemories {
    /// The memory of a user, which all queries share that run at the same time.
    pub(super) fn of(&self, user: &str, limit_bytes: u64) -> Arc<UserMemory> {
        let mut memories = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(memory) = memories.get(user).and_then(Weak::upgrade) {
            return memory;
        }
        memories.retain(|_, memory| memory.strong_count() > 0);
        let limit_bytes = usize::try_from(limit_bytes).unwrap_or(usize::MAX);
        let user: Arc<str> = user.into();
        let memory = UserMemory { user, limit_bytes, held_bytes: AtomicUsize::new(0) };
        let memory = Arc::new(memory);
        memories.insert(Arc::clone(&memory.user), Arc::downgrade(&memory));
        memory
    }
}

/// The memory that the operators of one query hold.
#[derive(Debug)]
pub(super) struct QueryMemory {
    server: Arc<dyn MemoryPool>,
    user: Arc<UserMemory>,
    limit_bytes: usize,
    held_bytes: AtomicUsize,
    /// Whether its aggregates collect values. They make their result, which is as large as their state, in one step
    /// without reserving memory for it. Both then count.
    collects_values: bool,
}

impl QueryMemory {
    pub(super) fn new(
        server: Arc<dyn MemoryPool>,
        user: Arc<UserMemory>,
        limit_bytes: u64,
        collects_values: bool,
    ) -> Self {
        let limit_bytes = usize::try_from(limit_bytes).unwrap_or(usize::MAX);
        let held_bytes = AtomicUsize::new(0);
        Self { server, user, limit_bytes, held_bytes, collects_values }
    }

    fn give_back(&self, bytes: usize) {
        self.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.user.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The bytes of an operator's state, together with those of a result that it does not reserve.
    fn with_result(&self, reservation: &MemoryReservation, state_bytes: usize) -> usize {
        let is_aggregate = || reservation.consumer().name().contains("AggregateStream[");
        let copies = if self.collects_values && is_aggregate() { 2 } else { 1 };
        state_bytes.saturating_mul(copies)
    }
}

/// Adds to bytes that are held, up to a limit.
///
/// # Errors
/// The bytes that are held, if more would be too many.
fn try_add(
    held: &AtomicUsize,
    additional: usize,
    limit: usize,
) -> std::result::Result<usize, usize> {
    let fits = |held: usize| held.checked_add(additional).filter(|held| *held <= limit);
    held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
}

/// Whether a plan has aggregates that collect values.
pub(super) fn collects_values(plan: &LogicalPlan) -> bool {
    const COLLECTING: [&str; 2] = ["array_agg", "string_agg"];
    let mut found = false;
    let visited = plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expression| {
            expression.apply(|expression| {
                if let Expr::AggregateFunction(call) = expression {
                    found |= COLLECTING.contains(&call.func.name());
                }
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })
    });
    visited.is_err() || found
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
        let additional = self.with_result(reservation, additional);
        self.held_bytes.fetch_add(additional, Ordering::Relaxed);
        self.user.held_bytes.fetch_add(additional, Ordering::Relaxed);
        self.server.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let shrink = self.with_result(reservation, shrink);
        self.give_back(shrink);
        self.server.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let additional = self.with_result(reservation, additional);
        let consumer = || {
            let (operator, more) = (reservation.consumer().name(), human_readable_size(additional));
            format!("{operator} needs {more} more")
        };
        if let Err(held) = try_add(&self.held_bytes, additional, self.limit_bytes) {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "the query holds {} and may hold {}; {}. Raise `query_memory_max` or `coscan.memory_limit`",
                human_readable_size(held),
                human_readable_size(self.limit_bytes),
                consumer(),
            )));
        }
        if let Err(held) = try_add(&self.user.held_bytes, additional, self.user.limit_bytes) {
            self.held_bytes.fetch_sub(additional, Ordering::Relaxed);
            return Err(DataFusionError::ResourcesExhausted(format!(
                "the queries of user {} hold {} and may hold {}; {}. Raise `user_memory_max`, or run fewer at once",
                self.user.user,
                human_readable_size(held),
                human_readable_size(self.user.limit_bytes),
                consumer(),
            )));
        }
        self.server.try_grow(reservation, additional).inspect_err(|_| self.give_back(additional))
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
    use datafusion::prelude::SessionContext;

    use super::*;

    fn memory_of(users: &UserMemories, user: &str) -> Arc<UserMemory> {
        users.of(user, 700)
    }

    #[test]
    fn all_queries_of_a_user_hold_no_more_than_the_users_limit() {
        let server: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1000));
        let users = UserMemories::default();
        let query = |user: &str| {
            let user = memory_of(&users, user);
            let query = QueryMemory::new(Arc::clone(&server), user, 600, false);
            MemoryConsumer::new("sort").register(&(Arc::new(query) as Arc<dyn MemoryPool>))
        };
        let (first, second, of_other) = (query("ann"), query("ann"), query("bob"));
        first.try_grow(400).unwrap();
        let error = second.try_grow(301).unwrap_err().to_string();
        assert!(error.contains("user ann") && error.contains("user_memory_max"), "{error}");
        second.try_grow(300).unwrap();
        of_other.try_grow(300).unwrap();
        assert!(of_other.try_grow(100).is_err(), "the server has no more");
        assert_eq!(memory_of(&users, "bob").held_bytes.load(Ordering::Relaxed), 300);
        drop((first, of_other));
        second.try_grow(100).unwrap();
        assert_eq!(memory_of(&users, "ann").held_bytes.load(Ordering::Relaxed), 400);
        drop(second);
        assert_eq!(memory_of(&users, "ann").held_bytes.load(Ordering::Relaxed), 0);
    }

    fn unlimited() -> Arc<UserMemory> {
        UserMemories::default().of("ann", u64::MAX)
    }

    #[test]
    fn a_query_holds_no_more_than_its_limit_and_the_server_counts_it() {
        let server: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1000));
        let query: Arc<dyn MemoryPool> =
            Arc::new(QueryMemory::new(Arc::clone(&server), unlimited(), 600, false));
        let reservation = MemoryConsumer::new("sort").register(&query);
        reservation.try_grow(500).unwrap();
        assert_eq!(server.reserved(), 500);
        let error = reservation.try_grow(200).unwrap_err().to_string();
        assert!(error.contains("query_memory_max"), "{error}");
        let other: Arc<dyn MemoryPool> =
            Arc::new(QueryMemory::new(Arc::clone(&server), unlimited(), 900, false));
        let beside = MemoryConsumer::new("join").register(&other);
        assert!(beside.try_grow(501).is_err());
        assert_eq!((other.reserved(), server.reserved()), (0, 500));
        drop(reservation);
        assert_eq!((query.reserved(), server.reserved()), (0, 0));
    }

    #[test]
    fn aggregates_that_collect_values_also_reserve_their_result() {
        for (collects_values, operator, copies) in [
            (true, "AggregateStream[0]", 2),
            (true, "FinalHashAggregateStream[1]", 2),
            (true, "GroupedHashAggregateStream[1] (count(1))", 2),
            (true, "HashJoinInput[0]", 1),
            (false, "AggregateStream[0]", 1),
        ] {
            let server: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1000));
            let query = QueryMemory::new(Arc::clone(&server), unlimited(), 600, collects_values);
            let query: Arc<dyn MemoryPool> = Arc::new(query);
            let reservation = MemoryConsumer::new(operator).register(&query);
            assert!(reservation.try_grow(600 / copies + 1).is_err(), "{operator}");
            reservation.try_grow(300).unwrap();
            assert_eq!((reservation.size(), server.reserved()), (300, 300 * copies), "{operator}");
            reservation.shrink(100);
            assert_eq!(query.reserved(), 200 * copies, "{operator}");
            drop(reservation);
            assert_eq!((query.reserved(), server.reserved()), (0, 0), "{operator}");
        }
    }

    #[tokio::test]
    async fn a_plan_collects_values_wherever_its_aggregates_are() {
        let context = SessionContext::new();
        for (sql, collects) in [
            ("SELECT count(*), sum(x) FROM (VALUES (1)) t(x)", false),
            ("SELECT x, array_agg(x) FROM (VALUES (1)) t(x) GROUP BY x", true),
            ("SELECT (SELECT length(string_agg(y, ',')) FROM (VALUES ('a')) u(y))", true),
        ] {
            let plan = context.state().create_logical_plan(sql).await.unwrap();
            assert_eq!(collects_values(&plan), collects, "{sql}");
        }
    }
}
