//! The size of the pool and idle pages, under any policy.

use coscan_core::*;

use crate::scenarios::world;
use crate::world::{NEVER, World, worker};

#[test]
fn the_pool_shrinks_to_what_is_possible_and_grows_again() {
    for policy in PolicyKind::variants() {
        let (mut world, table) = world(policy, 80).with_table(8, &[10]);
        world.start(table, &[0], 0..80, &[worker(100)]);
        world.drive_until(90);
        assert_eq!(world.set_pool_bytes(0), 10, "{policy}: the chunk in use stays");
        assert_eq!(world.manager.state().held_bytes(), 10);
        world.drive_until(300);
        assert_eq!(world.set_pool_bytes(20), 20);
        world.drive();
        assert_eq!(world.finished.len(), 1);
        assert_eq!(world.manager.state().held_bytes(), 20);
        world.evict_unneeded();
        assert_eq!(world.manager.state().held_bytes(), 0);
        world.remove_table(table).unwrap();
    }
}

#[test]
fn idle_pages_are_evicted_unless_a_running_scan_needs_them() {
    for policy in PolicyKind::variants() {
        let (mut world, table) = world(policy, 80).with_table(8, &[10]);
        let held_bytes = |world: &World| world.manager.state().held_bytes();
        world.start(table, &[0], 0..60, &[worker(100)]);
        world.drive();
        world.evict_idle();
        assert_eq!(held_bytes(&world), 60, "{policy}: used since the beginning");
        world.start(table, &[0], 0..20, &[worker(100)]);
        world.drive();
        world.start(table, &[0], 20..30, &[NEVER]);
        world.evict_idle();
        assert_eq!(held_bytes(&world), 30, "{policy}: two chunks were used, one is needed");
        world.evict_idle();
        assert_eq!(held_bytes(&world), 10, "{policy}: one is needed");
    }
}

#[test]
fn the_pool_does_not_shrink_below_what_a_running_scan_will_need() {
    let (mut world, table) = world(PolicyKind::Relevance, 80).with_table(8, &[10, 20]);
    let scan = world.start(table, &[1], 0..80, &[NEVER]);
    world.start(table, &[0], 0..80, &[NEVER]);
    assert_eq!(world.set_pool_bytes(5), 20);
    world.cancel(scan);
    world.drive();
    assert_eq!(world.set_pool_bytes(5), 10);
}
