//! The deliveries of the policies that score chunks.

use coscan_core::policy::Scores;
use coscan_core::*;

use crate::scenarios::{scored_world, world};
use crate::world::{NEVER, World, worker};

#[test]
fn chunks_that_few_other_scans_need_are_handed_out_first() {
    // Row: chunk 0 is needed by 2 scans, chunk 1 by 3, chunk 2 by 1.
    let (mut world, table) = scored_world(Scores::Row, 1_000).with_table(3, &[10]);
    world.warm(table, &[0], 0..30);
    world.start(table, &[0], 0..20, &[NEVER]);
    world.start(table, &[0], 10..20, &[NEVER]);
    let scan = world.start(table, &[0], 0..30, &[worker(1)]);
    world.drive_until(1_000);
    assert_eq!(world.delivered_to(scan), [2, 0, 1]);
}

#[test]
fn chunks_that_free_most_bytes_per_scan_are_handed_out_first() {
    // Column: P / U is 10 / 1 for chunk 0, (10 + 100) / 2 for chunk 1, 10 / 2 for chunk 2.
    let (mut world, table) = scored_world(Scores::Column, 1_000).with_table(3, &[10, 100]);
    world.warm(table, &[0, 1], 0..30);
    world.start(table, &[0, 1], 10..20, &[NEVER]);
    world.start(table, &[0], 20..30, &[NEVER]);
    let scan = world.start(table, &[0], 0..30, &[worker(1)]);
    world.drive_until(1_000);
    assert_eq!(world.delivered_to(scan), [1, 0, 2]);
}

#[test]
fn decoded_chunks_are_handed_out_first() {
    let (mut world, table) = world(PolicyKind::Relevance, 1_000).with_table(3, &[10, 10]);
    world.warm(table, &[0, 1], 0..30);
    let scan = world.start(table, &[0, 1], 0..30, &[worker(1)]);
    for (chunk, group) in [(1, 0), (2, 0), (2, 1)] {
        world.decode(table, ChunkIndex(chunk), GroupIndex(group), true);
    }
    world.drive();
    assert_eq!(world.delivered_to(scan), [2, 1, 0]);
}

#[test]
fn chunks_in_work_by_scans_of_the_same_computation_are_handed_out_last() {
    for is_decoded in [false, true] {
        let (mut world, table) = world(PolicyKind::Relevance, 1_000).with_table(3, &[10]);
        world.warm(table, &[0], 0..30);
        let decode = |world: &mut World, chunk| {
            world.decode(table, ChunkIndex(chunk), GroupIndex(0), is_decoded);
        };
        (0..3).for_each(|chunk| decode(&mut world, chunk));
        world.computation = Some(ComputationId(7));
        let others =
            [0..10, 10..20].map(|rows| world.start(table, &[0], rows, &[worker(1_000_000)]));
        world.drive_until(world.now + 1);
        assert_eq!(others.map(|scan| world.delivered_to(scan)), [[0], [1]]);
        world.start(table, &[0], 20..30, &[NEVER]); // Otherwise chunk 2 would be handed out first anyway.
        world.start(table, &[0], 20..30, &[NEVER]);
        let scan = world.start(table, &[0], 0..30, &[worker(1)]);
        world.drive_until(world.now + 1_000);
        assert_eq!(world.delivered_to(scan)[0], 2, "chunks 0 and 1 are in work");
        assert_eq!(world.delivered_to(scan).len(), 3, "and are not withheld");
    }
}

#[test]
fn a_chunk_is_in_work_until_its_worker_asks_again_or_is_gone() {
    let (mut world, table) = world(PolicyKind::Relevance, 1_000).with_table(2, &[10]);
    world.warm(table, &[0], 0..20);
    world.computation = Some(ComputationId(0));
    let first = world.start(table, &[0], 0..20, &[worker(1_000_000)]);
    world.drive_until(world.now + 1);
    let is_in_work = |world: &World| {
        let state = world.manager.state();
        let scan = state.scan(first).unwrap();
        [0, 1].map(|chunk| state.is_in_work(scan, ChunkIndex(chunk)))
    };
    assert_eq!(is_in_work(&world), [true, false]);
    world.manager.request_chunk(Time(2), first, WorkerIndex(0)).unwrap();
    assert_eq!(is_in_work(&world), [false, false]);
    while world.manager.poll_action().is_some() {}
    assert_eq!(is_in_work(&world), [false, true]);
    world.manager.withdraw_worker(Time(3), first, WorkerIndex(0));
    assert_eq!(is_in_work(&world), [false, false]);
    world.manager.request_chunk(Time(4), first, WorkerIndex(0)).unwrap();
    while world.manager.poll_action().is_some() {}
    assert_eq!(is_in_work(&world), [false, true]);
    world.computation = Some(ComputationId(0));
    let spec = ScanSpec {
        table,
        groups: vec![GroupIndex(0)],
        chunks: vec![ChunkIndex(0)..ChunkIndex(2)],
        order: Order::Any,
        workers: 1,
        weight: 1,
        pages: None,
        computation: Some(ComputationId(0)),
    };
    let second = world.manager.start_scan(Time(5), spec).unwrap();
    world.manager.cancel_scan(Time(6), first);
    let state = world.manager.state();
    let scan = state.scan(second).unwrap();
    assert!(!state.is_in_work(scan, ChunkIndex(1)), "its scan was cancelled");
}
