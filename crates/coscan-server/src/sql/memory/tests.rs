#![allow(clippy::unwrap_used)]
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::prelude::SessionContext;

use super::*;

/// Coordinators execute a query again if a worker has no memory for it, but not if it has reached a limit.
#[cfg(feature = "distributed")]
fn assert_coordinators_know(error: &str) {
    let text = error.strip_prefix("Resources exhausted: ").unwrap();
    assert!(coscan_distributed::OVER_LIMIT.iter().any(|limit| text.starts_with(limit)), "{text}");
}

#[cfg(not(feature = "distributed"))]
fn assert_coordinators_know(_: &str) {}

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
    assert_coordinators_know(&error);
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
    assert_coordinators_know(&error);
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
