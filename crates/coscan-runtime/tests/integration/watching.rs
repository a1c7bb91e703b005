//! The views of a manager: its scans and their waits, the pool, and events.

use std::ops::Range;
use std::time::Duration;

use crate::common::{CHUNK_ROWS, Fixture, LARGE, are_rows, ids, manager};
use coscan_runtime::core::{ChunkIndex, GroupIndex, MapCell, PolicyKind};
use coscan_runtime::{
    BufferManager, EventKind, Events, ScanBytes, ScanLabel, ScanRequest, ScanWait, SharedTable,
};
use coscan_testing::{Fate, Faults};
use futures::StreamExt;

fn labelled(table: &SharedTable, column: usize) -> ScanRequest {
    let label = ScanLabel { query: Some("q7".into()), table: Some("numbers".into()) };
    ScanRequest { label, ..ScanRequest::of_columns(table, vec![column]) }
}

fn waits(manager: &BufferManager) -> Vec<(ScanWait, String)> {
    manager.scans().iter().map(|scan| (scan.waits_for, scan.why())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_scan_is_shown_with_its_query_its_progress_and_its_wait() {
    let fixture = Fixture::new(4 * CHUNK_ROWS).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let first_hangs =
        |range: &Range<u64>| if range.start < 100 { Fate::Hang } else { Fate::Answer };
    let hanging = fixture.table_behind(|store| Faults::new(first_hangs).around(store)).await;
    let hanging = manager.register(hanging);
    let table = manager.register(fixture.table().await);

    let scan = manager.start_scan(&table, labelled(&table, 1)).unwrap();
    let mut stream = scan.worker(0);
    let reports = manager.scans();
    assert_eq!(reports.len(), 1);
    let report = &reports[0];
    assert_eq!((report.query.as_deref(), &*report.table_name), (Some("q7"), "numbers"));
    assert_eq!((&report.columns[..], report.chunks_left), (&["twice".to_owned()][..], 4));
    tokio::time::sleep(Duration::from_secs(3)).await;
    let report = manager.scans().swap_remove(0);
    assert_eq!((report.waits_for, report.waiting.as_secs()), (ScanWait::Consumer, 3));
    assert_eq!(report.age.as_secs(), 3);

    stream.next().await.unwrap().unwrap();
    let report = manager.scans().swap_remove(0);
    assert_eq!((report.waits_for, report.chunks_left), (ScanWait::Nothing, 3));
    assert_eq!(report.metrics.chunks.chunks_delivered, 1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(manager.scans()[0].waits_for, ScanWait::Consumer, "nobody polls it");
    drop((stream, scan));
    assert!(manager.scans().is_empty());

    let two = [(); 2]
        .map(|()| tokio::spawn(ids(manager.scan(&hanging, &[0], &[fixture.all_rows()]).unwrap())));
    tokio::time::sleep(Duration::from_secs(1)).await;
    for (wait, why) in waits(&manager) {
        assert!(wait == ScanWait::Load { chunk: ChunkIndex(0), scans: 2 }, "{why}");
        assert!(why == "waits for chunk 0, which is being read for 2 scans", "{why}");
    }
    assert_eq!(manager.scans()[0].waiting.as_secs(), 1);
    two.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn bytes_in_the_pool_and_those_that_running_scans_need_are_shared() {
    let fixture = Fixture::new(4 * CHUNK_ROWS).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let table = manager.register(fixture.table().await);
    let rows = [fixture.all_rows()];
    let bytes = |columns: &[usize]| manager.scan_bytes(&table, columns, &rows);
    let (first, second) = (bytes(&[0]).unshared, bytes(&[1]).unshared);
    let none_shared = ScanBytes { unshared: first + second, shared: 0 };
    assert!(first > 0 && second > 0);
    assert_eq!(bytes(&[1, 0, 1]), none_shared);
    let half = manager.scan_bytes(&table, &[0], std::slice::from_ref(&(0..2 * CHUNK_ROWS)));
    assert!(half.unshared < first && half.unshared > first / 4, "{half:?} of {first}");

    let scan = manager.start_scan(&table, labelled(&table, 1)).unwrap();
    let one_shared = ScanBytes { unshared: first, shared: second };
    assert_eq!(bytes(&[0, 1]), one_shared, "it will be read");
    let mut stream = scan.worker(0);
    while let Some(batch) = stream.next().await {
        batch.unwrap();
    }
    drop((stream, scan));
    assert_eq!(bytes(&[0, 1]), one_shared, "it is in the pool");
    manager.evict_unneeded();
    assert_eq!(bytes(&[0, 1]), none_shared);
}

#[tokio::test(start_paused = true)]
async fn the_pool_is_shown_by_columns_and_bins_of_chunks() {
    let fixture = Fixture::new(10 * CHUNK_ROWS).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let table = manager.register(fixture.table().await);
    assert!(are_rows(
        ids(manager.scan(&table, &[0], &[fixture.all_rows()]).unwrap()).await,
        fixture.all_rows()
    ));
    let scan = manager.start_scan(&table, labelled(&table, 2)).unwrap();
    let shown = manager.tables();
    assert_eq!((shown.len(), shown[0].id, &*shown[0].name), (1, table.id(), "numbers"));
    assert_eq!(&shown[0].groups[..], ["id", "twice", "text"]);
    assert_eq!((shown[0].chunks, shown[0].rows, shown[0].scans), (10, fixture.rows, 1));
    let map = manager.pool_map(table.id(), 5).unwrap();
    assert_eq!((map.groups, map.bins), (3, 5));
    for bin in 0..5 {
        let [id, twice, text] = [0, 1, 2].map(|group| *map.cell(GroupIndex(group), bin));
        assert_eq!((id.stored, id.cold, id.scans), (2, 0, 0));
        assert_eq!(twice, MapCell { cold: 2, ..MapCell::default() });
        assert_eq!((text.pages(), text.scans), (2, 1));
    }
    assert!(map.shared_bytes[0] > 0 && map.shared_bytes[1..] == [0; 4]);
    drop((scan, table));
    assert!(manager.tables().is_empty());
}

fn all(events: &mut Events) -> Vec<EventKind> {
    std::iter::from_fn(|| events.try_next()).map(|event| event.kind).collect()
}

#[tokio::test(start_paused = true)]
async fn watchers_see_every_step_of_a_scan() {
    let fixture = Fixture::new(6 * CHUNK_ROWS).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let table = manager.register(fixture.table().await);
    let mut events = manager.subscribe(1000);
    let scan = manager.scan(&table, &[0], &[fixture.all_rows()]).unwrap();
    assert!(are_rows(ids(scan).await, fixture.all_rows()));
    manager.evict_unneeded();
    let events_seen = all(&mut events);
    let count = |is: fn(&EventKind) -> bool| events_seen.iter().filter(|kind| is(kind)).count();
    assert!(matches!(events_seen[0], EventKind::ScanStarted { .. }));
    assert_eq!(count(|kind| matches!(kind, EventKind::LoadStarted { scans: 1, .. })), 6);
    assert_eq!(count(|kind| matches!(kind, EventKind::LoadEnded { pages_failed: 0, .. })), 6);
    assert_eq!(count(|kind| matches!(kind, EventKind::ChunkDelivered { .. })), 6);
    assert_eq!(count(|kind| matches!(kind, EventKind::ScanEnded { .. })), 1);
    assert_eq!(count(|kind| matches!(kind, EventKind::PageEvicted { place: Some(_), .. })), 6);
    assert_eq!(events.take_lost(), 0);
    let chunks = events_seen.iter().filter_map(|kind| match kind {
        EventKind::ChunkDelivered { chunk, .. } => Some(*chunk),
        _ => None,
    });
    let mut chunks: Vec<_> = chunks.collect();
    chunks.sort_unstable();
    assert_eq!(chunks, (0..6).map(ChunkIndex).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_slow_watcher_loses_events_and_holds_up_nobody() {
    let fixture = Fixture::new(20 * CHUNK_ROWS).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let table = manager.register(fixture.table().await);
    let (mut slow, mut fast) = (manager.subscribe(3), manager.subscribe(10_000));
    drop(manager.subscribe(1));
    let scan = manager.scan(&table, &[0], &[fixture.all_rows()]).unwrap();
    assert!(are_rows(ids(scan).await, fixture.all_rows()));
    let seen = all(&mut fast).len() as u64;
    assert_eq!(all(&mut slow).len(), 3);
    assert_eq!((slow.take_lost(), fast.take_lost()), (seen - 3, 0));
    assert_eq!(slow.take_lost(), 0, "told once");
}

#[tokio::test(start_paused = true)]
async fn what_is_read_once_for_two_scans_counts_as_saved() {
    let fixture = Fixture::new(8 * CHUNK_ROWS).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let table = manager.register(fixture.table().await);
    let scan = || ids(manager.scan(&table, &[1], &[fixture.all_rows()]).unwrap());
    let (one, other) = tokio::join!(scan(), scan());
    assert_eq!((one.unwrap().len(), other.unwrap().len()), (8000, 8000));
    let report = manager.report();
    assert!(report.bytes_read > 0);
    assert_eq!(report.bytes_saved(), report.bytes_read, "each byte was used twice: {report:?}");
    assert_eq!((report.chunks_delivered, report.loads_started), (16, 8));
    assert!(report.decisions >= 24, "{report:?}");
}
