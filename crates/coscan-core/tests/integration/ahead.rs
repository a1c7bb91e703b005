//! The distance that `relevance` reads ahead of scans on a device that takes many loads at once.

use crate::world::{Disk, SPACE_TIMEOUT_NS, World, table, worker};
use coscan_core::*;

const LOADS: usize = 6;

/// The number of loads in flight after `ns` nanoseconds for scans of these lengths in chunks, each of a table of its
/// own. A page arrives within 1,000 nanoseconds.
fn loads(policy: PolicyKind, scans: &[u64], pool_bytes: u64, ns: u64) -> Vec<usize> {
    let mut world = World::new(policy.build(), pool_bytes, LOADS);
    world.disk = scattered();
    let ids: Vec<_> = scans
        .iter()
        .map(|chunks| {
            let table = world.add_table(&table(30, &[100]));
            world.start(table, &[0], 0..chunks * 10, &[worker(1_000_000)])
        })
        .collect();
    world.drive_until(ns);
    ids.iter().map(|&id| loads_for(&world, id)).collect()
}

fn scattered() -> Disk {
    Disk::Scattered { random: SplitMix64(1), ns_max: 1_000 }
}

fn loads_for(world: &World, scan: ScanId) -> usize {
    world.loads().filter(|&(of, ..)| of == scan).count()
}

#[test]
fn a_waiting_scan_takes_up_to_half_of_the_load_slots() {
    assert_eq!(loads(PolicyKind::Relevance, &[20], 10_000, 0), [LOADS / 2]);
    // Two chunks for each take more than half of the slots.
    assert_eq!(loads(PolicyKind::Relevance, &[20, 20], 10_000, 0), [2, 2]);
    assert_eq!(loads(PolicyKind::Relevance2007, &[20], 10_000, 0), [2], "as published");
}

#[test]
fn one_that_has_something_to_go_on_with_does_not() {
    // Its worker takes long for a chunk: everything that was requested while it waited has arrived,
    // and no more does.
    let once = loads(PolicyKind::Relevance, &[20], 10_000, 999_000)[0];
    assert!((LOADS / 2..LOADS).contains(&once), "{once}");
}

#[test]
fn nor_where_there_is_no_room() {
    assert_eq!(loads(PolicyKind::Relevance, &[20], 200, 0), [2]);
}

#[test]
fn of_waiting_scans_the_one_with_the_fewest_arriving_chunks_reads_ahead_first() {
    // The needs of one worker and of three, six loads, leave four of the first ten slots.
    for workers in [[1, 3], [3, 1]] {
        let config = Config { loads_in_flight_max: 20, ..Config::default() };
        let mut manager = ActiveBufferManager::new(config, PolicyKind::Relevance.build());
        let scans = workers.map(|workers| {
            let (table, _) = manager.register_layout(&table(20, &[100]), DeviceId(0));
            let chunks = std::iter::once(ChunkIndex(0)..ChunkIndex(20)).collect();
            let (groups, order) = (vec![GroupIndex(0)], Order::Any);
            let spec = ScanSpec {
                table,
                groups,
                chunks,
                order,
                workers,
                weight: 1,
                pages: None,
                computation: None,
            };
            let scan = manager.start_scan(Time(0), &spec).unwrap();
            for worker in (0..workers).map(WorkerIndex::from_usize) {
                manager.request_chunk(Time(0), scan, worker).unwrap();
            }
            scan
        });
        let actions: Vec<_> = std::iter::from_fn(|| manager.poll_action()).collect();
        let loads_of = |of| {
            let is_load =
                |action: &&Action| matches!(action, Action::Load { scan, .. } if *scan == of);
            actions.iter().filter(is_load).count()
        };
        assert_eq!(scans.map(loads_of), [5, 5], "{workers:?}");
    }
}

#[test]
fn one_that_waits_for_a_processor_only_does_not_read_ahead() {
    let mut world = World::with_workers(PolicyKind::Relevance.build(), 10_000, LOADS, 1);
    world.disk = scattered();
    let [first, second] = [(); 2].map(|()| world.add_table(&table(20, &[100])));
    world.start(first, &[0], 0..200, &[worker(1_000_000)]);
    world.drive_until(2_000);
    let waiting = world.start(second, &[0], 0..200, &[worker(1)]);
    world.drive_until(2_000);
    assert_eq!(loads_for(&world, waiting), LOADS / 2, "it waits for data");
    world.drive_until(2_000 + SPACE_TIMEOUT_NS - 1);
    let scan = world.manager.state().scan(waiting).unwrap();
    assert!(scan.waiting_since().is_some() && scan.is_deliverable());
    assert_eq!(loads_for(&world, waiting), LOADS / 2);
}
