//! Samples for the page from a recorded run.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use coscan_runtime::core::log::{Entry, Header, Log, RecordedManager};
use coscan_runtime::core::{
    Action, ActiveBufferManager, ChunkIndex, Config, DeviceId, GroupIndex, Layout, Order,
    PolicyKind, ScanId, ScanSpec, Time, WorkerIndex,
};
use coscan_server::http::samples_of;

const CHUNKS: u32 = 20;
const PAGE_BYTES: u64 = 100;
const WORKER: WorkerIndex = WorkerIndex(0);

/// Two scans of a table on a disk that needs 50 ms for a page.
fn recorded() -> Log {
    let mut layout = Layout::builder(1);
    for _ in 0..CHUNKS {
        let page = layout.add_page(GroupIndex(0), PAGE_BYTES);
        layout.add_chunk(10, vec![vec![page]]);
    }
    let config = Config { pool_bytes: 5 * PAGE_BYTES, ..Config::default() };
    let kind = PolicyKind::Relevance;
    let mut manager = RecordedManager::recording(ActiveBufferManager::new(config, kind.build()));
    let (table, _) = manager.register_layout(std::sync::Arc::new(layout.build()), DeviceId(0));
    let spec = ScanSpec {
        table,
        groups: vec![GroupIndex(0)],
        chunks: vec![ChunkIndex(0)..ChunkIndex(CHUNKS)],
        order: Order::Any,
        workers: 1,
        weight: 1,
        pages: None,
        computation: None,
    };
    let mut now = Time(0);
    let scans: Vec<ScanId> =
        (0..2).map(|_| manager.start_scan(now, spec.clone()).unwrap()).collect();
    for &scan in &scans {
        manager.request_chunk(now, scan, WORKER).unwrap();
    }
    let mut running = scans.len();
    while running > 0 {
        while let Some(action) = manager.poll_action() {
            match action {
                Action::Load { load, pages, .. } => pages.into_iter().for_each(|page| {
                    now = Time(now.0 + 50_000_000);
                    manager.page_loaded(now, load, page);
                }),
                Action::Deliver { scan, .. } => manager.request_chunk(now, scan, WORKER).unwrap(),
                Action::Finish { scan, .. } => {
                    manager.cancel_scan(now, scan);
                    running -= 1;
                }
                _ => {}
            }
        }
    }
    while manager.poll_action().is_some() {}
    let entries: Vec<Entry> = manager.take_entries();
    Log { header: Header::new(kind.name(), config, 1), entries }
}

#[test]
fn a_log_gives_samples_of_the_whole_run() {
    let samples = samples_of(&recorded()).unwrap();
    let (first, last) = (&samples[0], &samples[samples.len() - 1]);
    assert!(first.tables.is_some() && first.maps[0].whole);
    assert!(samples.is_sorted_by(|a, b| a.seconds < b.seconds), "in order of time");
    assert_eq!(first.policy, "relevance");
    let chunks: usize = samples.iter().map(|sample| sample.loads.len()).sum();
    assert_eq!(chunks as u64, last.totals.loads, "each read once: {last:?}");
    assert_eq!(last.totals.chunks, u64::from(2 * CHUNKS));
    assert_eq!(
        last.totals.bytes_read + last.totals.bytes_saved,
        u64::from(2 * CHUNKS) * PAGE_BYTES,
        "what both used was read or shared"
    );
    assert!(last.totals.bytes_saved > 0);
    assert!(samples.iter().all(|sample| sample.memory.pool <= sample.memory.pool_limit));
    let mut log = recorded();
    log.entries.truncate(log.entries.len() / 2);
    log.entries.remove(3);
    assert!(samples_of(&log).is_err(), "a log with a hole is refused");
}
