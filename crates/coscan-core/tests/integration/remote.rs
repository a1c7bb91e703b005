//! Scans for other servers, and pages that other servers have.

#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::sync::Arc;

use crate::world::{spec, table};
use coscan_core::*;

const CHUNK_BYTES: u64 = 100;
const WORKER: WorkerIndex = WorkerIndex(0);
const NOW: Time = Time(0);

/// A manager with a table of chunks of one page each; page and chunk have the same number.
fn manager(pool_chunks: u64, config: Config) -> (ActiveBufferManager, TableId) {
    let config = Config { pool_bytes: pool_chunks * CHUNK_BYTES, ..config };
    let mut manager = ActiveBufferManager::new(config, PolicyKind::Relevance.build());
    let (table, _) = manager.register_layout(&table(10, &[CHUNK_BYTES]), DeviceId(0));
    (manager, table)
}

/// Starts a scan whose worker asks for its first chunk.
fn start(manager: &mut ActiveBufferManager, spec: &ScanSpec) -> ScanId {
    let scan = manager.start_scan(NOW, spec).unwrap();
    manager.request_chunk(NOW, scan, WORKER).unwrap();
    scan
}

fn start_remote(manager: &mut ActiveBufferManager, spec: &ScanSpec) -> ScanId {
    let scan = manager.start_remote_scan(NOW, spec, RemoteQuery::default()).unwrap();
    manager.request_chunk(NOW, scan, WORKER).unwrap();
    scan
}

fn interest(manager: &mut ActiveBufferManager, table: TableId, chunk: u32) -> ScanId {
    let chunks = [ChunkIndex(chunk)..ChunkIndex(chunk + 1)];
    manager.register_interest(NOW, table, &[GroupIndex(0)], &chunks).unwrap()
}

fn set_source(manager: &mut ActiveBufferManager, chunk: u32, source: Source) {
    manager.set_source(NOW, PageId(chunk)..PageId(chunk + 1), source);
}

fn actions(manager: &mut ActiveBufferManager) -> Vec<Action> {
    std::iter::from_fn(|| manager.poll_action()).collect()
}

/// The chunks that loads were started for, with the scan.
fn loads(actions: &[Action]) -> Vec<(ScanId, u32)> {
    let load = |action: &Action| match action {
        Action::Load { scan, chunk, .. } => Some((*scan, chunk.0)),
        _ => None,
    };
    actions.iter().filter_map(load).collect()
}

fn deliveries(actions: &[Action]) -> Vec<(ScanId, u32)> {
    let delivery = |action: &Action| match action {
        Action::Deliver { scan, chunk, .. } => Some((*scan, chunk.0)),
        _ => None,
    };
    actions.iter().filter_map(delivery).collect()
}

/// Reads what is asked for, and has workers ask again at once, until nothing happens. Returns all actions.
fn drive(manager: &mut ActiveBufferManager) -> Vec<Action> {
    let mut all = Vec::new();
    while let Some(action) = manager.poll_action() {
        match &action {
            Action::Load { load, pages, .. } => {
                pages.iter().for_each(|&page| manager.page_loaded(NOW, *load, page));
            }
            Action::Deliver { scan, worker, .. } => {
                manager.request_chunk(NOW, *scan, *worker).unwrap();
            }
            Action::Finish { scan, .. } => manager.cancel_scan(NOW, *scan),
            _ => {}
        }
        all.push(action);
    }
    manager.audit().unwrap();
    all
}

#[test]
fn an_interest_reads_nothing_and_never_waits() {
    let (mut manager, table) = manager(4, Config::default());
    let interest = interest(&mut manager, table, 3);
    assert_eq!(actions(&mut manager), []);
    assert_eq!(manager.poll_timeout(), None);
    assert_eq!(manager.state().scan_count(), 0);
    manager.audit().unwrap();
    // Nor does an interest keep scans from ending, and a page that fails does not fail it.
    let scan = start(&mut manager, &spec(table, 3..4));
    let [Action::Load { load, .. }] = actions(&mut manager)[..] else { panic!("no load") };
    manager.page_failed(NOW, load, PageId(3));
    let [Action::Fail { scan: failed, .. }] = actions(&mut manager)[..] else {
        panic!("no failure")
    };
    assert_eq!(failed, scan);
    manager.cancel_scan(NOW, scan);
    manager.cancel_scan(NOW, interest);
    assert_eq!(actions(&mut manager), []);
    manager.audit().unwrap();
}

#[test]
fn what_others_want_stays_unless_a_scan_here_needs_the_space() {
    for (pool_chunks, stays) in [(3, true), (1, false)] {
        let (mut manager, table) = manager(pool_chunks, Config::default());
        interest(&mut manager, table, 0);
        start(&mut manager, &spec(table, 0..10));
        let delivered = deliveries(&drive(&mut manager)).len();
        assert_eq!(delivered, 10, "with {pool_chunks} chunks");
        assert_eq!(!manager.state().is_cold(PageId(0)), stays, "with {pool_chunks} chunks");
    }
}

#[test]
fn a_remote_scan_is_read_for_and_needs_no_processor() {
    let (mut manager, table) = manager(4, Config { active_workers_max: 1, ..Config::default() });
    start(&mut manager, &spec(table, 0..1));
    let [Action::Load { load, .. }] = actions(&mut manager)[..] else { panic!("no load") };
    manager.page_loaded(NOW, load, PageId(0));
    assert_eq!(deliveries(&actions(&mut manager)).len(), 1, "the only processor is busy");
    let remote = start_remote(&mut manager, &spec(table, 5..6));
    let started = actions(&mut manager);
    assert_eq!(loads(&started), [(remote, 5)]);
    let Action::Load { load, .. } = started[0] else { panic!("no load") };
    manager.page_loaded(NOW, load, PageId(5));
    assert_eq!(deliveries(&actions(&mut manager)), [(remote, 5)]);
}

/// The scan whose pages fill this pool may itself wait for the other server.
#[test]
fn a_remote_scan_never_waits_for_space() {
    let (mut manager, table) = manager(1, Config::default());
    start(&mut manager, &spec(table, 0..1));
    let [Action::Load { load, .. }] = actions(&mut manager)[..] else { panic!("no load") };
    let remote = start_remote(&mut manager, &spec(table, 5..6));
    assert_eq!(actions(&mut manager), [Action::NoSpace { scan: remote }]);
    manager.cancel_scan(NOW, remote);
    manager.page_loaded(NOW, load, PageId(0));
    assert_eq!(deliveries(&actions(&mut manager)).len(), 1);
    manager.audit().unwrap();
}

#[test]
fn a_remote_scan_ranks_as_its_query_would() {
    for (chunks_left, first) in [(0, 5), (100, 0)] {
        let config = Config { loads_in_flight_max: 1, ..Config::default() };
        let (mut manager, table) = manager(10, config);
        let query =
            RemoteQuery { chunks_left, chunks_in_all: chunks_left, ..RemoteQuery::default() };
        let local = manager.start_scan(NOW, &spec(table, 0..5)).unwrap();
        let remote = manager.start_remote_scan(NOW, &spec(table, 5..6), query).unwrap();
        for scan in [local, remote] {
            manager.request_chunk(NOW, scan, WORKER).unwrap();
        }
        let started = loads(&actions(&mut manager));
        assert_eq!(started[0].1, first, "{chunks_left} chunks left: {started:?}");
    }
}

#[test]
fn what_a_peer_has_in_its_pool_is_loaded_first_and_takes_no_slot() {
    let config = Config { loads_in_flight_max: 1, ..Config::default() };
    let (mut manager, table) = manager(10, config);
    set_source(&mut manager, 6, Source::PeerPool);
    start(&mut manager, &spec(table, 0..10));
    let first = loads(&actions(&mut manager));
    assert_eq!(first[0].1, 6, "{first:?}");
    assert!(first.len() > 1, "the slot is still there: {first:?}");
    // The slot is taken now, and one more chunk comes into a peer's pool.
    set_source(&mut manager, 8, Source::PeerPool);
    let second = loads(&actions(&mut manager));
    assert!(second.iter().any(|&(_, chunk)| chunk == 8), "{second:?}");
    manager.audit().unwrap();
}

/// A wait for data is no wait for space.
#[test]
fn what_a_peer_has_is_loaded_however_long_others_wait_for_data() {
    let config = Config { loads_in_flight_max: 1, ..Config::default() };
    let (mut manager, table) = manager(10, config);
    start(&mut manager, &spec(table, 0..10));
    assert_eq!(loads(&actions(&mut manager)).len(), 1);
    let later = Time(10 * config.space_timeout_ns);
    manager.set_source(later, PageId(8)..PageId(9), Source::PeerPool);
    assert_eq!(loads(&actions(&mut manager)).iter().map(|load| load.1).collect::<Vec<_>>(), [8]);
}

/// Two servers that wait for each other's pages could otherwise have no slot left to read them.
#[test]
fn a_load_takes_no_slot_while_it_only_waits_for_a_peer() {
    let config = Config { loads_in_flight_max: 1, pool_bytes: 10_000, ..Config::default() };
    let mut layout = Layout::builder(1);
    let pages: Vec<_> = (0..2).map(|_| layout.add_page(GroupIndex(0), CHUNK_BYTES)).collect();
    layout.add_chunk(10, vec![pages]);
    let alone = layout.add_page(GroupIndex(0), CHUNK_BYTES);
    layout.add_chunk(10, vec![vec![alone]]);
    let mut manager = ActiveBufferManager::new(config, PolicyKind::Relevance.build());
    let (table, _) = manager.register_layout(&Arc::new(layout.build()), DeviceId(0));
    set_source(&mut manager, 1, Source::Peer);
    start(&mut manager, &spec(table, 0..1));
    let [Action::Load { load, .. }] = actions(&mut manager)[..] else { panic!("no load") };
    let remote = start_remote(&mut manager, &spec(table, 1..2));
    assert_eq!(actions(&mut manager), [], "one page still comes from the device");
    manager.page_loaded(NOW, load, PageId(0));
    assert_eq!(loads(&actions(&mut manager)), [(remote, 1)]);
    manager.audit().unwrap();
}

/// Otherwise further scans would take all that comes free.
#[test]
fn a_remote_scan_takes_no_space_that_is_kept_for_a_scan() {
    let config = Config { loads_in_flight_max: 2, ..Config::default() };
    let mut layout = Layout::builder(1);
    for count in [2, 3, 1, 1, 1] {
        let pages = (0..count).map(|_| layout.add_page(GroupIndex(0), CHUNK_BYTES)).collect();
        layout.add_chunk(10, vec![pages]);
    }
    let config = Config { pool_bytes: 4 * CHUNK_BYTES, ..config };
    let mut manager = ActiveBufferManager::new(config, PolicyKind::Relevance.build());
    let (table, _) = manager.register_layout(&Arc::new(layout.build()), DeviceId(0));
    // The first scan has a chunk and does not ask for it: two of four pages stay.
    let idle = start(&mut manager, &spec(table, 0..1));
    let [Action::Load { load, .. }] = actions(&mut manager)[..] else { panic!("no load") };
    manager.withdraw_worker(NOW, idle, WORKER);
    (0..2).for_each(|page| manager.page_loaded(NOW, load, PageId(page)));
    actions(&mut manager);
    let waiting = start(&mut manager, &spec(table, 1..2));
    let (mut now, mut reads) = (NOW, 0);
    let (mut peers, mut under_way): (Vec<ScanId>, Vec<(LoadId, Vec<PageId>)>) = Default::default();
    while !deliveries_to(waiting, &mut manager, &mut peers, &mut under_way) {
        // Two requests of a peer at any time; each page takes a tenth of the timeout.
        now = Time(now.0 + config.space_timeout_ns / 10);
        while peers.len() < 2 {
            let spec = spec(table, 2 + reads % 3..3 + reads % 3);
            reads += 1;
            let scan = manager.start_remote_scan(now, &spec, RemoteQuery::default()).unwrap();
            manager.request_chunk(now, scan, WORKER).unwrap();
            peers.push(scan);
        }
        if !under_way.is_empty() {
            let (load, pages) = under_way.remove(0);
            pages.into_iter().for_each(|page| manager.page_loaded(now, load, page));
        }
        manager.handle_timeout(now);
        assert!(reads < 1_000, "the scan never gets space");
    }
}

/// Takes actions. Requests of peers end with their answer. Returns whether the scan was handed its chunk.
fn deliveries_to(
    waiting: ScanId,
    manager: &mut ActiveBufferManager,
    peers: &mut Vec<ScanId>,
    under_way: &mut Vec<(LoadId, Vec<PageId>)>,
) -> bool {
    while let Some(action) = manager.poll_action() {
        match action {
            Action::Load { load, pages, .. } => under_way.push((load, pages)),
            Action::Deliver { scan, .. } if scan == waiting => return true,
            Action::Deliver { scan, .. } | Action::NoSpace { scan } => {
                manager.cancel_scan(NOW, scan);
                peers.retain(|&peer| peer != scan);
            }
            _ => {}
        }
    }
    false
}

#[test]
fn copies_of_what_a_peer_has_are_evicted_first() {
    let (mut manager, table) = manager(3, Config::default());
    start(&mut manager, &spec(table, 0..3));
    drive(&mut manager);
    // Chunk 2 was used last, and is nevertheless evicted first.
    set_source(&mut manager, 2, Source::PeerPool);
    interest(&mut manager, table, 2);
    start(&mut manager, &spec(table, 5..6));
    let evicted: Vec<_> = drive(&mut manager)
        .into_iter()
        .filter_map(|action| match action {
            Action::Evict { page } => Some(page),
            _ => None,
        })
        .collect();
    assert_eq!(evicted, [PageId(2)]);
}
