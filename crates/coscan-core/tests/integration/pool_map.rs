//! The picture of a table, and the reasons why its scans wait.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use crate::world::{spec, table};
use coscan_core::{
    Action, ActiveBufferManager, ChunkIndex, Config, DeviceId, GroupIndex, LoadId, MapCell,
    PolicyKind, PoolMapBuilder, ScanId, ScanSpec, TableId, Time, WaitsFor, WorkerIndex,
};

const WORKER: WorkerIndex = WorkerIndex(0);
const PAGE_BYTES: u64 = 100;

/// A table of two column groups with a page each in every chunk.
fn manager(chunks: usize, config: Config) -> (ActiveBufferManager, TableId) {
    let mut manager = ActiveBufferManager::new(config, PolicyKind::Relevance.build());
    let (table, _) = manager.register_layout(&table(chunks, &[PAGE_BYTES; 2]), DeviceId(0));
    (manager, table)
}

fn config(pages: u64, loads_in_flight_max: usize) -> Config {
    Config { pool_bytes: pages * PAGE_BYTES, loads_in_flight_max, ..Config::default() }
}

fn start(
    manager: &mut ActiveBufferManager,
    table: TableId,
    groups: &[u32],
    chunks: std::ops::Range<u32>,
) -> ScanId {
    let groups = groups.iter().copied().map(GroupIndex).collect();
    let spec = ScanSpec { groups, ..spec(table, chunks) };
    manager.start_scan(Time(0), &spec).unwrap()
}

/// The loads that are decided now, with their pages not reported yet.
fn loads(manager: &mut ActiveBufferManager) -> Vec<(LoadId, Vec<coscan_core::PageId>, ChunkIndex)> {
    std::iter::from_fn(|| manager.poll_action())
        .filter_map(|action| match action {
            Action::Load { load, pages, chunk, .. } => Some((load, pages, chunk)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_map_counts_every_page_once_in_the_state_that_it_has() {
    let (mut manager, table) = manager(10, config(20, 2));
    let scan = start(&mut manager, table, &[0], 0..10);
    start(&mut manager, table, &[0, 1], 0..4);
    manager.request_chunk(Time(1), scan, WORKER).unwrap();
    let (load, pages, chunk) = loads(&mut manager).swap_remove(0);
    let map = manager.state().pool_map(table, 5).unwrap();
    assert_eq!((map.groups, map.bins, map.chunk_index_end), (2, 5, 10));
    let bin = chunk.0 as usize / 2;
    assert!(map.cell(GroupIndex(0), bin).loading > 0, "{map:?}");
    for page in pages {
        manager.page_loaded(Time(2), load, page);
    }
    while manager.poll_action().is_some() {}
    manager.slice_decoded(table, chunk, GroupIndex(0));
    let map = manager.state().pool_map(table, 5).unwrap();
    let cell = map.cell(GroupIndex(0), bin);
    assert_eq!((cell.in_use, cell.decoded), (1, 1), "a worker has it");
    assert!(map.cells.iter().all(|cell| cell.pages() == 2), "{map:?}");
    manager.release_chunk(Time(3), scan, WORKER);
    let map = manager.state().pool_map(table, 5).unwrap();
    assert_eq!(map.cell(GroupIndex(0), bin).in_use, 0);
    assert!(map.cell(GroupIndex(0), bin).stored > 0);
}

#[test]
fn a_map_knows_who_wants_a_bin_and_how_many_bytes_are_shared() {
    let (mut manager, table) = manager(10, config(20, 2));
    start(&mut manager, table, &[0], 0..10);
    start(&mut manager, table, &[0, 1], 0..4);
    let map = manager.state().pool_map(table, 5).unwrap();
    let scans =
        |group| (0..5).map(|bin| map.cell(GroupIndex(group), bin).scans).collect::<Vec<_>>();
    assert_eq!(scans(0), [2, 2, 1, 1, 1]);
    assert_eq!(scans(1), [1, 1, 0, 0, 0]);
    assert_eq!(map.shared_bytes, [10 * PAGE_BYTES, 4 * PAGE_BYTES, 0, 0, 0]);
}

#[test]
fn a_map_taken_in_steps_is_the_same_and_outlives_its_table() {
    for chunks in [1, 7, 10, 64] {
        let (mut manager, table) = manager(chunks, config(20, 2));
        start(&mut manager, table, &[1], 0..u32::try_from(chunks).unwrap());
        let at_once = manager.state().pool_map(table, 6).unwrap();
        let mut survey = PoolMapBuilder::new(manager.state(), table, 6).unwrap();
        while survey.step(manager.state(), 3) {}
        assert_eq!(survey.into_map(), at_once);
        let all: u32 = at_once.cells.iter().map(MapCell::pages).sum();
        assert_eq!(all as usize, 2 * chunks);
        assert!((0..at_once.bins).all(|bin| at_once.cell(GroupIndex(1), bin).scans == 1));
    }
    let (mut manager, table) = manager(9, config(20, 2));
    let mut survey = PoolMapBuilder::new(manager.state(), table, 3).unwrap();
    assert!(survey.step(manager.state(), 2));
    manager.retire_chunks(Time(1), table, &[ChunkIndex(0)..ChunkIndex(9)]).unwrap();
    manager.remove_table(Time(1), table).unwrap();
    assert!(!survey.step(manager.state(), 2));
    assert!(manager.state().pool_map(table, 3).is_none());
}

#[test]
fn a_scan_says_what_it_waits_for() {
    let (mut manager, table) = manager(8, config(4, 1));
    let first = start(&mut manager, table, &[0], 0..8);
    assert!(manager.wait_of(first).is_none(), "no worker has asked");
    manager.request_chunk(Time(5), first, WORKER).unwrap();
    let (load, pages, chunk) = loads(&mut manager).swap_remove(0);
    let wait = manager.wait_of(first).unwrap();
    assert_eq!((wait.since, wait.on), (Time(5), WaitsFor::Load { load, chunk, scans: 1 }));
    // One load at a time from the device.
    let second = start(&mut manager, table, &[1], 4..8);
    manager.request_chunk(Time(6), second, WORKER).unwrap();
    assert!(loads(&mut manager).is_empty());
    assert_eq!(manager.wait_of(second).unwrap().on, WaitsFor::Device { loads: 1 });
    for page in pages {
        manager.page_loaded(Time(7), load, page);
    }
    while manager.poll_action().is_some() {}
    assert!(manager.wait_of(first).is_none(), "it has a chunk");
    manager.cancel_scan(Time(8), first);
    assert!(manager.wait_of(first).is_none(), "it does not run");
}

#[test]
fn a_ready_scan_waits_for_a_processor() {
    let limits = Config { active_workers_max: 1, ..config(4, 1) };
    let (mut manager, table) = manager(4, limits);
    let scans = [0, 1].map(|_| start(&mut manager, table, &[0], 0..4));
    for scan in scans {
        manager.request_chunk(Time(1), scan, WORKER).unwrap();
    }
    let (load, pages, chunk) = loads(&mut manager).swap_remove(0);
    assert_eq!(manager.wait_of(scans[1]).unwrap().on, WaitsFor::Load { load, chunk, scans: 2 });
    pages.into_iter().for_each(|page| manager.page_loaded(Time(2), load, page));
    while manager.poll_action().is_some() {}
    let waiting = scans.iter().find_map(|&scan| manager.wait_of(scan)).unwrap();
    assert_eq!(waiting.on, WaitsFor::Processor { chunk });
}
