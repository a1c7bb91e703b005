//! Scans that wait for space in the pool, under any policy.

use coscan_core::*;

use crate::scenarios::world;
use crate::world::{NEVER, SPACE_TIMEOUT_NS, WorkerProfile, World, table, worker};

#[test]
fn a_scan_whose_neighbour_stopped_consuming_goes_on_after_the_space_timeout() {
    for policy in PolicyKind::variants() {
        let (mut world, table) = world(policy, 20).with_table(6, &[10]);
        let probe =
            world.start(table, &[0], 0..60, &[WorkerProfile { first_ns: u64::MAX, ..worker(5) }]);
        let build = world.start(table, &[0], 20..60, &[worker(5)]);
        // A third one is busy all the time, so that something might still free room.
        world.start(table, &[], 0..10, &[worker(9 * SPACE_TIMEOUT_NS)]);
        world.drive_until(5 * SPACE_TIMEOUT_NS);
        assert_eq!(world.finished, [build], "{policy}");
        world.cancel(probe);
    }
}

#[test]
fn a_large_scan_is_served_under_a_stream_of_small_ones() {
    // Small scans keep the pool full: whenever 10 bytes come free one of them could take them, and the large one
    // would never see 30.
    for policy in PolicyKind::variants() {
        let (mut world, large) = World::new(policy.build(), 60, 2).with_table(1, &[30]);
        let small = world.add_table(&table(100, &[10]));
        for newcomer in 0..6 {
            world.start(small, &[0], newcomer * 10..newcomer * 10 + 10, &[worker(300)]);
            world.drive_until(newcomer * 45);
        }
        let large = world.start(large, &[0], 0..10, &[worker(10)]);
        for newcomer in 6..600 {
            let rows = newcomer % 100 * 10;
            world.start(small, &[0], rows..rows + 10, &[worker(300)]);
            world.drive_until(newcomer * 45);
            if world.finished.contains(&large) {
                break;
            }
        }
        assert!(world.finished.contains(&large), "{policy}");
        world.drive();
    }
}

#[test]
fn a_scan_that_holds_pages_until_another_one_ends_does_not_block_it_through_a_third() {
    // The holder keeps 10 bytes until `small` ends; `large` needs all 30 and waits longer than `small`.
    for policy in PolicyKind::variants() {
        let (mut world, table_small) = World::new(policy.build(), 30, 1).with_table(4, &[10]);
        let table_large = world.add_table(&table(1, &[30]));
        let late = WorkerProfile { first_ns: 2 * SPACE_TIMEOUT_NS, ..worker(10) };
        let small = world.start(table_small, &[0], 10..40, &[late]);
        let stall = Some((1, small));
        let holder = world.start(table_small, &[0], 0..10, &[WorkerProfile { stall, ..worker(1) }]);
        world.drive_until(100);
        let large = world.start(table_large, &[0], 0..10, &[worker(1)]);
        world.drive();
        assert_eq!(world.finished, [small, holder, large], "{policy}");
    }
}

#[test]
fn while_no_scan_can_be_helped_no_page_is_evicted() {
    for policy in PolicyKind::variants() {
        let (mut world, small) = World::new(policy.build(), 30, 2).with_table(12, &[10]);
        let large = world.add_table(&table(1, &[30]));
        world.start(small, &[0], 0..40, &[worker(20 * SPACE_TIMEOUT_NS)]);
        world.drive_until(50);
        world.start(large, &[0], 0..10, &[worker(1)]);
        world.start(small, &[0], 40..80, &[NEVER]);
        world.start(small, &[0], 80..120, &[NEVER]);
        world.drive_until(10 * SPACE_TIMEOUT_NS);
        assert!(world.chunks_read().len() <= 3, "{policy}: {:?}", world.chunks_read());
    }
}
