//! Pages that no running scan needs stay as long as scans are expected at their table soon, in a small world: pages of 10
//! bytes, a pool of ten, and two scans of a large table, one of which stands still and needs all that the other reads.

use crate::world::{NEVER, World, table, worker};
use coscan_core::*;

const SECOND: u64 = 1_000_000_000;

/// The reads of a table of two pages by scans that arrive this many seconds apart.
fn reads_of_small_table(seconds_apart: u64, arrivals: u64) -> usize {
    let (mut world, large) =
        World::new(PolicyKind::Relevance.build(), 100, 1).with_table(400, &[10]);
    let small = world.add_table(&table(2, &[10]));
    world.start(large, &[0], 0..4000, &[worker(SECOND)]);
    world.start(large, &[0], 0..4000, &[NEVER]);
    for arrival in 0..arrivals {
        world.drive_until(arrival * seconds_apart * SECOND);
        world.start(small, &[0], 0..20, &[worker(1)]);
    }
    world.drive_until(arrivals * seconds_apart * SECOND);
    world.loads().filter(|&(_, table, _)| table == small).count()
}

#[test]
fn a_small_table_that_is_read_often_stays() {
    assert_eq!(reads_of_small_table(4, 10), 2);
}

#[test]
fn it_is_evicted_if_its_scans_are_expected_later_than_the_next_use_of_the_rest() {
    // The scan that stands still is expected to use the rest in half of 400 s.
    assert_eq!(reads_of_small_table(210, 3), 6);
}
