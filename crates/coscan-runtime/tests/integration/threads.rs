//! A manager reads on threads of its own, so loads continue whatever its callers do with theirs.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::time::{Duration, Instant};

use crate::common::{CHUNK_ROWS, Fixture, LARGE, are_rows, ids};
use coscan_runtime::{BufferManager, Options, ScanStream};
use coscan_testing::Faults;
use futures::executor::block_on;
use futures::{FutureExt, StreamExt};

const ROWS: u64 = 4 * CHUNK_ROWS;

fn manager() -> BufferManager {
    BufferManager::new(Options::with_pool_bytes(LARGE, LARGE)).unwrap()
}

/// Waits without yielding the thread, as a query does that works.
fn work_until(is_over: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_over() {
        assert!(started.elapsed() < Duration::from_secs(60), "it does not go on");
        std::hint::spin_loop();
    }
}

/// A manager, and a scan of all rows that waits for a device until the gate is opened.
async fn waiting_scan() -> (BufferManager, ScanStream, Faults) {
    let ((gate, table), manager) = (Fixture::new(ROWS).await.table_with_faults().await, manager());
    gate.close();
    let mut stream = manager.scan(&manager.register(table), &[0], &[0..ROWS]).unwrap();
    assert!(stream.next().now_or_never().is_none(), "nothing is there yet");
    (manager, stream, gate)
}

#[tokio::test]
async fn it_reads_while_its_callers_work() {
    let (manager, stream, gate) = waiting_scan().await;
    gate.open();
    work_until(|| manager.report().pool_held_bytes > 0 && manager.report().loads_in_flight == 0);
    assert!(are_rows(ids(stream).await, 0..ROWS));
}

#[test]
fn its_callers_need_no_runtime() {
    let manager = manager();
    let fixture = block_on(Fixture::new(ROWS));
    let table = manager.register(block_on(fixture.table()));
    let stream = manager.scan(&table, &[0], &[0..ROWS]).unwrap();
    assert!(are_rows(block_on(ids(stream)), 0..ROWS));
}

#[tokio::test]
async fn it_may_be_dropped_while_it_reads() {
    let (manager, stream, gate) = waiting_scan().await;
    drop((stream, manager));
    gate.open();
}
