//! Recorded runs: the log of a real run replays in core, and a log that cannot be written harms no scan.

use std::io::{Error, Result};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::common::{CHUNK_ROWS, Fixture, are_rows, column_range, ids, largest_chunk_bytes};
use coscan_runtime::core::PolicyKind;
use coscan_runtime::core::log::{Command, Entry, Log};
use coscan_runtime::{BufferManager, Options};
use coscan_testing::{Fate, Faults};
use tokio::io::AsyncWrite;

/// Runs scans that share, narrow, fail and are cancelled, with a pool of three chunks. Returns their log.
async fn recorded(policy: PolicyKind) -> Log {
    let fixture = Fixture::new(12 * CHUNK_ROWS).await;
    let plain = fixture.table().await;
    let broken = column_range(&plain, 7, 2);
    let pool_bytes = 3 * largest_chunk_bytes(&plain);
    let options = Options::with_pool_bytes(pool_bytes, 4 << 20).policy(policy);
    let options = Options { read_attempts: 2, ..options };
    let file = tempfile::NamedTempFile::new().unwrap();
    let written = tokio::fs::File::create(file.path()).await.unwrap();
    let (manager, recording) = BufferManager::recorded(options, written).unwrap();
    let judge = move |range: &std::ops::Range<u64>| {
        if range.contains(&broken.start) { Fate::Fail } else { Fate::Answer }
    };
    let table = fixture.table_behind(|store| Faults::new(judge).around(store)).await;
    let table = manager.register(table);
    let scan = |columns: &[usize], rows| manager.scan(&table, columns, &[rows]).unwrap();
    // All have begun before any continues. Otherwise one could end before another comes that shares
    // with it.
    let shared: Vec<_> = (0..3).map(|_| scan(&[0, 1], fixture.all_rows())).collect();
    let failing = scan(&[0, 2], fixture.all_rows());
    let shared: Vec<_> = shared.into_iter().map(|scan| tokio::spawn(ids(scan))).collect();
    let failing = tokio::spawn(ids(failing));
    drop(scan(&[1], 0..3_000));
    for scan in shared {
        assert!(are_rows(scan.await.unwrap(), fixture.all_rows()));
    }
    assert!(failing.await.unwrap().is_err());
    manager.evict_unneeded();
    drop(table);
    let entries = recording.finish().await.unwrap();
    let afterwards = manager.register(plain);
    let afterwards = manager.scan(&afterwards, &[0], &[fixture.all_rows()]).unwrap();
    assert!(are_rows(ids(afterwards).await, fixture.all_rows()));
    let log: Log = std::fs::read_to_string(file.path()).unwrap().parse().unwrap();
    assert_eq!(log.entries.len() as u64, entries);
    log
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_run_replays_with_the_same_decisions() {
    for policy in PolicyKind::ALL {
        let log = recorded(policy).await;
        assert_eq!(log.header.policy, policy.name());
        let replayed = log.replay().unwrap_or_else(|error| panic!("{policy}: {error}"));
        assert_eq!(replayed.commands + replayed.decisions, log.entries.len());
        let count = |is: fn(&Command) -> bool| {
            let commands = log.entries.iter().filter_map(|entry| match entry {
                Entry::Command(command) => Some(command),
                _ => None,
            });
            commands.filter(|command| is(command)).count()
        };
        assert_eq!(count(|command| matches!(command, Command::StartScan { .. })), 5);
        assert_eq!(count(|command| matches!(command, Command::CancelScan { .. })), 5);
        assert!(count(|command| matches!(command, Command::PageFailed { .. })) > 0);
        assert!(count(|command| matches!(command, Command::SliceDecoded { .. })) > 0);
    }
}

/// A file on a full disk.
struct Full;

impl AsyncWrite for Full {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<Result<usize>> {
        Poll::Ready(Err(Error::other("the disk is full")))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn scans_go_on_when_the_log_cannot_be_written() {
    let fixture = Fixture::new(200 * CHUNK_ROWS).await;
    let options = Options::with_pool_bytes(1 << 20, 1 << 20);
    let (manager, recording) = BufferManager::recorded(options, Full).unwrap();
    let table = manager.register(fixture.table().await);
    for _ in 0..4 {
        let scan = manager.scan(&table, &[0], &[fixture.all_rows()]).unwrap();
        assert!(are_rows(ids(scan).await, fixture.all_rows()));
    }
    assert_eq!(recording.finish().await.unwrap_err().to_string(), "the disk is full");
}
