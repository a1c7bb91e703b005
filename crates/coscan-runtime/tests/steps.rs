//! However many chunks a scan gives up, the manager is not locked for all of them at once.
#![allow(clippy::unwrap_used)]

mod common;

use common::{CHUNK_ROWS, Fixture};
use coscan_runtime::core::ChunkIndex;
use coscan_runtime::core::log::{Command, Entry, Log};
use coscan_runtime::{BufferManager, Options, Scan, ScanRequest};
use futures::StreamExt;

/// Chunks that core gives up while it is locked once.
const STEP_CHUNKS: usize = 1024;

/// How many chunks core was told to give up at a time, while a scan that has begun was given up like this.
async fn steps(give_up: impl FnOnce(&Scan)) -> Vec<usize> {
    let fixture = Fixture::new(4 * CHUNK_ROWS).await;
    let table = fixture.table_of_chunks(1, |store| store);
    let file = tempfile::NamedTempFile::new().unwrap();
    let written = tokio::fs::File::create(file.path()).await.unwrap();
    let options = Options::with_pool_bytes(16 << 20, 16 << 20);
    let (manager, recording) = BufferManager::recorded(options, written).unwrap();
    let table = manager.register(table.await);
    let request = ScanRequest::of_columns(&table, vec![0]);
    let scan = manager.start_scan(&table, request).unwrap();
    let mut worker = scan.worker(0);
    worker.next().await.unwrap().unwrap();
    let left = scan.remaining().len();
    assert!(left > STEP_CHUNKS, "{left}");
    give_up(&scan);
    assert!(scan.remaining().is_empty());
    drop((worker, scan, table));
    recording.finish().await.unwrap();
    let log: Log = std::fs::read_to_string(file.path()).unwrap().parse().unwrap();
    let pruned = log.entries.iter().filter_map(|entry| match entry {
        Entry::Command(Command::PruneScan { chunks, .. }) => Some(chunks.len()),
        _ => None,
    });
    pruned.collect()
}

fn assert_short(steps: &[usize]) {
    assert!(steps.len() > 1 && steps.iter().all(|&step| step <= STEP_CHUNKS), "{steps:?}");
}

#[tokio::test]
async fn a_scan_is_closed_step_by_step() {
    assert_short(&steps(|scan| drop(scan.close())).await);
}

#[tokio::test]
async fn chunks_are_pruned_step_by_step() {
    assert_short(
        &steps(|scan| {
            let chunks: Vec<ChunkIndex> = scan.remaining();
            assert_eq!(scan.prune(&chunks), chunks.len());
        })
        .await,
    );
}

#[tokio::test]
async fn a_scan_is_cancelled_step_by_step() {
    assert_short(&steps(|scan| scan.cancel()).await);
}
