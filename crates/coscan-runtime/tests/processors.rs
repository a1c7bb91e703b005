//! Long scans give way to shorter ones at the processors, for as long as these have something to do there.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

mod common;

use std::time::Duration;

use common::stores::{FatedStore, Gate};
use common::{CHUNK_ROWS, Fixture, LARGE, manager_with};
use coscan_runtime::{Options, ScanStream};
use futures::{FutureExt, StreamExt};
use tokio::time::{Instant, advance};

/// What its query does with a batch takes longer than a turn.
const WORK: Duration = Duration::from_millis(5);

/// How long a scan stands still in so many batches.
async fn stands_still(stream: &mut ScanStream, batches: usize) -> Duration {
    let mut stood = Duration::ZERO;
    for _ in 0..batches {
        advance(WORK).await;
        let started = Instant::now();
        stream.next().await.unwrap().unwrap();
        stood += started.elapsed();
    }
    stood
}

#[tokio::test(start_paused = true)]
async fn a_long_scan_stands_still_while_a_short_one_has_a_chunk_and_not_before_or_after() {
    let fixture = Fixture::new(40 * CHUNK_ROWS).await;
    let gate = Gate::opened();
    let table = fixture.table_behind(|store| FatedStore::gated(store, &gate)).await;
    let options = Options { batch_rows: 10, ..Options::with_pool_bytes(LARGE, LARGE) };
    let manager = manager_with(options);
    let table = manager.register(table);
    let mut long = manager.scan(&table, &[0], &[fixture.all_rows()]).unwrap();
    long.next().await.unwrap().unwrap();

    gate.close();
    let mut short = manager.scan(&table, &[1], &[0..CHUNK_ROWS]).unwrap();
    assert!(short.next().now_or_never().is_none(), "it waits for the device");
    assert_eq!(stands_still(&mut long, 20).await, Duration::ZERO);

    gate.open();
    short.next().await.unwrap().unwrap();
    assert!(stands_still(&mut long, 20).await > 10 * WORK);

    drop(short);
    assert_eq!(stands_still(&mut long, 20).await, Duration::ZERO);
}
