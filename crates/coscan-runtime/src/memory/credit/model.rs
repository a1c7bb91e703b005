//! Tests under random schedules, see [`crate::sync`].
#![allow(clippy::unwrap_used)]

use super::*;
use crate::sync::{RUNS, check};
use shuttle::future::block_on;
use shuttle::thread;

const USER: MemoryUser = MemoryUser::Decoded;

/// Waits for `bytes` bytes as the owner of the budget does.
async fn collect(credit: &Credit, bell: &Bell, bytes: u64) {
    let mut collected_bytes = 0;
    loop {
        credit.mark_wanted();
        collected_bytes += credit.collect(0);
        if collected_bytes >= bytes {
            assert_eq!(collected_bytes, bytes);
            credit.clear_wanted();
            return;
        }
        bell.listen(None).await;
    }
}

#[test]
fn whoever_waits_gets_all_that_returns() {
    check(RUNS, || {
        let bell = Arc::new(Bell::default());
        let credit = Arc::new(Credit::new(100, Arc::clone(&bell)));
        credit.add(30);
        assert!(credit.try_take(USER, 30));
        let holders = [4, 6].map(|bytes| {
            let credit = Arc::clone(&credit);
            thread::spawn(move || (0..3).for_each(|_| credit.give(USER, bytes)))
        });
        block_on(collect(&credit, &bell, 30));
        holders.into_iter().for_each(|holder| holder.join().unwrap());
        assert_eq!((credit.free_bytes(), credit.usage().total_bytes()), (0, 0));
    });
}

#[test]
fn no_byte_is_taken_twice_or_lost() {
    check(RUNS, || {
        let bell = Arc::new(Bell::default());
        let credit = Arc::new(Credit::new(4, Arc::clone(&bell)));
        credit.add(10);
        let takers = [3, 5, 7].map(|bytes| {
            let credit = Arc::clone(&credit);
            thread::spawn(move || {
                for _ in 0..2 {
                    if credit.try_take(USER, bytes) {
                        thread::yield_now();
                        credit.give(USER, bytes);
                    }
                }
                credit.take(USER, bytes);
                thread::yield_now();
                credit.give(USER, bytes);
            })
        });
        let collected_bytes = credit.collect_surplus();
        takers.into_iter().for_each(|taker| taker.join().unwrap());
        assert_eq!(credit.free_bytes(), 10 - collected_bytes as i64);
        assert_eq!((credit.overdraft_bytes(), credit.usage().total_bytes()), (0, 0));
    });
}
