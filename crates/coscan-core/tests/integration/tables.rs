//! Tables that share pages, and whose chunks are added and removed.

#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use crate::world::spec;
use coscan_core::*;

fn manager(policy: PolicyKind) -> ActiveBufferManager {
    let config = Config { pool_bytes: 1_000, ..Config::default() };
    ActiveBufferManager::new(config, policy.build())
}

/// A chunk of one column with one page.
fn chunk(page: PageId) -> ChunkSpec {
    ChunkSpec { rows: 10, slices: vec![vec![page]] }
}

/// Runs a scan to its end. Returns the chunks that it was handed and the number of pages read.
fn run(manager: &mut ActiveBufferManager, spec: &ScanSpec) -> (Vec<u32>, usize) {
    let now = Time(0);
    let scan = manager.start_scan(now, spec).unwrap();
    let (mut handed, mut read) = (Vec::new(), 0);
    manager.request_chunk(now, scan, WorkerIndex(0)).unwrap();
    while let Some(action) = manager.poll_action() {
        match action {
            Action::Load { load, pages, .. } => {
                read += pages.len();
                pages.iter().for_each(|&page| manager.page_loaded(now, load, page));
            }
            Action::Deliver { chunk, .. } => {
                handed.push(chunk.0);
                manager.request_chunk(now, scan, WorkerIndex(0)).unwrap();
            }
            Action::Finish { .. } => manager.cancel_scan(now, scan),
            _ => {}
        }
        manager.audit().unwrap();
    }
    handed.sort_unstable();
    (handed, read)
}

#[test]
fn what_one_table_has_read_is_there_for_another() {
    for policy in PolicyKind::variants() {
        let mut manager = manager(policy);
        let first = manager.add_pages(&[100; 3]);
        let pages = [first, PageId(first.0 + 1), PageId(first.0 + 2)];
        let all = manager.register_table(1, DeviceId(0));
        manager.append_chunks(all, &pages.map(chunk)).unwrap();
        let last = manager.register_table(1, DeviceId(0));
        manager.append_chunks(last, &[chunk(pages[2])]).unwrap();
        assert_eq!(run(&mut manager, &spec(all, 0..3)), (vec![0, 1, 2], 3), "{policy}");
        assert_eq!(run(&mut manager, &spec(last, 0..1)), (vec![0], 0), "{policy}");
    }
}

#[test]
fn chunks_come_and_go_while_a_scan_runs_and_their_index_is_given_again() {
    for policy in PolicyKind::variants() {
        let mut manager = manager(policy);
        let now = Time(0);
        let first = manager.add_pages(&[100; 4]);
        let page = |page| PageId(first.0 + page);
        let table = manager.register_table(1, DeviceId(0));
        manager.append_chunks(table, &[chunk(page(0)), chunk(page(1))]).unwrap();
        let running = manager.start_scan(now, &spec(table, 0..1)).unwrap();
        let in_use = manager.retire_chunks(now, table, &[ChunkIndex(0)..ChunkIndex(1)]);
        assert_eq!(in_use, Err(RetireChunksError::InUse(ChunkIndex(0))), "{policy}");
        manager.retire_chunks(now, table, &[ChunkIndex(1)..ChunkIndex(2)]).unwrap();
        let added = manager.append_chunks(table, &[chunk(page(2)), chunk(page(3))]).unwrap();
        assert_eq!(added, [ChunkIndex(1), ChunkIndex(2)], "{policy}");
        manager.audit().unwrap();
        manager.cancel_scan(now, running);
        assert_eq!(run(&mut manager, &spec(table, 0..3)).0, [0, 1, 2], "{policy}");
    }
}

#[test]
fn pages_that_no_table_lists_stay_until_they_are_listed_again_or_removed() {
    for policy in PolicyKind::variants() {
        let mut manager = manager(policy);
        let now = Time(0);
        let first = manager.add_pages(&[100; 2]);
        let pages = first..PageId(first.0 + 2);
        let table = manager.register_table(1, DeviceId(0));
        let chunks = [chunk(first), chunk(PageId(first.0 + 1))];
        manager.append_chunks(table, &chunks).unwrap();
        assert_eq!(run(&mut manager, &spec(table, 0..2)).1, 2, "{policy}");
        assert!(manager.remove_pages(now, pages.clone()).is_err(), "they are listed");
        manager.remove_table(now, table).unwrap();
        manager.audit().unwrap();
        let other = manager.register_table(1, DeviceId(0));
        manager.append_chunks(other, &chunks).unwrap();
        manager.audit().unwrap();
        assert_eq!(run(&mut manager, &spec(other, 0..2)).1, 0, "{policy}: they are still there");
        manager.evict_unneeded(now);
        while manager.poll_action().is_some() {}
        manager.audit().unwrap();
        assert_eq!(manager.state().held_bytes(), 0, "{policy}");
        manager.remove_table(now, other).unwrap();
        manager.remove_pages(now, pages.clone()).unwrap();
        assert_eq!(manager.add_pages(&[1; 2]), first, "{policy}: the ids are free");
    }
}

#[test]
fn a_page_that_arrives_unasked_is_taken_if_somebody_wants_it_and_there_is_room() {
    let mut manager = manager(PolicyKind::Relevance);
    let now = Time(0);
    let first = manager.add_pages(&[600, 600]);
    let second = PageId(first.0 + 1);
    let table = manager.register_table(1, DeviceId(0));
    manager.append_chunks(table, &[chunk(first), chunk(second)]).unwrap();
    assert!(!manager.offer_page(now, first), "nobody wants it");
    let scan = manager.start_scan(now, &spec(table, 0..2)).unwrap();
    assert!(manager.offer_page(now, first));
    assert!(!manager.offer_page(now, first), "it is there");
    assert!(!manager.offer_page(now, second), "there is no room");
    manager.audit().unwrap();
    manager.request_chunk(now, scan, WorkerIndex(0)).unwrap();
    let handed = std::iter::from_fn(|| manager.poll_action())
        .any(|action| matches!(action, Action::Deliver { chunk: ChunkIndex(0), .. }));
    assert!(handed);
}

#[test]
fn a_device_that_does_not_answer_holds_up_only_scans_that_read_from_it() {
    for policy in PolicyKind::variants() {
        let mut manager = manager(policy);
        let now = Time(0);
        let mut tables = Vec::new();
        for device in [0, 1] {
            let pages = manager.add_pages(&[10; 8]);
            let table = manager.register_table(1, DeviceId(device));
            let chunks: Vec<_> = (0..8).map(|page| chunk(PageId(pages.0 + page))).collect();
            manager.append_chunks(table, &chunks).unwrap();
            tables.push(table);
        }
        for _ in 0..8 {
            let scan = manager.start_scan(now, &spec(tables[0], 0..8)).unwrap();
            manager.request_chunk(now, scan, WorkerIndex(0)).unwrap();
        }
        while manager.poll_action().is_some() {} // None of these loads ever ends.
        assert!(manager.loads_in_flight() > 0);
        assert_eq!(run(&mut manager, &spec(tables[1], 0..8)).0.len(), 8, "{policy}");
    }
}
