//! What `predictive` evicts, and what its switches change, in small worlds: pages of 10 bytes that take 10 ns to read,
//! chunks of 10 rows, scans that take a second for a chunk.

#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

mod world;

use coscan_core::policy::Switches;
use coscan_core::*;
use world::{ScanRate, World, pace, table};

const SECOND: u64 = 1_000_000_000;

/// A worker that never asks: its scan needs what it needs.
const NEVER: ScanRate =
    ScanRate { first_ns: u64::MAX, chunk_ns: 1, releases_early: false, stall: None };

fn world(switches: Switches, pool_bytes: u64) -> World {
    World::new(PolicyKind::Predictive(switches).build(), pool_bytes, 1)
}

/// What stands after `key` in the log's lines of an event that contain `with`.
fn values(world: &World, event: &str, with: &str, key: &str) -> Vec<u32> {
    let lines = world.log.iter().filter(|line| line.starts_with(event) && line.contains(with));
    let values = lines.map(|line| line.split_once(key).unwrap().1.split(' ').next().unwrap());
    values.map(|value| value.parse().unwrap()).collect()
}

fn deliveries(world: &World, scan: ScanId) -> Vec<u32> {
    values(world, "deliver", &format!(" scan={scan} "), " chunk=")
}

fn loads(world: &World) -> Vec<u32> {
    values(world, "load", "", " chunk=")
}

fn evictions(world: &World) -> Vec<u32> {
    values(world, "evict", "", ".p")
}

/// A world in which a scan has come to chunk 6 of 20, and another one, that wants the same, is about to start behind it.
fn one_ahead(policy: PolicyKind) -> (World, TableId) {
    let mut world = World::new(policy.build(), 80, 1);
    let table = world.add_table(&table(20, &[10]));
    world.start(table, &[0], 0..200, &[pace(SECOND)]);
    world.drive_until(6 * SECOND + 100);
    assert!(evictions(&world).is_empty(), "0 to 7 are in the pool");
    (world, table)
}

#[test]
fn what_is_used_last_goes() {
    let (mut world, table) = one_ahead(PolicyKind::Predictive(Switches::NONE));
    world.start(table, &[0], 0..200, &[pace(SECOND)]);
    world.drive_until(8 * SECOND + 500);
    // At 7 s the second scan is at 0, and 7 is in use: of what it comes to, 6 is furthest ahead. A second later both have
    // done with 0.
    assert_eq!(evictions(&world), [6, 0]);
    let (mut world, table) = one_ahead(PolicyKind::Normal);
    world.start(table, &[0], 0..200, &[pace(SECOND)]);
    world.drive_until(8 * SECOND + 500);
    assert_eq!(evictions(&world), [2, 3, 4, 5], "what the second scan comes to next");
}

#[test]
fn what_nobody_comes_to_goes_before_least_recently_used_first() {
    let (mut world, table) = one_ahead(PolicyKind::Predictive(Switches::NONE));
    world.start(table, &[0], 40..200, &[NEVER]);
    world.drive_until(9 * SECOND + 500);
    assert_eq!(evictions(&world), [0, 1, 2]);
}

#[test]
fn sampling_keeps_what_is_used_next_more_often_than_not() {
    let kept = |switches| {
        let (mut world, table) = one_ahead(PolicyKind::Predictive(switches));
        world.start(table, &[0], 0..200, &[pace(SECOND)]);
        world.drive();
        loads(&world).len()
    };
    let (sampled, all) =
        (kept(Switches { sampling: true, ..Switches::NONE }), kept(Switches::NONE));
    let (mut lru, table) = one_ahead(PolicyKind::Normal);
    lru.start(table, &[0], 0..200, &[pace(SECOND)]);
    lru.drive();
    assert!(
        all <= sampled && sampled < loads(&lru).len(),
        "{all}, {sampled}, {}",
        loads(&lru).len()
    );
}

#[test]
fn short_first_reads_for_the_scan_with_fewest_rows_to_go() {
    let order_of_first_chunks = |short_first| {
        let mut world = world(Switches { short_first, ..Switches::NONE }, 1_000);
        let table = world.add_table(&table(40, &[10]));
        world.start(table, &[0], 0..100, &[pace(SECOND)]);
        world.drive_until(5);
        world.start(table, &[0], 100..300, &[pace(SECOND)]);
        world.drive_until(6);
        world.start(table, &[0], 300..330, &[pace(SECOND)]);
        world.drive_until(100);
        loads(&world)
    };
    assert_eq!(order_of_first_chunks(false)[..3], [0, 10, 30], "first come, first served");
    assert_eq!(order_of_first_chunks(true)[..3], [0, 30, 10]);
}

#[test]
fn an_opportunistic_scan_goes_on_where_something_is_in_the_pool() {
    let deliveries_of_second = |opportunistic, order| {
        let mut world = world(Switches { opportunistic, ..Switches::NONE }, 1_000);
        let table = world.add_table(&table(6, &[10]));
        world.start(table, &[0], 30..60, &[pace(SECOND)]);
        world.drive();
        let scan = world.try_start(table, &[0], vec![0..60], order, &[pace(1)]).unwrap();
        world.drive();
        deliveries(&world, scan)
    };
    assert_eq!(deliveries_of_second(false, Order::Any), [0, 1, 2, 3, 4, 5]);
    assert_eq!(deliveries_of_second(true, Order::Any), [3, 4, 5, 0, 1, 2]);
    assert_eq!(deliveries_of_second(true, Order::InOrder), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_scan_is_held_back_for_a_part_of_its_time_only() {
    let reads_of_first = |throttling| {
        let mut world = world(Switches { throttling, ..Switches::NONE }, 60);
        world.disk = world::Disk::Scattered { random: world::Seeded(1), ns_max: SECOND / 2 };
        let table = world.add_table(&table(100, &[10]));
        let ahead = world.start(table, &[0], 0..1_000, &[pace(SECOND / 10)]);
        world.drive_until(10 * SECOND);
        let behind = world.start(table, &[0], 0..1_000, &[pace(SECOND / 10)]);
        world.drive();
        (world.ended[&ahead].at, world.ended[&behind].at, loads(&world).len())
    };
    let (free, held) = (reads_of_first(false), reads_of_first(true));
    assert!(held.0 > free.0, "held back: {held:?}, free: {free:?}");
    assert!(held.0 < free.0 * 2, "held back: {held:?}, free: {free:?}");
}
