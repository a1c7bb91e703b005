//! The manager is not locked for all chunks of a scan or a file at once, however many there are.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{
    CHUNK_ROWS, Fixture, column_range, grouped_file_bytes, ids, in_time, manager_with,
    paged_file_bytes, sorted, until,
};
use coscan_runtime::core::ChunkIndex;
use coscan_runtime::core::log::{Command, Entry, Log};
use coscan_runtime::storage::table::ParquetTable;
use coscan_runtime::{BufferManager, Options, Scan, ScanRequest};
use coscan_testing::{Fate, Faults};
use futures::StreamExt;
use parquet::basic::Compression;

const ROWS: u64 = 4 * CHUNK_ROWS;

/// The number of rows of a page, such that each row is a chunk.
const PAGE_ROWS: usize = 10;

/// The number of chunks that core drops while it is locked once.
const STEP_CHUNKS: usize = 1024;

/// The numbers of chunks that core was told to drop at a time, while a scan of this table was ended like this.
async fn steps_of(table: Arc<ParquetTable>, give_up: impl AsyncFnOnce(&Arc<Scan>)) -> Vec<usize> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let written = tokio::fs::File::create(file.path()).await.unwrap();
    let options = Options::with_pool_bytes(16 << 20, 16 << 20);
    let (manager, recording) = BufferManager::recorded(options, written).unwrap();
    let table = manager.register(table);
    let scan = manager.start_scan(&table, ScanRequest::of_columns(&table, vec![0])).unwrap();
    assert!(scan.remaining().len() > 2 * STEP_CHUNKS);
    give_up(&scan).await;
    // A thread of the manager may still be working on it.
    until(|| scan.remaining().is_empty()).await;
    drop((scan, table));
    recording.finish().await.unwrap();
    let log: Log = std::fs::read_to_string(file.path()).unwrap().parse().unwrap();
    let pruned = log.entries.iter().filter_map(|entry| match entry {
        Entry::Command(Command::PruneScan { chunks, .. }) => Some(chunks.len()),
        _ => None,
    });
    pruned.collect()
}

/// The numbers of chunks at a time for a scan that has begun.
async fn steps(give_up: impl FnOnce(&Scan)) -> Vec<usize> {
    let fixture =
        Fixture::of_bytes(ROWS, paged_file_bytes(ROWS, Compression::SNAPPY, PAGE_ROWS)).await;
    let table = fixture.table_of_chunks(1, |store| store).await;
    steps_of(table, async |scan| {
        let mut worker = scan.worker(0);
        worker.next().await.unwrap().unwrap();
        give_up(scan);
        assert!(scan.remaining().is_empty());
    })
    .await
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
            assert_eq!(scan.prune(&chunks).len(), chunks.len());
        })
        .await,
    );
}

#[tokio::test]
async fn a_scan_is_cancelled_step_by_step() {
    assert_short(&steps(|scan| scan.cancel()).await);
}

#[tokio::test]
async fn a_scan_whose_worker_fails_gives_up_its_chunks_step_by_step() {
    let mut bytes = paged_file_bytes(ROWS, Compression::UNCOMPRESSED, PAGE_ROWS);
    let table = Fixture::of_bytes(ROWS, bytes.clone()).await.table().await;
    let range = column_range(&table, 0, 0);
    // The end of the page's header and the start of its values.
    let flipped = range.start + 10..range.start + 60;
    flipped.for_each(|position| bytes[position as usize] ^= 0xff);
    let fixture = Fixture::of_bytes(ROWS, bytes).await;
    let table = fixture.table_of_chunks(1, |store| store).await;
    assert_short(&steps_of(table, fails).await);
}

#[tokio::test]
async fn a_scan_that_cannot_be_read_for_gives_up_its_chunks_step_by_step() {
    let fixture =
        Fixture::of_bytes(ROWS, paged_file_bytes(ROWS, Compression::SNAPPY, PAGE_ROWS)).await;
    let faults = Faults::default();
    let table = fixture.table_of_chunks(1, |store| faults.around(store)).await;
    faults.all(Fate::Fail);
    assert_short(&steps_of(table, fails).await);
}

async fn fails(scan: &Arc<Scan>) {
    let mut worker = scan.worker(0);
    while in_time(worker.next()).await.unwrap().is_ok() {} // Chunks come in any order.
}

#[tokio::test]
async fn a_selection_of_pages_is_registered_step_by_step() {
    /// Row groups of a chunk: one of them is less than a quarter of it.
    const GROUPS_OF_CHUNK: u64 = 5;
    let chunks = STEP_CHUNKS as u64 + 100;
    let rows = chunks * GROUPS_OF_CHUNK;
    let bytes = grouped_file_bytes(rows, Compression::UNCOMPRESSED, 1, 1);
    let fixture = Fixture::of_bytes(rows, bytes).await;
    let table = fixture.table_of_chunks(GROUPS_OF_CHUNK, |store| store).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let written = tokio::fs::File::create(file.path()).await.unwrap();
    let options = Options { request_cost_bytes: 0, ..Options::with_pool_bytes(16 << 20, 16 << 20) };
    let (manager, recording) = BufferManager::recorded(options, written).unwrap();
    let table = manager.register(table);
    let wanted: Vec<_> = (0..chunks).map(|chunk| chunk * GROUPS_OF_CHUNK + 2).collect();
    let selected: Vec<_> = wanted.iter().map(|&row| row..row + 1).collect();
    let found = in_time(ids(manager.scan(&table, &[0], &selected).unwrap())).await;
    assert!(sorted(found.unwrap()).iter().map(|&id| id as u64).eq(wanted));
    drop(table);
    recording.finish().await.unwrap();
    let log: Log = std::fs::read_to_string(file.path()).unwrap().parse().unwrap();
    let counted = |chunks: &[Range<ChunkIndex>]| -> u32 {
        chunks.iter().map(|run| run.end.0 - run.start.0).sum()
    };
    let steps = log.entries.iter().filter_map(|entry| match entry {
        Entry::Command(Command::StartScan { spec, .. }) => {
            assert!(spec.pages.is_some());
            Some(counted(&spec.chunks) as usize)
        }
        Entry::Command(Command::ExtendScan { chunks, .. }) => Some(counted(chunks) as usize),
        _ => None,
    });
    let steps: Vec<_> = steps.collect();
    assert_short(&steps);
    assert_eq!(steps.iter().sum::<usize>() as u64, chunks);
}

/// The number of slices that core registers or removes while it is locked once.
const STEP_SLICES: usize = 4 << 10;

#[tokio::test]
async fn a_file_is_registered_and_removed_step_by_step() {
    let fixture =
        Fixture::of_bytes(ROWS, paged_file_bytes(ROWS, Compression::SNAPPY, PAGE_ROWS)).await;
    let table = fixture.table_of_chunks(1, |store| store).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let written = tokio::fs::File::create(file.path()).await.unwrap();
    let options = Options::with_pool_bytes(16 << 20, 16 << 20);
    let (manager, recording) = BufferManager::recorded(options, written).unwrap();
    let chunks = table.layout().chunk_count();
    let groups = table.group_count();
    assert!(chunks * groups > 2 * STEP_SLICES);
    // Two at the same time: the chunks are added once.
    let registering = [0, 1].map(|_| {
        let (manager, table) = (manager.clone(), Arc::clone(&table));
        std::thread::spawn(move || manager.register(table))
    });
    let tables = registering.map(|registering| registering.join().unwrap());
    let scan = |table| manager.start_scan(table, ScanRequest::of_columns(table, vec![0])).unwrap();
    assert_eq!(tables.each_ref().map(|table| scan(table).remaining().len()), [chunks; 2]);
    drop(tables);
    until(|| {
        manager.evict_unneeded(); // Fills the writer's buffer.
        std::fs::read_to_string(file.path()).unwrap().contains("\"remove_table\"")
    })
    .await;
    recording.finish().await.unwrap();
    let log: Log = std::fs::read_to_string(file.path()).unwrap().parse().unwrap();
    let (mut added, mut retired, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    for entry in &log.entries {
        match entry {
            Entry::Command(Command::AppendChunks { chunks, .. }) => added.push(chunks.len()),
            Entry::Command(Command::RetireChunks { chunks, .. }) => retired.push(chunks.len()),
            Entry::Command(Command::RemovePages { pages, .. }) => {
                removed.push((pages.end.0 - pages.start.0) as usize);
            }
            _ => {}
        }
    }
    for counts in [added, retired] {
        assert_eq!(counts.iter().sum::<usize>(), chunks, "{counts:?}");
        assert!(counts.iter().all(|&count| count * groups <= STEP_SLICES), "{counts:?}");
    }
    assert!(removed.len() > 1 && removed.iter().all(|&count| count <= STEP_SLICES), "{removed:?}");
}

/// A manager whose runtime is gone makes all steps in the thread that drops the last holder.
#[test]
fn large_tables_go_although_the_runtime_of_the_manager_is_gone() {
    let (done, all_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (manager, table, joint) = runtime.block_on(async {
            let bytes = paged_file_bytes(ROWS, Compression::SNAPPY, PAGE_ROWS);
            let table =
                Fixture::of_bytes(ROWS, bytes).await.table_of_chunks(1, |store| store).await;
            assert!(table.layout().chunk_count() * table.group_count() > 2 * STEP_SLICES);
            let manager = manager_with(Options::with_pool_bytes(16 << 20, 16 << 20));
            let table = manager.register(table);
            let chunks: Vec<_> = (0..ROWS).map(|row| vec![row..row + 1]).collect();
            let joint = manager.register_joint(std::slice::from_ref(&table), chunks).unwrap();
            (manager, table, joint)
        });
        drop(runtime);
        drop(joint);
        drop(table);
        done.send(manager.report().metadata_bytes).unwrap();
    });
    assert_eq!(all_done.recv_timeout(Duration::from_secs(60)), Ok(0));
}
