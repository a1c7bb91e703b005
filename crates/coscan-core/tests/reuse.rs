//! What nobody wants now is kept by when somebody is expected to come back to its table, in a small world: pages of 10
//! bytes, a pool of ten, and two scans of a large table, one of which stands still and wants all that the other reads.

#![allow(clippy::unwrap_used)]

mod world;

use coscan_core::*;
use world::{ScanRate, World, pace, table};

const SECOND: u64 = 1_000_000_000;

/// A worker that never asks: its scan needs what it needs.
const NEVER: ScanRate =
    ScanRate { first_ns: u64::MAX, chunk_ns: 1, releases_early: false, stall: None };

/// How often pages of a table of two are read if scans come to it, so many seconds apart.
fn reads_of_small_table(seconds_apart: u64, arrivals: u64) -> usize {
    let mut world = World::new(PolicyKind::Relevance.build(), 100, 1);
    let large = world.add_table(&table(400, &[10]));
    let small = world.add_table(&table(2, &[10]));
    world.start(large, &[0], 0..4000, &[pace(SECOND)]);
    world.start(large, &[0], 0..4000, &[NEVER]);
    for visit in 0..arrivals {
        world.drive_until(visit * seconds_apart * SECOND);
        world.start(small, &[0], 0..20, &[pace(1)]);
    }
    world.drive_until(arrivals * seconds_apart * SECOND);
    let reads = format!(" table={small} ");
    world.log.iter().filter(|line| line.starts_with("load") && line.contains(&reads)).count()
}

#[test]
fn a_small_table_that_is_read_often_stays() {
    assert_eq!(reads_of_small_table(4, 10), 2);
}

#[test]
fn it_goes_if_scans_come_to_it_later_than_to_the_rest() {
    // The one that stands still is expected to come to the rest in half of 400 s.
    assert_eq!(reads_of_small_table(210, 3), 6);
}
