#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{ElasticPool, Holder, MemoryBudget, Missing};
use crate::options::Options;

/// A pool that can give way to `least_bytes`, and counts how often it is asked to change.
#[derive(Debug)]
struct Pool {
    least_bytes: AtomicU64,
    generation: AtomicU64,
    asked: AtomicU64,
}

impl ElasticPool for Pool {
    fn set_limit_bytes(&self, bytes: u64) -> u64 {
        self.asked.fetch_add(1, Ordering::Relaxed);
        bytes.max(self.least_bytes.load(Ordering::Relaxed))
    }

    fn held_bytes(&self) -> u64 {
        0
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    fn settle(&self) {}

    fn memory_freed(&self) {}
}

impl Pool {
    fn asked(&self) -> u64 {
        self.asked.swap(0, Ordering::Relaxed)
    }
}

const POOL_BYTES: u64 = 64_000;

fn memory(least_bytes: u64) -> (MemoryBudget, Arc<Pool>) {
    let least_bytes = AtomicU64::new(least_bytes);
    let pool = Pool { least_bytes, generation: AtomicU64::new(0), asked: AtomicU64::new(0) };
    let pool = Arc::new(pool);
    let weak = Arc::downgrade(&pool);
    (MemoryBudget::new(&Options::with_pool_bytes(POOL_BYTES, 1_000), weak), pool)
}

#[test]
fn memory_taken_and_returned_in_small_pieces_does_not_move_the_pool_each_time() {
    let (memory, pool) = memory(0);
    memory.try_take(Holder::Operators, 1_000).unwrap();
    assert_eq!(pool.asked(), 0, "that was free");
    for _ in 0..5_000 {
        memory.try_take(Holder::Operators, 10).unwrap();
    }
    assert!((1..200).contains(&pool.asked()));
    let floor_bytes = POOL_BYTES / 8;
    assert!(memory.pool_limit_bytes() >= floor_bytes);
    for _ in 0..5_000 {
        memory.give(Holder::Operators, 10);
    }
    assert!((1..200).contains(&pool.asked()));
}

#[test]
fn a_pool_that_cannot_give_way_is_asked_again_when_it_may_be_able_to() {
    let (memory, pool) = memory(60_000);
    for _ in 0..10 {
        let refused = memory.try_take(Holder::Decoded, 6_000);
        assert_eq!(refused, Err(Missing { bytes: 1_000 }));
    }
    assert!(pool.asked() <= 2, "to shrink, and to grow back");
    assert_eq!(memory.pool_limit_bytes(), POOL_BYTES);
    memory.try_take(Holder::Decoded, 5_000).unwrap();
    memory.give(Holder::Decoded, 5_000);

    pool.least_bytes.store(0, Ordering::Relaxed);
    assert!(memory.try_take(Holder::Decoded, 6_000).is_err(), "nothing happened since");
    pool.generation.store(1, Ordering::Relaxed);
    memory.try_take(Holder::Decoded, 6_000).unwrap();
}

#[test]
fn what_is_beyond_the_budget_is_missing_whatever_the_pool_gives() {
    let (memory, pool) = memory(0);
    let all_bytes = POOL_BYTES + 1_000;
    let missing = memory.try_take(Holder::Operators, all_bytes + 5).unwrap_err();
    assert_eq!(missing, Missing { bytes: 5 + POOL_BYTES / 8 });
    assert_eq!(pool.asked(), 0);
}
