//! The memory of one query, which is a part of the server's memory with its own limit.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, human_readable_size,
};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// The memory that the operators of one query hold.
#[derive(Debug)]
pub(super) struct QueryMemory {
    server: Arc<dyn MemoryPool>,
    limit_bytes: usize,
    held_bytes: AtomicUsize,
    /// Whether its aggregates collect values. They make their result, which is as large as their state, in one step
    /// without reserving memory for it. Both then count.
    collects_values: bool,
}

impl QueryMemory {
    pub(super) fn new(
        server: Arc<dyn MemoryPool>,
        limit_bytes: u64,
        collects_values: bool,
    ) -> Self {
        let limit_bytes = usize::try_from(limit_bytes).unwrap_or(usize::MAX);
        Self { server, limit_bytes, held_bytes: AtomicUsize::new(0), collects_values }
    }

    /// The bytes of an operator's state, together with those of a result that it does not reserve.
    fn with_result(&self, reservation: &MemoryReservation, state_bytes: usize) -> usize {
        let is_aggregate = || reservation.consumer().name().contains("AggregateStream[");
        let copies = if self.collects_values && is_aggregate() { 2 } else { 1 };
        state_bytes.saturating_mul(copies)
    }
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
        self.server.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let shrink = self.with_result(reservation, shrink);
        self.held_bytes.fetch_sub(shrink, Ordering::Relaxed);
        self.server.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let additional = self.with_result(reservation, additional);
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
    use datafusion::prelude::SessionContext;

    use super::*;

    #[test]
    fn a_query_holds_no_more_than_its_limit_and_the_server_counts_it() {
        let server: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1000));
        let query: Arc<dyn MemoryPool> =
            Arc::new(QueryMemory::new(Arc::clone(&server), 600, false));
        let reservation = MemoryConsumer::new("sort").register(&query);
        reservation.try_grow(500).unwrap();
        assert_eq!(server.reserved(), 500);
        let error = reservation.try_grow(200).unwrap_err().to_string();
        assert!(error.contains("query_memory_max"), "{error}");
        let other: Arc<dyn MemoryPool> =
            Arc::new(QueryMemory::new(Arc::clone(&server), 900, false));
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
            let query = QueryMemory::new(Arc::clone(&server), 600, collects_values);
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
