//! The budget is kept: requests for memory wait, fail after too long, and are met when memory is returned.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::ops::Range;
use std::time::Duration;

use crate::common::{
    CHUNK_ROWS, Fixture, LARGE, are_rows, assert_free, file_bytes, ids, in_time, int64s,
    largest_chunk_bytes, manager_with, registered_bytes,
};
use arrow_array::RecordBatch;
use coscan_runtime::core::PolicyKind;
use coscan_runtime::{BufferManager, Options, ScanError, ScanStream, SharedTable};
use futures::future::join_all;
use futures::{FutureExt, StreamExt, TryStreamExt};
use parquet::basic::Compression;

const ROWS: u64 = 12 * CHUNK_ROWS;

/// A manager and the test table. The pool holds a chunk of all columns; beside it and the table is room for this many bytes.
async fn smallest(decode_bytes: u64, policy: PolicyKind) -> (BufferManager, SharedTable) {
    let table = Fixture::new(ROWS).await.table().await;
    let beside_bytes = decode_bytes + registered_bytes(&table);
    let options = Options::with_pool_bytes(largest_chunk_bytes(&table), beside_bytes);
    let manager = manager_with(options.policy(policy));
    let table = manager.register(table);
    (manager, table)
}

fn scan(manager: &BufferManager, table: &SharedTable, columns: &[usize]) -> ScanStream {
    manager.scan(table, columns, &[0..ROWS]).unwrap()
}

fn scan_rows(manager: &BufferManager, table: &SharedTable, rows: Range<u64>) -> ScanStream {
    manager.scan(table, &[0], &[rows]).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_scans_stay_within_a_small_budget() {
    for policy in PolicyKind::ALL {
        for decode_bytes in [200 << 10, 400 << 10, 4 << 20] {
            let (manager, table) = smallest(decode_bytes, policy).await;
            let columns = [&[0, 1, 2][..], &[0], &[0, 2], &[0, 1]].repeat(4);
            let scans = columns.into_iter().map(|columns| scan(&manager, &table, columns));
            let scans: Vec<_> = scans.map(|stream| tokio::spawn(ids(stream))).collect();
            for scan in in_time(join_all(scans)).await {
                assert!(are_rows(scan.unwrap(), 0..ROWS), "{policy}, {decode_bytes}");
            }
            assert_free(&manager).await;
        }
    }
}

#[tokio::test]
async fn what_is_registered_is_counted_as_long_as_it_is() {
    let parquet = Fixture::new(ROWS).await.table().await;
    let pages: usize = parquet.parquet_files().iter().map(|file| file.page_count()).sum();
    let manager = manager_with(Options::with_pool_bytes(LARGE, LARGE));
    let counted_bytes = || manager.report().metadata_bytes;

    let first = manager.register(parquet.clone());
    let of_one = counted_bytes();
    assert!(of_one >= 64 * pages as u64, "{of_one} bytes for {pages} pages");
    // Its pages and chunks exist once; only the snapshot has lists of its own.
    let second = manager.register(parquet.clone());
    let of_both = counted_bytes();
    assert!(of_both > of_one && of_both < of_one * 3 / 2, "{of_one} bytes, then {of_both}");
    drop(first);
    assert_eq!(counted_bytes(), of_one);
    drop(second);
    assert_eq!(counted_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn idle_pages_are_evicted() {
    let idle_timeout = Duration::from_secs(60);
    let options = Options { idle_timeout, ..Options::with_pool_bytes(LARGE, LARGE) };
    let manager = manager_with(options);
    let [used, idle] = [Fixture::new(ROWS).await, Fixture::new(ROWS).await];
    let [used, idle] = [manager.register(used.table().await), manager.register(idle.table().await)];
    let held_bytes = || manager.report().pool_held_bytes;
    ids(scan(&manager, &used, &[0])).await.unwrap();
    let used_bytes = held_bytes();
    ids(scan(&manager, &idle, &[0])).await.unwrap();
    assert_eq!(held_bytes(), 2 * used_bytes);

    // This is just after the first, the second and the third interval.
    tokio::time::sleep(idle_timeout + idle_timeout / 10).await;
    assert_eq!(held_bytes(), 2 * used_bytes);
    ids(scan(&manager, &used, &[0])).await.unwrap();
    tokio::time::sleep(idle_timeout).await;
    assert_eq!(held_bytes(), used_bytes);
    tokio::time::sleep(idle_timeout).await;
    assert_eq!(held_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn pages_are_kept_if_that_is_asked_for() {
    let options = Options::with_pool_bytes(LARGE, LARGE);
    let manager = manager_with(Options { idle_timeout: Duration::MAX, ..options });
    let table = manager.register(Fixture::new(ROWS).await.table().await);
    ids(scan(&manager, &table, &[0])).await.unwrap();
    let held_bytes = manager.report().pool_held_bytes;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(manager.report().pool_held_bytes, held_bytes);

    let not_at_all = Options { idle_timeout: Duration::ZERO, ..manager.options().clone() };
    let error = BufferManager::new(not_at_all).unwrap_err();
    assert!(error.to_string().contains("`idle_timeout` is 0"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_query_that_keeps_everything_is_told_and_others_go_on() {
    let (manager, table) = smallest(300 << 10, PolicyKind::Relevance).await;
    let keeper = scan(&manager, &table, &[0, 1, 2]);
    let keeper = tokio::spawn(async move { keeper.try_collect::<Vec<RecordBatch>>().await });
    tokio::time::sleep(manager.options().memory_timeout / 2).await;
    assert!(!keeper.is_finished(), "it waits");
    let others = [&[0, 2][..], &[0]].map(|columns| ids(scan(&manager, &table, columns)));
    let others = tokio::spawn(join_all(others));
    let error = in_time(keeper).await.unwrap().unwrap_err();
    assert!(matches!(error, ScanError::Exhausted { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("give coscan more memory, or let fewer queries run at once"), "{text}");
    for other in in_time(others).await.unwrap() {
        assert!(are_rows(other, 0..ROWS));
    }
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn a_query_that_drops_what_it_kept_goes_on() {
    let (manager, table) = smallest(300 << 10, PolicyKind::Relevance).await;
    let mut stream = scan(&manager, &table, &[0, 1, 2]);
    let (mut kept, mut ids, mut stops) = (Vec::new(), Vec::new(), 0);
    loop {
        match tokio::time::timeout(Duration::from_secs(1), stream.next()).await {
            Ok(None) => break,
            Ok(Some(batch)) => {
                let batch = batch.unwrap();
                ids.extend(int64s(&batch, 0));
                kept.push(batch);
            }
            Err(_) => {
                stops += 1;
                kept.clear();
            }
        }
    }
    assert!(stops > 0, "the budget is small");
    assert!(are_rows(Ok(ids), 0..ROWS));
    drop((stream, kept));
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn the_pool_gives_way_to_operators_down_to_its_floor_and_grows_back() {
    let table = Fixture::new(ROWS).await.table().await;
    let options =
        Options { pool_bytes_min: 100 << 10, ..Options::with_pool_bytes(1 << 20, 1 << 20) };
    let manager = manager_with(options);
    let table = manager.register(table);
    assert!(are_rows(in_time(ids(scan(&manager, &table, &[0, 1, 2]))).await, 0..ROWS));
    let held_bytes = manager.report().pool_held_bytes;
    assert!(held_bytes > 500 << 10, "{held_bytes}");

    let operators = manager.operator_memory();
    let most = (2 << 20) - (100 << 10) - manager.report().metadata_bytes;
    assert!(!operators.try_take(most + 1));
    assert_eq!(manager.report().pool_held_bytes, held_bytes, "nothing goes in vain");
    assert!(operators.try_take(most));
    let report = manager.report();
    assert_eq!((report.pool_limit_bytes, report.operator_bytes), (100 << 10, most));
    assert!(report.pool_held_bytes <= 100 << 10);
    assert!(!operators.try_take(1));
    operators.give(most);
    assert_eq!(manager.report().pool_limit_bytes, 1 << 20);
    operators.take(most);
    assert_eq!(manager.report().pool_limit_bytes, 100 << 10, "also to what is in use already");
    operators.give(most);
    assert!(are_rows(in_time(ids(scan(&manager, &table, &[0, 1, 2]))).await, 0..ROWS));
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn the_pool_is_made_smaller_and_larger_while_a_scan_runs() {
    for policy in PolicyKind::ALL {
        let table = Fixture::new(ROWS).await.table().await;
        let chunk_bytes = largest_chunk_bytes(&table);
        let pool_bytes = 10 * chunk_bytes;
        let options = Options::with_pool_bytes(pool_bytes, 1 << 20).policy(policy);
        let manager = manager_with(options);
        let table = manager.register(table);
        assert!(are_rows(in_time(ids(scan(&manager, &table, &[0, 1, 2]))).await, 0..ROWS));

        manager.set_pool_bytes(chunk_bytes).unwrap();
        let report = manager.report();
        assert_eq!(report.pool_limit_bytes, chunk_bytes, "{policy}");
        assert!(report.pool_held_bytes <= chunk_bytes, "{policy}: {report:?}");
        // The set size is a limit also when others return memory.
        let operators = manager.operator_memory();
        assert!(operators.try_take(1 << 20));
        operators.give(1 << 20);
        assert_eq!(manager.report().pool_limit_bytes, chunk_bytes, "{policy}");
        assert!(are_rows(in_time(ids(scan(&manager, &table, &[0, 1, 2]))).await, 0..ROWS));
        assert!(manager.report().pool_held_bytes <= chunk_bytes, "{policy}");

        // Pages that are being read keep the pool larger, but not for long.
        manager.set_pool_bytes(pool_bytes).unwrap();
        let running = scan(&manager, &table, &[0, 1, 2]);
        manager.set_pool_bytes(chunk_bytes).unwrap();
        assert!(are_rows(in_time(ids(running)).await, 0..ROWS), "{policy}");
        assert_eq!(manager.report().pool_limit_bytes, chunk_bytes, "{policy}");

        manager.set_pool_bytes(chunk_bytes - 1).unwrap();
        let refused = manager.scan(&table, &[0, 1, 2], &[0..ROWS]).unwrap_err().to_string();
        assert!(refused.contains(&(chunk_bytes - 1).to_string()), "{refused}");
        manager.set_pool_bytes(pool_bytes).unwrap();
        assert_eq!(manager.report().pool_limit_bytes, pool_bytes, "{policy}");
        assert!(are_rows(in_time(ids(scan(&manager, &table, &[0, 1, 2]))).await, 0..ROWS));
        assert!(manager.report().pool_held_bytes > chunk_bytes, "{policy}: all is used again");

        let error = manager.set_pool_bytes(pool_bytes + 1).unwrap_err().to_string();
        assert!(error.contains("more than memory_bytes"), "{error}");
        assert!(manager.set_pool_bytes(0).unwrap_err().to_string().contains("`pool_bytes` is 0"));
        assert_free(&manager).await;
    }
}

#[tokio::test(start_paused = true)]
async fn scans_that_wait_for_operators_go_on_when_these_give() {
    for policy in PolicyKind::ALL {
        let (manager, table) = smallest(300 << 10, policy).await;
        let operators = manager.operator_memory();
        let streams =
            [&[0, 1, 2][..], &[0], &[0, 2]].map(|columns| scan(&manager, &table, columns));
        // The memory is taken while they run: the pool cannot shrink, since it is as large as one
        // of their chunks.
        assert!(operators.try_take(300 << 10));
        assert!(!operators.try_take(1), "{policy}");
        let scans = tokio::spawn(join_all(streams.map(ids)));
        tokio::time::sleep(manager.options().memory_timeout / 2).await;
        assert!(!scans.is_finished());
        operators.give(300 << 10);
        for scan in in_time(scans).await.unwrap() {
            assert!(are_rows(scan, 0..ROWS), "{policy}");
        }
        assert_free(&manager).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_queued_request_is_met_at_once() {
    let (manager, table) = smallest(300 << 10, PolicyKind::Relevance).await;
    let operators = manager.operator_memory();
    let mut stream = scan(&manager, &table, &[0, 1, 2]);
    assert!(operators.try_take(300 << 10));
    let waiting = tokio::spawn(async move {
        let batch = stream.next().await;
        (batch.is_some_and(|batch| batch.is_ok()), tokio::time::Instant::now())
    });
    let noticing = manager.clone();
    let noticed = tokio::spawn(async move { noticing.memory_shortage().await });
    assert!(!manager.is_memory_short());
    // This is no multiple of the time after which it looks again by itself.
    tokio::time::sleep(Duration::from_millis(1234)).await;
    assert!(manager.is_memory_short() && noticed.is_finished());
    operators.give(300 << 10);
    let given = tokio::time::Instant::now();
    assert_eq!(in_time(waiting).await.unwrap(), (true, given));
    assert!(!manager.is_memory_short());
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn operators_come_before_columns_kept_for_later() {
    let (manager, table) = smallest(300 << 10, PolicyKind::Relevance).await;
    let later = scan(&manager, &table, &[0]);
    assert!(are_rows(in_time(ids(scan(&manager, &table, &[0]))).await, 0..ROWS));
    assert!(manager.report().decoded_bytes > 0, "kept for the later one");
    let operators = manager.operator_memory();
    // All but the table and room for a chunk of the later scan.
    let most = manager.options().memory_bytes - manager.report().metadata_bytes - 10_000;
    assert!(operators.try_take(most));
    assert_eq!(manager.report().decoded_bytes, 0);
    operators.give(most);
    assert!(are_rows(in_time(ids(later)).await, 0..ROWS));
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn a_scan_that_finds_the_pool_small_gets_it_back_or_is_told_why_not() {
    let table = Fixture::new(ROWS).await.table().await;
    let pool_bytes = 2 * largest_chunk_bytes(&table);
    let manager = manager_with(Options::with_pool_bytes(pool_bytes, 300 << 10));
    let table = manager.register(table);
    let later = scan(&manager, &table, &[0]);
    assert!(are_rows(in_time(ids(scan(&manager, &table, &[0]))).await, 0..ROWS));
    // Columns decoded for later and the operators leave the pool too little for a wide chunk.
    let operators = manager.operator_memory();
    let taken = 300 << 10;
    assert!(operators.try_take(taken) && operators.try_take(pool_bytes * 2 / 3));
    assert!(manager.report().pool_limit_bytes < pool_bytes / 2);
    let error = manager.scan(&table, &[0, 1, 2], &[0..ROWS]).unwrap_err();
    assert!(error.to_string().starts_with("out of memory"), "{error}");
    operators.give(taken);
    let wide = ids(scan(&manager, &table, &[0, 1, 2]));
    operators.give(pool_bytes * 2 / 3);
    let (wide, later) = in_time(futures::future::join(wide, ids(later))).await;
    assert!(are_rows(wide, 0..ROWS) && are_rows(later, 0..ROWS));
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn a_scan_that_finds_the_pool_small_comes_before_columns_kept_for_later() {
    let table = Fixture::new(ROWS).await.table().await;
    let chunk_bytes = largest_chunk_bytes(&table);
    let manager = manager_with(Options::with_pool_bytes(2 * chunk_bytes, 300 << 10));
    let table = manager.register(table);
    let later = scan(&manager, &table, &[0]);
    assert!(are_rows(in_time(ids(scan(&manager, &table, &[0]))).await, 0..ROWS));
    let operators = manager.operator_memory();
    let report = manager.report();
    let taken = report.memory_bytes - report.decoded_bytes - chunk_bytes * 3 / 4;
    assert!(operators.try_take(taken));
    assert!(manager.report().pool_limit_bytes < chunk_bytes);
    let wide = scan(&manager, &table, &[0, 1, 2]);
    assert!(manager.report().pool_limit_bytes >= chunk_bytes);
    operators.give(taken);
    let (wide, later) = in_time(futures::future::join(ids(wide), ids(later))).await;
    assert!(are_rows(wide, 0..ROWS) && are_rows(later, 0..ROWS));
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn a_query_may_wait_for_one_scan_in_the_midst_of_another() {
    for policy in PolicyKind::ALL {
        let (manager, table) = smallest(500 << 10, policy).await;
        let columns = [&[0, 1][..], &[0, 1, 2], &[0]];
        for (first, second) in columns.iter().flat_map(|a| columns.iter().map(move |b| (a, b))) {
            // The streams are read as by a join: all of the second within the first.
            let (mut probe, build) =
                (scan(&manager, &table, first), scan(&manager, &table, second));
            let mut found = int64s(&in_time(probe.next()).await.unwrap().unwrap(), 0);
            assert!(are_rows(in_time(ids(build)).await, 0..ROWS), "{policy}");
            found.extend(in_time(ids(probe)).await.unwrap());
            assert!(are_rows(Ok(found), 0..ROWS), "{policy}");
            // The streams are read as by a merge: in turn.
            let mut streams = [first, second].map(|columns| scan(&manager, &table, columns));
            let mut found = [Vec::new(), Vec::new()];
            for turn in 0.. {
                let Some(batch) = in_time(streams[turn % 2].next()).await else { break };
                found[turn % 2].extend(int64s(&batch.unwrap(), 0));
            }
            drop(streams);
            assert!(are_rows(Ok(found[0].clone()), 0..ROWS), "{policy}");
        }
        assert_free(&manager).await;
    }
}

/// Takes the memory that operators can get, holds it for a while and returns it, again and again.
async fn take_and_give(manager: BufferManager) {
    let operators = manager.operator_memory();
    loop {
        let mut taken = 0;
        for bits in (10..20).rev() {
            while operators.try_take(1 << bits) {
                taken += 1 << bits;
            }
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
        operators.give(taken);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_scan_fails_while_operators_take_all_and_return_it() {
    for policy in PolicyKind::ALL {
        let (manager, table) = smallest(200 << 10, policy).await;
        let columns = [&[0, 1, 2][..], &[0], &[0, 2], &[0, 1]].repeat(4);
        let streams: Vec<_> =
            columns.into_iter().map(|columns| scan(&manager, &table, columns)).collect();
        let operators = tokio::spawn(take_and_give(manager.clone()));
        tokio::task::yield_now().await;
        let scans = streams.into_iter().map(|mut stream| {
            tokio::spawn(async move {
                let mut ids = Vec::new();
                while let Some(batch) = stream.next().await {
                    ids.extend(int64s(&batch?, 0));
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Ok(ids)
            })
        });
        for scan in in_time(join_all(scans.collect::<Vec<_>>())).await {
            assert!(are_rows(scan.unwrap(), 0..ROWS), "{policy}");
        }
        operators.abort();
        assert!(operators.await.is_err());
        manager.operator_memory().give(manager.report().operator_bytes);
        assert_free(&manager).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_waits_for_memory_pins_no_pages() {
    const SCANS: u64 = 6;
    for policy in PolicyKind::ALL {
        let (gate, table) = Fixture::new(ROWS).await.table_with_faults().await;
        gate.close();
        let chunk_bytes = largest_chunk_bytes(&table);
        let options = Options {
            pool_bytes_min: chunk_bytes,
            active_workers_max: 100,
            loads_in_flight_max: 100,
            ..Options::with_pool_bytes(SCANS * chunk_bytes, 300 << 10)
        };
        let manager = manager_with(options.policy(policy));
        let table = manager.register(table);
        // A chunk for each: together they are the whole pool.
        let mut streams: Vec<_> = (0..SCANS)
            .map(|scan| scan * CHUNK_ROWS..(scan + 1) * CHUNK_ROWS)
            .map(|rows| manager.scan(&table, &[0, 1, 2], &[rows]).unwrap())
            .collect();
        let operators = manager.operator_memory();
        assert!(operators.try_take(300 << 10));
        assert!(streams.iter_mut().all(|stream| stream.next().now_or_never().is_none()));
        gate.open();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(manager.report().chunks_in_use, SCANS as usize, "{policy}");
        // Only the pool can give memory to decode.
        let found: Result<Vec<_>, _> =
            in_time(join_all(streams.into_iter().map(ids))).await.into_iter().collect();
        assert!(are_rows(found.map(|ids| ids.concat()), 0..SCANS * CHUNK_ROWS), "{policy}");
        operators.give(300 << 10);
        assert_free(&manager).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_request_is_not_overtaken_for_ever_by_small_ones() {
    let (manager, table) = smallest(200 << 10, PolicyKind::Relevance).await;
    // Parts of chunks are not shared, so each scan decodes for itself.
    let parts: Vec<_> = (0..ROWS).step_by(1000).map(|start| start..start + 999).collect();
    let wide = manager.scan(&table, &[0, 1, 2], &parts).unwrap();
    let narrow = (0..60).map(|number| {
        let (manager, table, parts) = (manager.clone(), table.clone(), parts.clone());
        tokio::spawn(async move {
            let mut stream = manager.scan(&table, &[0], &parts)?;
            while let Some(batch) = stream.next().await {
                let _held = batch?;
                tokio::time::sleep(Duration::from_millis(1_500 + 11 * number)).await;
            }
            Ok::<_, ScanError>(())
        })
    });
    let narrow: Vec<_> = narrow.collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let found = tokio::spawn(ids(wide));
    let narrow = in_time(join_all(narrow)).await;
    assert!(narrow.into_iter().all(|narrow| narrow.unwrap().is_ok()));
    assert_eq!(in_time(found).await.unwrap().unwrap().len(), 12 * 999);
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_nobody_polls_for_ends_and_holds_up_no_other() {
    const OUTSIDE: u64 = 300 << 10;
    /// A size that is enough for a chunk of one column, not for one of all.
    const NARROW: u64 = 60 << 10;
    let (manager, table) = smallest(OUTSIDE, PolicyKind::Relevance).await;
    let operators = manager.operator_memory();
    let mut wide = scan(&manager, &table, &[0, 1, 2]);
    assert!(operators.try_take(OUTSIDE));
    while !manager.is_memory_short() {
        assert!(wide.next().now_or_never().is_none());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // It is not polled any more, and nothing may overtake it soon.
    tokio::time::sleep(manager.options().memory_timeout / 2).await;
    let narrow = tokio::spawn(ids(scan(&manager, &table, &[0])));
    tokio::time::sleep(Duration::from_secs(1)).await;
    operators.give(NARROW);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!narrow.is_finished(), "all that is returned is kept for the other");
    assert!(are_rows(in_time(narrow).await.unwrap(), 0..ROWS));
    assert!(matches!(wide.next().await, Some(Err(ScanError::Exhausted { .. }))));
    operators.give(OUTSIDE - NARROW);
    drop(wide);
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_beyond_the_budget_does_not_wait() {
    let (manager, table) = smallest(20 << 10, PolicyKind::Relevance).await;
    let others = [(); 4].map(|()| ids(scan(&manager, &table, &[0])));
    let started = tokio::time::Instant::now();
    let error = ids(scan(&manager, &table, &[0, 1, 2])).await.unwrap_err();
    assert!(matches!(error, ScanError::Exhausted { .. }), "{error}");
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    for other in in_time(join_all(others)).await {
        assert!(are_rows(other, 0..ROWS));
    }
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn columns_kept_for_later_stay_when_operators_would_not_get_enough_for_them() {
    let (manager, table) = smallest(300 << 10, PolicyKind::Relevance).await;
    let _later = scan(&manager, &table, &[0]);
    assert!(are_rows(in_time(ids(scan(&manager, &table, &[0]))).await, 0..ROWS));
    let decoded_bytes = manager.report().decoded_bytes;
    assert!(decoded_bytes > 0, "kept for the later one");
    let operators = manager.operator_memory();
    assert!(!operators.try_take(manager.options().memory_bytes));
    assert_eq!(manager.report().decoded_bytes, decoded_bytes);
    // No more of them go than are needed.
    let report = manager.report();
    let free_bytes = report.memory_bytes - manager.options().pool_bytes_min - decoded_bytes;
    assert!(operators.try_take(free_bytes - 10_000));
    let before = manager.report().decoded_bytes;
    let mut taken = free_bytes - 10_000;
    while manager.report().decoded_bytes == before {
        assert!(operators.try_take(4096));
        taken += 4096;
    }
    assert!(manager.report().decoded_bytes >= before / 2, "{:?}", manager.report());
    operators.give(taken);
}

#[tokio::test(start_paused = true)]
async fn only_long_scans_wait_for_memory_to_share_what_they_decode() {
    let rows = 40 * CHUNK_ROWS;
    let fixture = Fixture::of_bytes(rows, file_bytes(rows, Compression::SNAPPY)).await;
    let table = fixture.table().await;
    // Enough for a chunk as stored and a batch of it, not for all of it decoded.
    let options = Options::with_pool_bytes(4 * largest_chunk_bytes(&table), 7_000);
    let manager = manager_with(Options { batch_rows: 100, ..options });
    let table = manager.register(table);
    let _other = scan_rows(&manager, &table, 0..rows);
    let time_to_first = async |rows| {
        let started = tokio::time::Instant::now();
        let mut stream = scan_rows(&manager, &table, rows);
        stream.next().await.unwrap().unwrap();
        started.elapsed()
    };
    assert_eq!(time_to_first(0..CHUNK_ROWS).await, Duration::ZERO);
    assert!(time_to_first(0..rows).await > Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_higher_ceiling_does_not_grow_the_pool_into_what_others_hold() {
    let options =
        Options { pool_bytes_min: 64 << 10, ..Options::with_pool_bytes(512 << 10, 512 << 10) };
    let manager = manager_with(options);
    let operators = manager.operator_memory();
    manager.set_pool_bytes(8 << 10).unwrap();
    let taken = (1 << 20) - (8 << 10);
    assert!(operators.try_take(taken));
    manager.set_pool_bytes(512 << 10).unwrap();
    let report = manager.report();
    assert!(report.pool_limit_bytes + report.operator_bytes <= report.memory_bytes, "{report:?}");
    operators.give(taken);
    assert_eq!(manager.report().pool_limit_bytes, 512 << 10);
}
