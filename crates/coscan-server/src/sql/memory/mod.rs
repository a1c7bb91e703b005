//! The memory of one query, which is a part of the server's memory with its own limit. `limits` says how much that is.

mod limits;
#[cfg(test)]
mod tests;

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

pub(super) use limits::{MemoryLimits, QueryLimits};

/// The memory that the operators of each user's queries hold, of those users that run any.
#[derive(Debug, Default)]
struct UserMemories(Mutex<HashMap<Arc<str>, Weak<UserMemory>>>);

/// The memory that the operators of one user's queries hold together, with its limit, so that other users find some.
#[derive(Debug)]
struct UserMemory {
    user: Arc<str>,
    limit_bytes: usize,
    held_bytes: AtomicUsize,
}

impl UserMemories {
    /// The memory of a user, which all queries share that run at the same time.
    fn of(&self, user: &str, limit_bytes: u64) -> Arc<UserMemory> {
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
struct QueryMemory {
    server: Arc<dyn MemoryPool>,
    user: Arc<UserMemory>,
    limit_bytes: usize,
    held_bytes: AtomicUsize,
    /// Whether its aggregates collect values. They make their result, which is as large as their state, in one step
    /// without reserving memory for it. Both then count.
    collects_values: bool,
}

impl QueryMemory {
    fn new(
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

/// Whether it is for the rows that wait between workers, which are taken without asking: what operators may hold must not depend on
/// them.
fn is_buffer(reservation: &MemoryReservation) -> bool {
    matches!(reservation.consumer().name(), "WorkerConnection" | "NetworkBoundary")
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
        if is_buffer(reservation) {
            return self.server.grow(reservation, additional);
        }
        let additional = self.with_result(reservation, additional);
        self.held_bytes.fetch_add(additional, Ordering::Relaxed);
        self.user.held_bytes.fetch_add(additional, Ordering::Relaxed);
        self.server.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        if is_buffer(reservation) {
            return self.server.shrink(reservation, shrink);
        }
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
