//! `attach`: a new scan starts where a running one is.

use coscan_core::*;

use crate::scenarios::world;
use crate::world::worker;

#[test]
fn joins_the_scan_with_the_largest_overlap_wraps_and_ends_where_it_began() {
    let (mut world, table) = world(PolicyKind::Attach, 40).with_table(10, &[10, 10]);
    // Both are busy with their first chunks; the second shares more chunks and columns with the newcomer.
    world.start(table, &[0], 0..60, &[worker(1_000)]);
    world.start(table, &[0, 1], 40..100, &[worker(1_000)]);
    world.drive_until(500);
    let scan = world.start(table, &[0, 1], 0..100, &[worker(10)]);
    world.set_pool_bytes(1_000);
    world.drive();
    assert_eq!(world.delivered_to(scan), [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]);
}

#[test]
fn starts_at_the_front_when_nothing_is_shared() {
    let (mut world, table) = world(PolicyKind::Attach, 100).with_table(6, &[10, 10]);
    world.start(table, &[0], 0..60, &[worker(100)]);
    world.drive_until(250);
    let scan = world.start(table, &[1], 0..60, &[worker(10)]);
    world.drive();
    assert_eq!(world.delivered_to(scan), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn two_scans_of_the_same_pace_read_what_is_left_once() {
    let (mut world, table) = world(PolicyKind::Attach, 30).with_table(10, &[10]);
    world.start(table, &[0], 0..100, &[worker(25)]);
    world.drive_until(110);
    world.start(table, &[0], 0..100, &[worker(25)]);
    world.drive();
    let mut read = world.chunks_read();
    assert!(read.len() <= 15, "{read:?}");
    read.sort_unstable();
    read.dedup();
    assert_eq!(read.len(), 10);
}
