//! `relevance` with fewer processors than scans.

use coscan_core::*;

use crate::scenarios::world;
use crate::world::{SPACE_TIMEOUT_NS, WorkerProfile, World, table, worker};

/// A world whose pool holds all that is read, and in which one worker may be at work.
fn one_worker() -> (World, TableId) {
    let (mut world, table) =
        World::with_workers(PolicyKind::Relevance.build(), 1000, 1, 1).with_table(6, &[10]);
    world.warm(table, &[0], 0..60);
    (world, table)
}

#[test]
fn no_more_workers_are_at_work_than_may_be() {
    for (active_workers_max, delivered) in [(1, 1), (2, 2), (9, 4)] {
        let policy = PolicyKind::Relevance.build();
        let (mut world, table) =
            World::with_workers(policy, 1000, 1, active_workers_max).with_table(6, &[10]);
        world.warm(table, &[0], 0..60);
        let scans: Vec<_> =
            (0..4).map(|_| world.start(table, &[0], 0..60, &[worker(100)])).collect();
        world.drive_until(world.now + 50);
        let count: usize = scans.iter().map(|&scan| world.delivered_to(scan).len()).sum();
        assert_eq!(count, delivered);
        world.drive();
        assert_eq!(world.finished.len(), 5);
    }
}

#[test]
fn if_all_are_overdue_twice_as_many_are_at_work_and_no_more() {
    let (mut world, table) =
        World::with_workers(PolicyKind::Relevance.build(), 1000, 1, 1).with_table(6, &[10]);
    world.warm(table, &[0], 0..60);
    let scans: Vec<_> =
        (0..20).map(|_| world.start(table, &[0], 0..60, &[worker(SPACE_TIMEOUT_NS / 2)])).collect();
    let mut most = 0;
    while world.step() {
        most = most.max(world.manager.state().active_workers());
    }
    assert_eq!(most, 2);
    assert!(scans.iter().all(|scan| world.finished.contains(scan)));
}

#[test]
fn the_scan_that_can_use_decoded_columns_goes_first() {
    let (mut world, table) = one_worker();
    let busy = world.start(table, &[0], 50..60, &[worker(100)]);
    world.drive_until(world.now + 10);
    let early = world.start(table, &[0], 0..20, &[worker(5)]);
    let late = world.start(table, &[0], 20..60, &[worker(5)]);
    world.decode(table, ChunkIndex(4), GroupIndex(0), true);
    world.drive_until(world.now + 50);
    assert!(world.delivered_to(early).is_empty() && world.delivered_to(late).is_empty());
    world.drive();
    assert_eq!(world.finished[1], busy);
    let first = world.deliveries().find(|&(scan, _)| scan != busy);
    assert_eq!(first, Some((late, 4)));
}

#[test]
fn of_scans_with_all_columns_decoded_the_one_of_more_columns_does_not_go_first() {
    let (mut world, table) =
        World::with_workers(PolicyKind::Relevance.build(), 2000, 1, 1).with_table(6, &[10, 10]);
    world.warm(table, &[0, 1], 0..60);
    for (chunk, group) in (0..6).flat_map(|chunk| [(chunk, 0), (chunk, 1)]) {
        world.decode(table, ChunkIndex(chunk), GroupIndex(group), true);
    }
    world.start(table, &[0], 50..60, &[worker(100)]);
    world.drive_until(world.now + 10);
    let wide = world.start(table, &[0, 1], 0..50, &[worker(5)]);
    let narrow = world.start(table, &[0], 0..20, &[worker(5)]);
    world.drive();
    assert_eq!(world.finished[2..], [narrow, wide]);
}

/// As [`one_worker`], with 60 chunks, of which all but the first ten are decoded.
fn mostly_decoded() -> (World, TableId) {
    let (mut world, table) =
        World::with_workers(PolicyKind::Relevance.build(), 2000, 1, 1).with_table(60, &[10]);
    world.warm(table, &[0], 0..600);
    (10..60).for_each(|chunk| world.decode(table, ChunkIndex(chunk), GroupIndex(0), true));
    (world, table)
}

#[test]
fn a_scan_of_which_nothing_is_decoded_waits_for_a_few_turns_only() {
    let (mut world, table) = mostly_decoded();
    let decoded = world.start(table, &[0], 100..600, &[worker(100)]);
    world.drive_until(world.now + 500);
    let cold = world.start(table, &[0], 0..100, &[worker(100)]);
    world.drive();
    // A turn is a chunk of each of the two.
    let before = world.deliveries().take_while(|&(scan, _)| scan != cold);
    let before = before.filter(|&(scan, _)| scan == decoded).count();
    assert!((5 + 3..=5 + 5).contains(&before), "{before} chunks were handed out before");
}

#[test]
fn a_scan_of_many_workers_has_no_more_turns() {
    let (mut world, table) = mostly_decoded();
    world.start(table, &[0], 100..600, &[worker(100); 8]);
    world.drive_until(world.now + 500);
    let cold = world.start(table, &[0], 0..100, &[worker(100); 8]);
    world.drive();
    let scans: Vec<_> = world.deliveries().map(|(scan, _)| scan).collect();
    let first = scans.iter().position(|&scan| scan == cold).unwrap();
    let last = scans.iter().rposition(|&scan| scan == cold).unwrap();
    let between = scans[first..last].iter().filter(|&&scan| scan != cold).count();
    assert!(between >= 20, "decoded chunks still go first, but for {between}");
}

#[test]
fn of_equals_the_scan_with_least_left_goes_first() {
    let (mut world, table) = one_worker();
    world.start(table, &[0], 50..60, &[worker(100)]);
    world.drive_until(world.now + 10);
    let long = world.start(table, &[0], 0..50, &[worker(5)]);
    let short = world.start(table, &[0], 0..10, &[worker(5)]);
    world.drive();
    assert!(
        world.finished.iter().position(|&s| s == short)
            < world.finished.iter().position(|&s| s == long)
    );
}

/// The first to end of two scans that begin while a third one keeps the only processor busy.
fn first_of(
    world: &mut World,
    table: TableId,
    workers: [WorkerProfile; 2],
    weights: [u32; 2],
) -> usize {
    world.start(table, &[0], 50..60, &[worker(100)]);
    world.drive_until(world.now + 10);
    let scans = [0, 1].map(|which| {
        world.weight = weights[which];
        world.start(table, &[0], 0..50, &[workers[which]])
    });
    world.drive();
    let at = |scan| world.finished.iter().position(|&finished| finished == scan);
    usize::from(at(scans[1]) < at(scans[0]))
}

#[test]
fn of_equals_the_scan_of_more_weight_goes_first() {
    for (weights, first) in [([1, 1], 0), ([1, 3], 1), ([3, 1], 0)] {
        let (mut world, table) = one_worker();
        assert_eq!(first_of(&mut world, table, [worker(5); 2], weights), first, "{weights:?}");
    }
}

#[test]
fn of_equals_the_faster_scan_ends_first() {
    for (chunk_ns, first) in [([5, 50], 0), ([50, 5], 1)] {
        let (mut world, table) = one_worker();
        assert_eq!(
            first_of(&mut world, table, chunk_ns.map(worker), [1, 1]),
            first,
            "{chunk_ns:?}"
        );
    }
}

#[test]
fn the_scan_of_more_weight_is_read_for_first() {
    for (weight, first) in [(1, 0), (4, 1)] {
        let mut world = world(PolicyKind::Relevance, 1_000);
        let (short, long) = (table(3, &[10]), table(6, &[10]));
        let (short, long) = (world.add_table(&short), world.add_table(&long));
        let one = world.start(short, &[0], 0..30, &[worker(1)]);
        world.weight = weight;
        let other = world.start(long, &[0], 0..60, &[worker(1)]);
        world.drive();
        assert_eq!(world.finished[0], [one, other][first], "weight {weight}");
    }
}

#[test]
fn a_paused_worker_is_not_at_work() {
    let (mut world, table) = one_worker();
    let paused = world.start(table, &[0], 0..10, &[worker(1_000 * SPACE_TIMEOUT_NS)]);
    world.drive_until(world.now + 10);
    let other = world.start(table, &[0], 0..10, &[worker(5)]);
    world.drive_until(world.now + 10);
    assert!(world.delivered_to(other).is_empty());
    world.manager.pause_worker(Time(world.now), paused, WorkerIndex(0));
    world.settle();
    assert_eq!(world.delivered_to(other), [0]);
}

#[test]
fn no_worker_is_held_back_for_longer_than_wait_max() {
    let (mut world, table) = one_worker();
    world.start(table, &[0], 0..10, &[worker(1_000 * SPACE_TIMEOUT_NS)]);
    world.drive_until(world.now + 10);
    let other = world.start(table, &[0], 0..10, &[worker(5)]);
    world.drive_until(world.now + SPACE_TIMEOUT_NS / 2);
    assert!(world.delivered_to(other).is_empty());
    world.drive_until(world.now + SPACE_TIMEOUT_NS);
    assert_eq!(world.delivered_to(other), [0]);
}
