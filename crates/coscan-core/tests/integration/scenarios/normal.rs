//! `normal`: each scan in order, one chunk ahead, least recently used pages are evicted.

use coscan_core::*;

use crate::scenarios::world;
use crate::world::worker;

#[test]
fn reads_one_chunk_ahead_and_no_more() {
    let (mut world, table) = world(PolicyKind::Normal, 100).with_table(5, &[10]);
    let scan = world.start(table, &[0], 0..50, &[worker(1_000)]);
    world.drive_until(900);
    assert_eq!(world.delivered_to(scan), [0]);
    assert_eq!(world.chunks_read(), [0, 1]);
}

#[test]
fn evicts_the_least_recently_used_first() {
    let (mut world, table) = world(PolicyKind::Normal, 30).with_table(6, &[10]);
    for chunk in [0, 1, 2, 0] {
        world.start(table, &[0], chunk * 10..chunk * 10 + 10, &[worker(1)]);
        world.drive();
    }
    assert_eq!(world.evicted(), [] as [u32; 0]);
    world.start(table, &[0], 30..50, &[worker(1)]);
    world.drive();
    assert_eq!(world.evicted(), [1, 2], "chunk 0 was used again");
}

#[test]
fn scans_apart_read_the_table_twice() {
    let (mut world, table) = world(PolicyKind::Normal, 30).with_table(10, &[10]);
    world.start(table, &[0], 0..100, &[worker(25)]);
    world.drive_until(160);
    world.start(table, &[0], 0..100, &[worker(25)]);
    world.drive();
    assert_eq!(world.chunks_read().len(), 20);
}

#[test]
fn reading_ahead_for_one_scan_does_not_evict_what_was_read_ahead_for_another() {
    let (mut world, table) = world(PolicyKind::Normal, 30).with_table(8, &[10]);
    world.start(table, &[0], 0..40, &[worker(5_000)]);
    world.start(table, &[0], 40..80, &[worker(5_000)]);
    world.drive_until(4_000);
    assert_eq!(world.chunks_read(), [0, 4, 1], "two in use, one ahead, no room for another");
}
