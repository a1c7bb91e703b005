#![allow(clippy::unwrap_used)]
use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use arrow::array::Int64Array;
use coscan_runtime::{BufferManager, Options};
use datafusion::execution::memory_pool::{MemoryConsumer, UnboundedMemoryPool};
use futures::FutureExt;

use super::*;

const MIB: i64 = 1 << 20;

thread_local! {
    static THREAD: Cell<i64> = const { Cell::new(0) };
}

/// Creates a watch with a process of its own, since tests run at the same time. Giving back frees `$given_back` bytes.
macro_rules! watch {
    ($resident:ident, $given_back:expr) => {{
        static RESIDENT: AtomicU64 = AtomicU64::new(0);
        $resident = &RESIDENT;
        let allocator = Allocator {
            thread_bytes: || THREAD.get(),
            resident_bytes: || RESIDENT.load(Ordering::Relaxed),
            give_back: || {
                RESIDENT.fetch_sub($given_back, Ordering::Relaxed);
            },
        };
        let manager = BufferManager::new(Options::with_memory_bytes(1000 << 20)).unwrap();
        AllocationWatch::with(Some(allocator), &manager, Duration::ZERO)
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
fn the_query_that_took_most_ends_once_the_process_has_too_much() {
    let resident: &AtomicU64;
    let watch = watch!(resident, 0);
    resident.store(200 << 20, Ordering::Relaxed);
    let [small, large, reserved] = [pool(), pool(), pool()];
    let memory = MemoryConsumer::new("sort").register(&reserved);
    let [small, large, reserved] = [("ann", small), ("bob", large), ("eve", reserved)]
        .map(|(user, pool)| watch.query(&user.into(), &pool));
    memory.try_grow(900 << 20).unwrap();
    resident.store(1200 << 20, Ordering::Relaxed);
    allocate(&reserved, 900 * MIB);
    allocate(&large, 200 * MIB);
    assert_eq!(error(&large), None, "there is memory");
    resident.store(1201 << 20, Ordering::Relaxed);
    allocate(&small, 100 * MIB);
    assert_eq!(error(&large).unwrap().kind, ErrorKind::Memory);
    for _ in 0..3 {
        allocate(&large, 1);
        allocate(&small, 1);
    }
    assert_eq!(error(&small), None, "what the other one has is about to come back");
    drop(large);
    allocate(&small, 1);
    assert!(error(&small).is_some());
    drop(small);
    allocate(&reserved, 50 * MIB);
    assert_eq!(error(&reserved), None, "it took little beside what it reserved");
}

#[test]
fn many_queries_of_one_user_count_together() {
    let resident: &AtomicU64;
    let watch = watch!(resident, 0);
    let other = watch.query(&"bob".into(), &pool());
    allocate(&other, 40 * MIB);
    let queries: Vec<_> = (0..7).map(|_| watch.query(&"ann".into(), &pool())).collect();
    queries.iter().for_each(|query| allocate(query, 7 * MIB));
    resident.store(2000 << 20, Ordering::Relaxed);
    queries.iter().for_each(|query| allocate(query, 0));
    assert!(queries.iter().all(|query| error(query).is_none()), "each is too small");
    queries.iter().for_each(|query| allocate(query, 3 * MIB));
    assert_eq!(queries.iter().filter(|query| error(query).is_some()).count(), 1);
    assert_eq!(error(&other), None);
    allocate(&other, 60 * MIB);
    for query in queries.iter().chain([&other]) {
        allocate(query, 0);
    }
    assert!(error(&other).is_some(), "small queries of another user do not protect it");
}

#[test]
fn a_quarter_is_left_when_much_was_never_reserved() {
    for (unreserved, resident_bytes, ends) in
        [(500, 1000, false), (502, 750, false), (502, 751, true), (500, 1001, true)]
    {
        let resident: &AtomicU64;
        let watch = watch!(resident, 0);
        let [one, other] = ["ann", "bob"].map(|user| watch.query(&user.into(), &pool()));
        resident.store(resident_bytes << 20, Ordering::Relaxed);
        allocate(&other, unreserved / 2 * MIB);
        allocate(&one, unreserved / 2 * MIB);
        let has_ended = error(&one).is_some() || error(&other).is_some();
        assert_eq!(has_ended, ends, "{unreserved} of {resident_bytes}");
        resident.store(0, Ordering::Relaxed); // All rounds have the same process.
    }
}

#[test]
fn no_query_ends_for_memory_that_the_allocator_keeps() {
    let resident: &AtomicU64;
    let watch = watch!(resident, 500 << 20);
    let query = watch.query(&"ann".into(), &pool());
    resident.store(1200 << 20, Ordering::Relaxed);
    allocate(&query, 300 * MIB);
    assert_eq!(error(&query), None);
    assert_eq!(resident.load(Ordering::Relaxed), 700 << 20);
}

#[test]
fn what_was_freed_or_handed_over_does_not_count() {
    let resident: &AtomicU64;
    let watch = watch!(resident, 0);
    let query = watch.query(&"ann".into(), &pool());
    resident.store(2000 << 20, Ordering::Relaxed);
    allocate(&query, -500 * MIB);
    for _ in 0..10 {
        let values = Int64Array::from(vec![0; 25 << 17]);
        let batch = RecordBatch::try_from_iter([("v", Arc::new(values) as _)]).unwrap();
        allocate(&query, 50 * MIB);
        let half = batch.num_rows() / 2;
        query.hand_over(&batch.slice(0, half));
        query.hand_over(&batch.slice(half, half));
        allocate(&query, -25 * MIB);
    }
    assert_eq!(error(&query), None);
    allocate(&query, 200 * MIB);
    assert!(error(&query).is_some());
}

#[tokio::test(start_paused = true)]
async fn freed_memory_goes_back_to_the_system_only_when_the_process_has_too_much() {
    let resident: &AtomicU64;
    let watch = watch!(resident, 800 << 20);
    resident.store(875 << 20, Ordering::Relaxed);
    let mut gives_back = std::pin::pin!(watch.give_back());
    tokio::time::timeout(Duration::from_secs(1), &mut gives_back).await.unwrap_err();
    assert_eq!(resident.load(Ordering::Relaxed), 875 << 20);
    resident.store(876 << 20, Ordering::Relaxed);
    tokio::time::timeout(Duration::from_secs(1), gives_back).await.unwrap_err();
    assert_eq!(resident.load(Ordering::Relaxed), 76 << 20);
}
