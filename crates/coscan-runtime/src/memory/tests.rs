#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use super::{Credit, ElasticPool, Grants, MemoryUser, Missing};
use crate::bell::Bell;
use crate::options::Options;

/// A pool that can give way to `least_bytes`, and counts how often it is asked to change.
#[derive(Debug)]
struct Pool {
    limit_bytes: u64,
    least_bytes: u64,
    generation: u64,
    asked: u64,
}

impl ElasticPool for Pool {
    fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    fn set_limit_bytes(&mut self, bytes: u64) -> u64 {
        self.asked += 1;
        self.limit_bytes = bytes.max(self.least_bytes);
        self.limit_bytes
    }

    fn generation(&self) -> u64 {
        self.generation
    }
}

const POOL_BYTES: u64 = 64_000;
const BUDGET_BYTES: u64 = POOL_BYTES + 1_000;

struct Memory {
    grants: Grants,
    credit: Credit,
    pool: Pool,
}

fn memory(least_bytes: u64) -> Memory {
    let options = Options::with_pool_bytes(POOL_BYTES, BUDGET_BYTES - POOL_BYTES);
    let pool = Pool { limit_bytes: POOL_BYTES, least_bytes, generation: 0, asked: 0 };
    let credit = Credit::new(500, Arc::new(Bell::default()));
    Memory { grants: Grants::new(&options), credit, pool }
}

impl Memory {
    fn try_take(&mut self, bytes: u64) -> Result<(), Missing> {
        if !self.credit.try_take(MemoryUser::Operators, bytes) {
            self.grants.grant(&self.credit, &mut self.pool, bytes)?;
            assert!(self.credit.try_take(MemoryUser::Operators, bytes));
        }
        self.check();
        Ok(())
    }

    fn give(&mut self, bytes: u64) {
        self.credit.give(MemoryUser::Operators, bytes);
        if self.credit.free_bytes() > 500 {
            self.grants.collect(&self.credit, &mut self.pool);
        }
        self.check();
    }

    /// Nothing is handed out twice, or lost.
    fn check(&self) {
        let held_bytes = self.credit.usage().total_bytes();
        let granted_bytes = i128::from(held_bytes) + i128::from(self.credit.free_bytes());
        assert_eq!(i128::from(self.grants.granted_bytes()), granted_bytes);
        assert!(self.grants.granted_bytes() + self.pool.limit_bytes <= BUDGET_BYTES);
    }

    fn asked(&mut self) -> u64 {
        std::mem::take(&mut self.pool.asked)
    }
}

#[test]
fn memory_taken_and_returned_in_small_pieces_does_not_move_the_pool_each_time() {
    let mut memory = memory(0);
    memory.try_take(1_000).unwrap();
    assert_eq!(memory.asked(), 0, "that was free");
    for _ in 0..5_000 {
        memory.try_take(10).unwrap();
    }
    assert!((1..200).contains(&memory.asked()));
    assert!(memory.pool.limit_bytes >= POOL_BYTES / 8);
    for _ in 0..5_000 {
        memory.give(10);
    }
    assert!((1..200).contains(&memory.asked()));
    memory.grants.collect(&memory.credit, &mut memory.pool);
    assert_eq!(memory.grants.granted_bytes(), 1_000);
}

#[test]
fn a_pool_that_cannot_give_way_is_asked_again_when_it_may_be_able_to() {
    let mut memory = memory(60_000);
    for _ in 0..10 {
        assert_eq!(memory.try_take(6_000), Err(Missing { bytes: 1_000 }));
    }
    assert!(memory.asked() <= 2, "to shrink, and to grow back");
    assert_eq!(memory.pool.limit_bytes, POOL_BYTES);
    memory.try_take(5_000).unwrap();
    memory.give(5_000);
    memory.grants.collect(&memory.credit, &mut memory.pool);

    memory.pool.least_bytes = 0;
    assert!(memory.try_take(6_000).is_err(), "nothing happened since");
    memory.pool.generation = 1;
    memory.try_take(6_000).unwrap();
}

#[test]
fn what_is_beyond_the_budget_is_missing_whatever_the_pool_gives() {
    let mut memory = memory(0);
    let missing = memory.try_take(BUDGET_BYTES + 5).unwrap_err();
    assert_eq!(missing, Missing { bytes: 5 + POOL_BYTES / 8 });
    assert!(memory.try_take(u64::MAX).is_err());
    assert_eq!(memory.asked(), 0);
}

#[test]
fn an_overdraft_takes_from_the_pool_what_it_can_give() {
    let mut memory = memory(0);
    let floor_bytes = POOL_BYTES / 8;
    assert!(memory.credit.take(MemoryUser::Decoded, BUDGET_BYTES));
    memory.grants.cover(&memory.credit, &mut memory.pool);
    assert_eq!(memory.pool.limit_bytes, floor_bytes);
    assert_eq!(memory.credit.free_bytes(), -i64::try_from(floor_bytes).unwrap());
    memory.check();
    assert!(memory.try_take(1).is_err(), "all is held");
    memory.credit.give(MemoryUser::Decoded, BUDGET_BYTES);
    memory.grants.collect(&memory.credit, &mut memory.pool);
    memory.check();
    assert_eq!((memory.grants.granted_bytes(), memory.pool.limit_bytes), (0, POOL_BYTES));
}
