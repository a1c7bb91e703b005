//! How far `relevance` reads ahead of scans on a device that takes many loads at once.

#![allow(clippy::unwrap_used)]

mod world;

use coscan_core::*;
use world::{Disk, Seeded, World, table, worker};

const LOADS: usize = 6;

/// The number of loads in flight for scans of these lengths in chunks, each of a table of its own, after so many
/// nanoseconds; a page arrives within 1,000.
fn loads(policy: PolicyKind, scans: &[u64], pool_bytes: u64, ns: u64) -> Vec<usize> {
    let mut world = World::new(policy.build(), pool_bytes, LOADS);
    world.disk = Disk::Scattered { random: Seeded(1), ns_max: 1_000 };
    let ids: Vec<_> = scans
        .iter()
        .map(|chunks| {
            let table = world.add_table(&table(30, &[100]));
            world.start(table, &[0], 0..chunks * 10, &[worker(1_000_000)])
        })
        .collect();
    world.drive_until(ns);
    let of = |id: &ScanId| world.loads().filter(|(scan, ..)| scan == id).count();
    ids.iter().map(of).collect()
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
    // Its worker takes long for a chunk: of what was asked for while it waited all has come, and no more is.
    let once = loads(PolicyKind::Relevance, &[20], 10_000, 999_000)[0];
    assert!((LOADS / 2..LOADS).contains(&once), "{once}");
}

#[test]
fn nor_where_there_is_no_room() {
    assert_eq!(loads(PolicyKind::Relevance, &[20], 200, 0), [2]);
}
