//! A stream that is not polled any more keeps no chunk and no memory that others need, and loses no row by it.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::time::Duration;

use crate::common::{
    CHUNK_ROWS, Fixture, are_rows, assert_free, ids, in_time, manager_with, registered_bytes, until,
};
use coscan_runtime::{BufferManager, Options, ScanStream, SharedTable};
use coscan_testing::Faults;
use futures::{FutureExt, StreamExt};

const ROWS: u64 = 6 * CHUNK_ROWS;

/// The size of the pool: one chunk of all columns, and little more.
const POOL: u64 = 64 << 10;

/// The rest of the budget.
const OUTSIDE: u64 = 16 << 20;

async fn gated() -> (BufferManager, SharedTable, Faults) {
    let (gate, table) = Fixture::new(ROWS).await.table_with_faults().await;
    let manager = manager_with(Options {
        memory_bytes: POOL + OUTSIDE + registered_bytes(&table),
        pool_bytes_min: POOL,
        ..Options::with_pool_bytes(POOL, POOL)
    });
    let table = manager.register(table);
    gate.close();
    (manager, table, gate)
}

fn scan(manager: &BufferManager, table: &SharedTable) -> ScanStream {
    manager.scan(table, &[0, 1, 2], &[0..ROWS]).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_chunk_that_was_not_fetched_is_taken_back_for_another_scan() {
    let (manager, table, gate) = gated().await;
    let mut unpolled = scan(&manager, &table);
    assert!(unpolled.next().now_or_never().is_none(), "its pages are not read yet");
    gate.open();
    until(|| manager.report().chunks_in_use > 0).await;
    let rows = in_time(ids(scan(&manager, &table))).await;
    assert!(are_rows(rows, 0..ROWS));
    assert!(are_rows(in_time(ids(unpolled)).await, 0..ROWS), "it loses no row");
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn a_chunk_that_waits_to_be_opened_is_taken_back_for_another_scan() {
    let (manager, table, gate) = gated().await;
    let (mut unpolled, other) = (scan(&manager, &table), scan(&manager, &table));
    assert!(unpolled.next().now_or_never().is_none(), "its pages are not read yet");
    let operators = manager.operator_memory();
    assert!(operators.try_take(OUTSIDE));
    gate.open();
    until(|| manager.report().chunks_in_use > 0).await;
    assert!(unpolled.next().now_or_never().is_none(), "there is no memory to share its columns");
    assert_eq!(manager.report().chunks_in_use, 1);
    operators.give(OUTSIDE);
    assert!(are_rows(in_time(ids(other)).await, 0..ROWS));
    assert!(are_rows(in_time(ids(unpolled)).await, 0..ROWS), "it loses no row");
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn memory_that_was_not_fetched_is_taken_back_for_others() {
    let (manager, table, gate) = gated().await;
    let operators = manager.operator_memory();
    let mut unpolled = scan(&manager, &table);
    assert!(operators.try_take(OUTSIDE));
    assert!(unpolled.next().now_or_never().is_none(), "its pages are not read yet");
    gate.open();
    until(|| manager.report().chunks_in_use > 0).await;
    assert!(unpolled.next().now_or_never().is_none(), "it waits for memory");
    operators.give(OUTSIDE);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!operators.try_take(OUTSIDE), "the scan has been granted some");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(operators.try_take(OUTSIDE), "which it did not fetch");
    assert!(unpolled.next().now_or_never().is_none(), "it waits again");
    operators.give(OUTSIDE);
    assert!(are_rows(in_time(ids(unpolled)).await, 0..ROWS));
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_consumer_gets_on_while_others_lack_space() {
    let (manager, table, gate) = gated().await;
    gate.open();
    let busy = async {
        loop {
            assert!(are_rows(ids(scan(&manager, &table)).await, 0..ROWS));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let slow = async {
        let (mut stream, mut rows) = (scan(&manager, &table), 0);
        loop {
            match stream.next().now_or_never() {
                Some(Some(batch)) => rows += batch.unwrap().num_rows() as u64,
                Some(None) => return rows,
                None => {}
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        () = busy => unreachable!(),
        rows = tokio::time::timeout(Duration::from_secs(1000), slow) => {
            assert_eq!(rows.expect("it gets on"), ROWS);
        }
    }
}
