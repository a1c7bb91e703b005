//! Long scans yield to shorter ones at the processors, for as long as these have something to do there.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::time::Duration;

use crate::common::{CHUNK_ROWS, Fixture, LARGE, manager_with};
use coscan_runtime::{BufferManager, Options, ScanRequest, ScanStream, SharedTable};
use coscan_testing::Faults;
use futures::{FutureExt, StreamExt};
use tokio::time::{Instant, advance};

/// The work of a query on a batch. It takes longer than a turn.
const WORK: Duration = Duration::from_millis(5);

/// The time until a scan gives its next batch, after its query has worked on the one before.
async fn pause_of(stream: &mut ScanStream) -> Duration {
    advance(WORK).await;
    let started = Instant::now();
    stream.next().await.unwrap().unwrap();
    started.elapsed()
}

/// The sum of these pauses over `batches` batches.
async fn pauses_in_all(stream: &mut ScanStream, batches: usize) -> Duration {
    let mut stood = Duration::ZERO;
    for _ in 0..batches {
        stood += pause_of(stream).await;
    }
    stood
}

/// A manager that gives small batches, and a table of `chunks` chunks whose reads pass a gate.
async fn gated(chunks: u64) -> (BufferManager, SharedTable, Faults) {
    let (gate, table) = Fixture::new(chunks * CHUNK_ROWS).await.table_with_faults().await;
    let options = Options { batch_rows: 10, ..Options::with_pool_bytes(LARGE, LARGE) };
    let manager = manager_with(options);
    let table = manager.register(table);
    (manager, table, gate)
}

#[tokio::test(start_paused = true)]
async fn a_long_scan_pauses_while_a_short_one_works_and_not_before_or_after() {
    let (manager, table, gate) = gated(40).await;
    let mut long = manager.scan(&table, &[0], &[0..40 * CHUNK_ROWS]).unwrap();
    long.next().await.unwrap().unwrap();

    gate.close();
    let mut short = manager.scan(&table, &[1], &[0..CHUNK_ROWS]).unwrap();
    assert!(short.next().now_or_never().is_none(), "it waits for the device");
    assert_eq!(pauses_in_all(&mut long, 20).await, Duration::ZERO);

    gate.open();
    let mut stood = Duration::ZERO;
    for _ in 0..20 {
        short.next().await.unwrap().unwrap();
        stood += pause_of(&mut long).await;
    }
    assert!(stood > 10 * WORK, "{stood:?}");

    // Its query takes no more. It counts as at work for as long as it may take to ask again.
    let stood = pauses_in_all(&mut long, 20).await;
    assert!(stood <= 4 * WORK, "{stood:?}");
    assert_eq!(pauses_in_all(&mut long, 20).await, Duration::ZERO);

    short.next().await.unwrap().unwrap();
    assert!(pause_of(&mut long).await > Duration::ZERO, "it is polled again");
    short.next().await.unwrap().unwrap();
    drop(short);
    assert_eq!(pauses_in_all(&mut long, 20).await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_scan_does_not_give_way_to_itself_when_a_longer_one_makes_it_short() {
    let (manager, table, _opened) = gated(64).await;
    let rows = 3 * CHUNK_ROWS;
    let mut first = manager.scan(&table, &[0], &[0..rows]).unwrap();
    first.next().await.unwrap().unwrap();
    // From its next chunk on the first one is short beside this.
    let mut second = manager.scan(&table, &[1], &[0..64 * CHUNK_ROWS]).unwrap();
    second.next().await.unwrap().unwrap();
    for _ in 1..rows / 10 {
        assert_eq!(pause_of(&mut first).await, Duration::ZERO);
    }
    assert!(first.next().await.is_none());

    let request =
        ScanRequest { rows: vec![0..rows], workers: 2, ..ScanRequest::of_columns(&table, vec![0]) };
    let scan = manager.start_scan(&table, request).unwrap();
    let mut workers = [0, 1].map(|worker| scan.worker(worker));
    for _ in 0..20 {
        for worker in &mut workers {
            assert_eq!(pause_of(worker).await, Duration::ZERO);
        }
    }
    assert!(pause_of(&mut second).await > Duration::ZERO, "this one does");
}
