//! The victims of `predictive` and the effect of its switches in small worlds: pages of 10 bytes that take 10 ns to read,
//! chunks of 10 rows, scans that take a second for a chunk.

#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use crate::world::{NEVER, World, worker};
use coscan_core::policy::Switches;
use coscan_core::*;

const SECOND: u64 = 1_000_000_000;

fn world(switches: Switches, pool_bytes: u64) -> World {
    World::new(PolicyKind::Predictive(switches).build(), pool_bytes, 1)
}

/// A world in which a scan has reached chunk 6 of 20, and another one of the same chunks is about to start behind it.
fn one_ahead(policy: PolicyKind) -> (World, TableId) {
    let (mut world, table) = World::new(policy.build(), 80, 1).with_table(20, &[10]);
    world.start(table, &[0], 0..200, &[worker(SECOND)]);
    world.drive_until(6 * SECOND + 100);
    assert!(world.evicted().is_empty(), "0 to 7 are in the pool");
    (world, table)
}

#[test]
fn pages_used_last_are_evicted() {
    let (mut world, table) = one_ahead(PolicyKind::Predictive(Switches::NONE));
    world.start(table, &[0], 0..200, &[worker(SECOND)]);
    world.drive_until(8 * SECOND + 500);
    // At 7 s the second scan is at 0, and 7 is in use: of the pages that it needs, 6 is furthest ahead. A second later both
    // are done with 0.
    assert_eq!(world.evicted(), [6, 0]);
    let (mut world, table) = one_ahead(PolicyKind::Normal);
    world.start(table, &[0], 0..200, &[worker(SECOND)]);
    world.drive_until(8 * SECOND + 500);
    assert_eq!(world.evicted(), [2, 3, 4, 5], "the next pages of the second scan");
}

#[test]
fn pages_that_no_scan_needs_are_evicted_first_least_recently_used_in_front() {
    let (mut world, table) = one_ahead(PolicyKind::Predictive(Switches::NONE));
    world.start(table, &[0], 40..200, &[NEVER]);
    world.drive_until(9 * SECOND + 500);
    assert_eq!(world.evicted(), [0, 1, 2]);
}

#[test]
fn sampling_reads_less_than_least_recently_used_does() {
    let reads = |switches| {
        let (mut world, table) = one_ahead(PolicyKind::Predictive(switches));
        world.start(table, &[0], 0..200, &[worker(SECOND)]);
        world.drive();
        world.chunks_read().len()
    };
    let (sampled, all) =
        (reads(Switches { sampling: true, ..Switches::NONE }), reads(Switches::NONE));
    let (mut lru, table) = one_ahead(PolicyKind::Normal);
    lru.start(table, &[0], 0..200, &[worker(SECOND)]);
    lru.drive();
    assert!(
        all <= sampled && sampled < lru.chunks_read().len(),
        "{all}, {sampled}, {}",
        lru.chunks_read().len()
    );
}

#[test]
fn short_first_reads_for_the_scan_with_fewest_rows_to_go() {
    let order_of_first_chunks = |short_first| {
        let (mut world, table) =
            world(Switches { short_first, ..Switches::NONE }, 1_000).with_table(40, &[10]);
        world.start(table, &[0], 0..100, &[worker(SECOND)]);
        world.drive_until(5);
        world.start(table, &[0], 100..300, &[worker(SECOND)]);
        world.drive_until(6);
        world.start(table, &[0], 300..330, &[worker(SECOND)]);
        world.drive_until(100);
        world.chunks_read()
    };
    assert_eq!(order_of_first_chunks(false)[..3], [0, 10, 30], "first come, first served");
    assert_eq!(order_of_first_chunks(true)[..3], [0, 30, 10]);
}

#[test]
fn an_opportunistic_scan_goes_on_where_something_is_in_the_pool() {
    let deliveries_of_second = |opportunistic, order| {
        let (mut world, table) =
            world(Switches { opportunistic, ..Switches::NONE }, 1_000).with_table(6, &[10]);
        world.start(table, &[0], 30..60, &[worker(SECOND)]);
        world.drive();
        let scan = world.try_start(table, &[0], vec![0..60], order, &[worker(1)]).unwrap();
        world.drive();
        world.delivered_to(scan)
    };
    assert_eq!(deliveries_of_second(false, Order::Any), [0, 1, 2, 3, 4, 5]);
    assert_eq!(deliveries_of_second(true, Order::Any), [3, 4, 5, 0, 1, 2]);
    assert_eq!(deliveries_of_second(true, Order::InOrder), [0, 1, 2, 3, 4, 5]);
}
