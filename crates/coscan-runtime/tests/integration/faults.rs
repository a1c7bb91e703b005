//! Faults of a file or a store reach the scans that need it, with a clear text, and no others.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{
    CHUNK_ROWS, Fixture, LARGE, are_rows, assert_free, column_range, file_bytes, ids, in_time,
    largest_chunk_bytes, manager, manager_with,
};
use coscan_runtime::core::PolicyKind;
use coscan_runtime::core::SplitMix64;
use coscan_runtime::{BufferManager, Options, ScanError, ScanStream, SharedTable};
use coscan_testing::Fate;
use futures::StreamExt;
use futures::future::join_all;
use parquet::basic::{Compression, ZstdLevel};

const ROWS: u64 = 12 * CHUNK_ROWS;

/// A sound table beside the one that a test breaks.
async fn sound(manager: &BufferManager) -> SharedTable {
    manager.register(Fixture::new(ROWS).await.table().await)
}

fn scan(manager: &BufferManager, table: &SharedTable, columns: &[usize]) -> ScanStream {
    manager.scan(table, columns, &[0..ROWS]).unwrap()
}

fn assert_says(error: &ScanError, words: &[&str]) {
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_file_replaced_during_a_scan_is_told_and_never_read() {
    for policy in PolicyKind::ALL {
        let fixture = Fixture::new(ROWS).await;
        let table = fixture.table().await;
        let manager = manager(policy, largest_chunk_bytes(&table));
        let (broken, sound) = (manager.register(table), sound(&manager).await);
        let mut stream = scan(&manager, &broken, &[0, 1, 2]);
        in_time(stream.next()).await.unwrap().unwrap();
        let other = tokio::spawn(ids(scan(&manager, &sound, &[0, 2])));
        // The file is replaced by half of it, then by one of the same size.
        let bytes = file_bytes(ROWS, Compression::UNCOMPRESSED);
        for bytes in [bytes[..bytes.len() / 2].to_vec(), bytes] {
            fixture.replace_file(bytes).await;
            let late = scan(&manager, &broken, &[0]);
            let (error, late_error) = in_time(futures::future::join(
                async { stream.next().await.map(Result::unwrap_err) },
                ids(late),
            ))
            .await;
            let advice = ["table.parquet", "changed since", "open the table again"];
            assert_says(&late_error.unwrap_err(), &advice);
            error.iter().for_each(|error| assert_says(error, &advice));
        }
        assert!(are_rows(in_time(other).await.unwrap(), 0..ROWS), "{policy}");
        assert!(stream.next().await.is_none(), "a stream ends after an error");
        drop(stream);
        assert_free(&manager).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_body_is_read_again_and_told_if_it_stays_short() {
    let (faults, table) = Fixture::new(ROWS).await.table_with_faults().await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let (broken, sound) = (manager.register(table), sound(&manager).await);
    let reads = AtomicUsize::new(0);
    faults.judge(move |_| match reads.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Fate::Short,
        _ => Fate::Answer,
    });
    assert!(are_rows(in_time(ids(scan(&manager, &broken, &[0]))).await, 0..ROWS));
    faults.all(Fate::Short);
    let (failed, other) = in_time(futures::future::join(
        ids(scan(&manager, &broken, &[1])),
        ids(scan(&manager, &sound, &[0])),
    ))
    .await;
    assert_says(&failed.unwrap_err(), &["table.parquet", "ended early", "copy the file again"]);
    assert!(are_rows(other, 0..ROWS));
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn flipped_bytes_fail_the_scans_that_read_them() {
    let zstd = Compression::ZSTD(ZstdLevel::default());
    for compression in [Compression::SNAPPY, zstd, Compression::UNCOMPRESSED] {
        let mut bytes = file_bytes(ROWS, compression);
        let table = Fixture::of_bytes(ROWS, bytes.clone()).await.table().await;
        let range = column_range(&table, 5, 1);
        // The end of the page's header and the start of its values: damage further on may decode to
        // other values.
        let flipped = range.start + 10..range.start + 60;
        flipped.for_each(|position| bytes[position as usize] ^= 0xff);

        let manager = manager(PolicyKind::Relevance, LARGE);
        let table = manager.register(Fixture::of_bytes(ROWS, bytes).await.table().await);
        let part = manager.scan(&table, &[0, 1], &[0..5 * CHUNK_ROWS]).unwrap();
        let scans =
            [&[1][..], &[0, 1], &[0], &[0, 2]].map(|columns| scan(&manager, &table, columns));
        let mut results =
            in_time(join_all(scans.into_iter().chain([part]).map(ids))).await.into_iter();
        for _ in 0..2 {
            let error = results.next().unwrap().map(|ids| ids.len()).unwrap_err();
            assert_says(&error, &["`twice`", "table.parquet", "damaged", "write or copy"]);
        }
        assert!(are_rows(results.next().unwrap(), 0..ROWS), "{compression:?}");
        assert!(are_rows(results.next().unwrap(), 0..ROWS));
        assert!(are_rows(results.next().unwrap(), 0..5 * CHUNK_ROWS), "rows before the damage");
        assert_free(&manager).await;
    }
}

/// Runs many scans of a table of whose reads one in ten has this fate: all get right rows.
async fn scans_get_over(fate: Fate) {
    let suffered = Arc::new(AtomicUsize::new(0));
    for policy in PolicyKind::ALL {
        let (faults, table) = Fixture::new(ROWS).await.table_with_faults().await;
        let (random, count) = (Mutex::new(SplitMix64(2)), Arc::clone(&suffered));
        faults.judge(move |_| match random.lock().unwrap().below(10) {
            0 => {
                count.fetch_add(1, Ordering::Relaxed);
                fate
            }
            _ => Fate::Answer,
        });
        let pool_bytes = 2 * largest_chunk_bytes(&table);
        let options = Options {
            read_timeout: Duration::from_secs(5),
            ..Options::with_pool_bytes(pool_bytes, 1 << 20).policy(policy)
        };
        let manager = manager_with(options);
        let table = manager.register(table);
        let columns: [&[usize]; 4] = [&[0, 1, 2], &[0], &[0, 2], &[1]];
        let scans = columns.map(|columns| ids(scan(&manager, &table, columns)));
        let results = in_time(join_all(scans)).await;
        for (result, columns) in results.into_iter().zip(columns) {
            let factor = if columns == [1] { 2 } else { 1 };
            let ids = result.unwrap().into_iter().map(|id| id / factor).collect();
            assert!(are_rows(Ok(ids), 0..ROWS), "{policy}");
        }
        assert_free(&manager).await;
    }
    assert!(suffered.load(Ordering::Relaxed) >= 4);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_one_request_in_ten_is_asked_again() {
    scans_get_over(Fate::Fail).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stalls_one_request_in_ten_is_asked_again() {
    let started = tokio::time::Instant::now();
    scans_get_over(Fate::Hang).await;
    assert!(started.elapsed() < Duration::from_secs(600), "nobody waits for long");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_ever_ends_its_scans_only() {
    let (faults, table) = Fixture::new(ROWS).await.table_with_faults().await;
    let manager = manager(PolicyKind::Relevance, largest_chunk_bytes(&table));
    let (broken, sound) = (manager.register(table), sound(&manager).await);
    let mut stream = scan(&manager, &broken, &[0, 1]);
    in_time(stream.next()).await.unwrap().unwrap();
    faults.all(Fate::Fail);
    let other = tokio::spawn(ids(scan(&manager, &sound, &[0, 1, 2])));
    let second = scan(&manager, &broken, &[2, 0]);
    let mut results = Vec::new();
    for stream in [&mut stream, &mut { second }] {
        while let Some(batch) = in_time(stream.next()).await {
            results.extend(batch.err());
        }
    }
    assert_eq!(results.len(), 2, "one error each, then the end");
    for error in &results {
        assert_says(error, &["cannot read", "table.parquet", "fails on purpose"]);
    }
    assert!(are_rows(in_time(other).await.unwrap(), 0..ROWS));
    drop(stream);
    // The store recovers, and so do scans.
    faults.all(Fate::Answer);
    assert!(are_rows(in_time(ids(scan(&manager, &broken, &[0]))).await, 0..ROWS));
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_is_told_from_one_that_fails() {
    let (faults, table) = Fixture::new(ROWS).await.table_with_faults().await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let (broken, sound) = (manager.register(table), sound(&manager).await);
    faults.all(Fate::Panic);
    let scans = [scan(&manager, &broken, &[0]), scan(&manager, &sound, &[0])];
    let mut results = in_time(join_all(scans.map(ids))).await;
    assert!(are_rows(results.pop().unwrap(), 0..ROWS));
    assert_says(&results.pop().unwrap().unwrap_err(), &["store panicked", "please report it"]);
    assert_free(&manager).await;
}

/// Checks scans when reads of column 1 and of the last chunk's column 0 have this fate: those that need neither
/// succeed, and those that do fail.
async fn only_those_fail_that_need_what_has(fate: Fate, words: &[&str]) {
    for policy in PolicyKind::ALL {
        let (faults, table) = Fixture::new(ROWS).await.table_with_faults().await;
        let mut bad: Vec<_> = (0..12).map(|row_group| column_range(&table, row_group, 1)).collect();
        bad.push(column_range(&table, 11, 0));
        let touches = move |range: &std::ops::Range<u64>| {
            bad.iter().any(|bad| range.start < bad.end && bad.start < range.end)
        };
        // The pages of a chunk lie side by side: reads that join them touch the bad ones.
        faults.judge(move |range| if touches(range) { fate } else { Fate::Answer });
        let manager = manager(policy, 2 * largest_chunk_bytes(&table));
        let table = manager.register(table);
        let good = 0..11 * CHUNK_ROWS;
        let good_scans = [&[0][..], &[0, 2], &[0]]
            .map(|columns| manager.scan(&table, columns, std::slice::from_ref(&good)).unwrap());
        let bad_scans = [&[0, 1][..], &[1], &[0]].map(|columns| scan(&manager, &table, columns));
        let (good_results, bad_results) = in_time(futures::future::join(
            join_all(good_scans.map(ids)),
            join_all(bad_scans.map(ids)),
        ))
        .await;
        for result in good_results {
            assert!(are_rows(result, good.clone()), "{policy}");
        }
        bad_results
            .into_iter()
            .for_each(|result| assert_says(&result.map(|ids| ids.len()).unwrap_err(), words));
        assert_free(&manager).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_load_fails_only_scans_that_need_its_pages() {
    only_those_fail_that_need_what_has(Fate::Fail, &["table.parquet", "fails on purpose"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_stalled_load_fails_only_scans_that_need_its_pages() {
    let words = ["did not answer within 30s", "see that it is up", "more time"];
    only_those_fail_that_need_what_has(Fate::Hang, &words).await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_smaller_than_a_chunk_is_refused_for_wide_scans_only() {
    let table = Fixture::new(ROWS).await.table().await;
    let chunk_bytes = largest_chunk_bytes(&table);
    let manager = manager(PolicyKind::Relevance, chunk_bytes - 1);
    let table = manager.register(table);
    let narrow = scan(&manager, &table, &[0]);
    let error = manager.scan(&table, &[0, 1, 2], &[0..ROWS]).unwrap_err();
    let sizes = [format!("holds {} bytes", chunk_bytes - 1), format!("takes {chunk_bytes}")];
    assert_says(&error, &[&sizes[0], &sizes[1], "give the pool at least that much"]);
    assert!(are_rows(in_time(ids(narrow)).await, 0..ROWS));
    assert_free(&manager).await;
}
