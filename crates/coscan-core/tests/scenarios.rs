//! Readable scenarios: what each policy should do in small worlds, most of them with pages of 10 bytes that take 10 ns
//! to read.

#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

mod world;

use coscan_core::log::RecordedManager;
use coscan_core::policy::{Relevance2007, Scores};
use coscan_core::*;
use world::{SPACE_TIMEOUT_NS, ScanRate, World, pace, table};

fn world(policy: PolicyKind, pool_bytes: u64) -> World {
    World::new(policy.build(), pool_bytes, 1)
}

/// The chunks read, in order.
fn loads(world: &World) -> Vec<u32> {
    values(world, "load", "", " chunk=")
}

/// The chunks handed to a scan, in order.
fn deliveries(world: &World, scan: ScanId) -> Vec<u32> {
    values(world, "deliver", &format!(" scan={scan} "), " chunk=")
}

/// The pages evicted, in order.
fn evictions(world: &World) -> Vec<u32> {
    values(world, "evict", "", ".p")
}

/// The pages read, in order.
fn pages_read(world: &World) -> Vec<u32> {
    let lists = world.log.iter().filter_map(|line| line.split_once("pages=[")?.1.split_once(']'));
    lists.flat_map(|(list, _)| list.split(", ").map(|page| page[1..].parse().unwrap())).collect()
}

/// What stands after `key` in the log's lines of an event that contain `with`.
fn values(world: &World, event: &str, with: &str, key: &str) -> Vec<u32> {
    let lines = world.log.iter().filter(|line| line.starts_with(event) && line.contains(with));
    let values = lines.map(|line| line.split_once(key).unwrap().1.split(' ').next().unwrap());
    values.map(|value| value.parse().unwrap()).collect()
}

/// Reads chunks into the pool for nobody in particular, and lets them be used.
fn warm(world: &mut World, table: TableId, groups: &[u32], rows: std::ops::Range<u64>) {
    let scan = world.start(table, groups, rows, &[pace(0)]);
    world.drive();
    assert!(world.finished.contains(&scan));
    world.log.clear();
}

/// A worker that never asks: its scan needs what it needs.
const NEVER: ScanRate =
    ScanRate { first_ns: u64::MAX, chunk_ns: 1, releases_early: false, stall: None };

mod any_policy {
    use super::*;

    #[test]
    fn a_scan_that_has_got_everything_goes_on_when_it_needs_more() {
        for policy in PolicyKind::variants() {
            let mut world = world(policy, 20);
            let layout = world.add_table(&table(6, &[10]));
            let scan = world.start(layout, &[0], 0..20, &[pace(5), NEVER]);
            world.drive();
            assert_eq!(deliveries(&world, scan), [0, 1], "{policy}");
            world.extend(scan, &[1, 3, 5]);
            world.drive();
            let mut handed = deliveries(&world, scan);
            handed.sort_unstable();
            assert_eq!(handed, [0, 1, 3, 5], "{policy}");
            let report = world.manager.report(scan).unwrap();
            assert_eq!((report.chunks_needed, report.chunks_delivered), (4, 4), "{policy}");
        }
    }

    #[test]
    fn two_scans_of_the_same_page_at_the_same_time_cause_one_read() {
        for policy in PolicyKind::variants() {
            let mut world = world(policy, 100);
            let table = world.add_table(&table(3, &[10]));
            world.start(table, &[0], 0..30, &[pace(5)]);
            world.start(table, &[0], 0..30, &[pace(5)]);
            world.drive();
            assert_eq!(loads(&world), [0, 1, 2], "{policy}");
            assert_eq!(world.finished.len(), 2);
        }
    }

    #[test]
    fn a_scan_of_no_columns_reads_nothing() {
        for policy in PolicyKind::variants() {
            let mut world = world(policy, 10);
            let table = world.add_table(&table(3, &[10]));
            let scan = world.start(table, &[], 0..30, &[pace(5)]);
            world.drive();
            assert_eq!(deliveries(&world, scan), [0, 1, 2], "{policy}");
            assert_eq!(pages_read(&world), [] as [u32; 0]);
        }
    }

    #[test]
    fn a_scan_of_no_rows_finishes_at_once() {
        for policy in PolicyKind::variants() {
            let mut world = world(policy, 10);
            let table = world.add_table(&table(3, &[10]));
            let scan = world.start(table, &[0], 7..7, &[pace(5), pace(5)]);
            world.drive();
            assert_eq!(world.log, ["finish at=0 scan=0 worker=0", "finish at=0 scan=0 worker=1"]);
            assert_eq!((world.finished, world.now), (vec![scan], 0));
        }
    }

    #[test]
    fn a_pool_smaller_than_a_chunk_is_refused_with_what_to_do() {
        let mut world = world(PolicyKind::Relevance, 29);
        let table = world.add_table(&table(2, &[10, 20]));
        let refused = world.try_start(table, &[0, 1], vec![0..20], Order::Any, &[pace(1)]);
        assert_eq!(
            refused.unwrap_err().to_string(),
            "the pool holds 29 bytes, but one chunk of this scan takes 30: give the pool at least \
             that much, or make chunks smaller"
        );
        world.start(table, &[1], 0..20, &[pace(1)]);
        world.set_pool_bytes(30);
        world.start(table, &[0, 1], 0..20, &[pace(1)]);
        world.drive();
        assert_eq!(world.finished.len(), 2);
    }

    #[test]
    fn other_commands_are_refused_with_what_to_do() {
        let mut world = world(PolicyKind::Normal, 100);
        let table = world.add_table(&table(2, &[10]));
        let refuse = |world: &mut World, table, group, workers: &[ScanRate]| {
            let started = world.try_start(table, &[group], vec![0..20], Order::Any, workers);
            started.unwrap_err().to_string()
        };
        let unknown = TableId(7);
        assert_eq!(refuse(&mut world, unknown, 0, &[pace(1)]), "table 7 is not registered");
        assert_eq!(refuse(&mut world, table, 3, &[pace(1)]), "the table has no column group 3");
        assert_eq!(refuse(&mut world, table, 0, &[]), "a scan needs at least one worker");
        let scan = world.start(table, &[0], 0..20, &[pace(1)]);
        let (now, manager) = (Time(0), &mut world.manager);
        let ask = |manager: &mut RecordedManager, scan, worker| {
            manager.request_chunk(now, scan, WorkerIndex(worker)).unwrap_err().to_string()
        };
        assert_eq!(ask(manager, ScanId(9), 0), "scan 9 does not run");
        assert_eq!(ask(manager, scan, 1), "scan 0 has no worker 1");
        assert_eq!(manager.request_chunk(now, scan, WorkerIndex(0)), Ok(()));
        assert_eq!(ask(manager, scan, 0), "worker 0 of scan 0 waits already");
        assert_eq!(
            manager.remove_table(now, table).unwrap_err().to_string(),
            "table 0 is in use: cancel its scans and wait for its loads first"
        );
    }

    #[test]
    fn a_page_that_fails_fails_only_scans_that_need_it() {
        for policy in PolicyKind::variants() {
            let mut world = world(policy, 1_000);
            let table = world.add_table(&table(4, &[10, 10]));
            let page = world.page(table, PageIndex(5)); // Column 1 of chunk 2.
            world.failing.insert(page);
            let narrow = world.start(table, &[0], 0..40, &[pace(5)]);
            let both = world.start(table, &[0, 1], 0..40, &[pace(5), pace(5)]);
            let elsewhere = world.start(table, &[0, 1], 0..20, &[pace(5)]);
            world.drive();
            assert_eq!(world.failed, [both], "{policy}");
            assert_eq!(world.finished.len(), 2, "{policy}");
            assert!(world.finished.contains(&narrow) && world.finished.contains(&elsewhere));
        }
    }

    #[test]
    fn a_cancelled_scan_gets_nothing_more_and_frees_what_it_used() {
        for policy in PolicyKind::variants() {
            let mut world = world(policy, 20);
            let table = world.add_table(&table(4, &[10]));
            let holder = world.start(table, &[0], 0..20, &[pace(1_000_000), pace(1_000_000)]);
            world.drive_until(50);
            let other = world.start(table, &[0], 20..40, &[pace(5)]);
            world.drive_until(60);
            assert_eq!(deliveries(&world, other), [] as [u32; 0], "the pool is in use");
            world.cancel(holder);
            world.drive_until(200);
            assert_eq!(world.finished, [other], "{policy}");
        }
    }

    #[test]
    fn a_failure_reported_after_the_scan_was_cancelled_is_not_told() {
        let mut world = world(PolicyKind::Normal, 100);
        let table = world.add_table(&table(1, &[10]));
        let scan = world.start(table, &[0], 0..10, &[pace(1)]);
        let manager = &mut world.manager;
        let Some(Action::Load { load, pages, .. }) = manager.poll_action() else { panic!() };
        manager.page_failed(Time(1), load, pages[0]);
        manager.cancel_scan(Time(1), scan);
        assert_eq!(manager.poll_action(), None);
    }

    #[test]
    fn workers_share_the_chunks_of_a_scan_in_order() {
        for policy in PolicyKind::variants() {
            let mut world = world(policy, 40);
            let table = world.add_table(&table(8, &[10]));
            let paces = [pace(5), pace(70), pace(30)];
            let scan = world.try_start(table, &[0], vec![0..80], Order::InOrder, &paces).unwrap();
            // Another scan brings later chunks into the pool first.
            world.start(table, &[0], 60..80, &[pace(5)]);
            world.drive();
            assert_eq!(deliveries(&world, scan), [0, 1, 2, 3, 4, 5, 6, 7], "{policy}");
        }
    }

    #[test]
    fn the_pool_shrinks_to_what_is_possible_and_grows_again() {
        for policy in PolicyKind::variants() {
            let mut world = world(policy, 80);
            let table = world.add_table(&table(8, &[10]));
            world.start(table, &[0], 0..80, &[pace(100)]);
            world.drive_until(90);
            assert_eq!(world.set_pool_bytes(0), 10, "{policy}: the chunk in use stays");
            assert_eq!(world.manager.state().held_bytes(), 10);
            world.drive_until(300);
            assert_eq!(world.set_pool_bytes(20), 20);
            world.drive();
            assert_eq!(world.finished.len(), 1);
            assert_eq!(world.manager.state().held_bytes(), 20);
            world.evict_unwanted();
            assert_eq!(world.manager.state().held_bytes(), 0);
            world.remove_table(table).unwrap();
        }
    }

    #[test]
    fn what_was_not_used_for_a_whole_interval_goes_unless_a_scan_will_come_to_it() {
        for policy in PolicyKind::variants() {
            let mut world = world(policy, 80);
            let table = world.add_table(&table(8, &[10]));
            let held_bytes = |world: &World| world.manager.state().held_bytes();
            world.start(table, &[0], 0..60, &[pace(100)]);
            world.drive();
            world.evict_idle();
            assert_eq!(held_bytes(&world), 60, "{policy}: used since the beginning");
            world.start(table, &[0], 0..20, &[pace(100)]);
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
        let mut world = world(PolicyKind::Relevance, 80);
        let table = world.add_table(&table(8, &[10, 20]));
        let scan = world.start(table, &[1], 0..80, &[NEVER]);
        world.start(table, &[0], 0..80, &[NEVER]);
        assert_eq!(world.set_pool_bytes(5), 20);
        world.cancel(scan);
        world.drive();
        assert_eq!(world.set_pool_bytes(5), 10);
    }

    #[test]
    fn a_chunk_given_up_is_not_handed_out() {
        for policy in PolicyKind::variants() {
            let mut world = world(policy, 20);
            let table = world.add_table(&table(4, &[10]));
            let scan = world.start(table, &[0], 0..40, &[pace(50)]);
            world.drive_until(30);
            world.prune(scan, &[0, 1, 3]);
            world.drive();
            let report = world.ended[&scan].report;
            assert_eq!(report.chunks_delivered + report.chunks_pruned_dynamic, 4, "{policy}");
            assert!(report.chunks_pruned_dynamic >= 2);
        }
    }

    #[test]
    fn a_scan_whose_neighbour_stopped_consuming_goes_on_after_its_patience() {
        for policy in PolicyKind::variants() {
            let mut world = world(policy, 20);
            let table = world.add_table(&table(6, &[10]));
            let probe =
                world.start(table, &[0], 0..60, &[ScanRate { first_ns: u64::MAX, ..pace(5) }]);
            let build = world.start(table, &[0], 20..60, &[pace(5)]);
            // A third one is busy all the time, so that something might still free room.
            world.start(table, &[], 0..10, &[pace(9 * SPACE_TIMEOUT_NS)]);
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
            let mut world = World::new(policy.build(), 60, 2);
            let large = world.add_table(&table(1, &[30]));
            let small = world.add_table(&table(100, &[10]));
            for newcomer in 0..6 {
                world.start(small, &[0], newcomer * 10..newcomer * 10 + 10, &[pace(300)]);
                world.drive_until(newcomer * 45);
            }
            let large = world.start(large, &[0], 0..10, &[pace(10)]);
            for newcomer in 6..600 {
                let rows = newcomer % 100 * 10;
                world.start(small, &[0], rows..rows + 10, &[pace(300)]);
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
    fn whoever_holds_pages_until_another_scan_ends_does_not_block_it_through_a_third() {
        // The holder keeps 10 bytes until `small` ends; `large` needs all 30 and waits longer than `small`.
        for policy in PolicyKind::variants() {
            let mut world = World::new(policy.build(), 30, 1);
            let table_small = world.add_table(&table(4, &[10]));
            let table_large = world.add_table(&table(1, &[30]));
            let late = ScanRate { first_ns: 2 * SPACE_TIMEOUT_NS, ..pace(10) };
            let small = world.start(table_small, &[0], 10..40, &[late]);
            let stall = Some((1, small));
            let holder = world.start(table_small, &[0], 0..10, &[ScanRate { stall, ..pace(1) }]);
            world.drive_until(100);
            let large = world.start(table_large, &[0], 0..10, &[pace(1)]);
            world.drive();
            assert_eq!(world.finished, [small, holder, large], "{policy}");
        }
    }

    #[test]
    fn while_nobody_can_be_helped_nothing_is_evicted_in_vain() {
        for policy in PolicyKind::variants() {
            let mut world = World::new(policy.build(), 30, 2);
            let small = world.add_table(&table(12, &[10]));
            let large = world.add_table(&table(1, &[30]));
            world.start(small, &[0], 0..40, &[pace(20 * SPACE_TIMEOUT_NS)]);
            world.drive_until(50);
            world.start(large, &[0], 0..10, &[pace(1)]);
            world.start(small, &[0], 40..80, &[NEVER]);
            world.start(small, &[0], 80..120, &[NEVER]);
            world.drive_until(10 * SPACE_TIMEOUT_NS);
            assert!(loads(&world).len() <= 3, "{policy}: {:?}", loads(&world));
        }
    }

    #[test]
    fn a_chunk_being_read_is_not_broken_up_by_another_load() {
        for policy in PolicyKind::variants() {
            let mut world = World::new(policy.build(), 70, 2);
            let table = world.add_table(&table(4, &[10, 20]));
            world.start(table, &[0, 1], 0..40, &[pace(1)]);
            world.start(table, &[1], 20..40, &[pace(1)]);
            world.start(table, &[0], 30..40, &[pace(1)]);
            world.drive(); // The model checks that what a load has brought stays until the load is over.
            assert_eq!(world.finished.len(), 3, "{policy}");
        }
    }
}

mod normal {
    use super::*;

    #[test]
    fn reads_one_chunk_ahead_and_no_more() {
        let mut world = world(PolicyKind::Normal, 100);
        let table = world.add_table(&table(5, &[10]));
        let scan = world.start(table, &[0], 0..50, &[pace(1_000)]);
        world.drive_until(900);
        assert_eq!(deliveries(&world, scan), [0]);
        assert_eq!(loads(&world), [0, 1]);
    }

    #[test]
    fn evicts_the_least_recently_used_first() {
        let mut world = world(PolicyKind::Normal, 30);
        let table = world.add_table(&table(6, &[10]));
        for chunk in [0, 1, 2, 0] {
            world.start(table, &[0], chunk * 10..chunk * 10 + 10, &[pace(1)]);
            world.drive();
        }
        assert_eq!(evictions(&world), [] as [u32; 0]);
        world.start(table, &[0], 30..50, &[pace(1)]);
        world.drive();
        assert_eq!(evictions(&world), [1, 2], "chunk 0 was used again");
    }

    #[test]
    fn scans_apart_read_the_table_twice() {
        let mut world = world(PolicyKind::Normal, 30);
        let table = world.add_table(&table(10, &[10]));
        world.start(table, &[0], 0..100, &[pace(25)]);
        world.drive_until(160);
        world.start(table, &[0], 0..100, &[pace(25)]);
        world.drive();
        assert_eq!(loads(&world).len(), 20);
    }

    #[test]
    fn reading_ahead_for_one_scan_does_not_evict_what_was_read_ahead_for_another() {
        let mut world = world(PolicyKind::Normal, 30);
        let table = world.add_table(&table(8, &[10]));
        world.start(table, &[0], 0..40, &[pace(5_000)]);
        world.start(table, &[0], 40..80, &[pace(5_000)]);
        world.drive_until(4_000);
        assert_eq!(loads(&world), [0, 4, 1], "two in use, one ahead, no room for another");
    }
}

mod attach {
    use super::*;

    #[test]
    fn joins_the_scan_with_the_largest_overlap_wraps_and_ends_where_it_began() {
        let mut world = world(PolicyKind::Attach, 40);
        let table = world.add_table(&table(10, &[10, 10]));
        // Both are busy with their first chunks; the second shares more chunks and columns with the newcomer.
        world.start(table, &[0], 0..60, &[pace(1_000)]);
        world.start(table, &[0, 1], 40..100, &[pace(1_000)]);
        world.drive_until(500);
        let scan = world.start(table, &[0, 1], 0..100, &[pace(10)]);
        world.set_pool_bytes(1_000);
        world.drive();
        assert_eq!(deliveries(&world, scan), [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]);
    }

    #[test]
    fn starts_at_the_front_when_nothing_is_shared() {
        let mut world = world(PolicyKind::Attach, 100);
        let table = world.add_table(&table(6, &[10, 10]));
        world.start(table, &[0], 0..60, &[pace(100)]);
        world.drive_until(250);
        let scan = world.start(table, &[1], 0..60, &[pace(10)]);
        world.drive();
        assert_eq!(deliveries(&world, scan), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn two_scans_of_the_same_pace_read_what_is_left_once() {
        let mut world = world(PolicyKind::Attach, 30);
        let table = world.add_table(&table(10, &[10]));
        world.start(table, &[0], 0..100, &[pace(25)]);
        world.drive_until(110);
        world.start(table, &[0], 0..100, &[pace(25)]);
        world.drive();
        let mut read = loads(&world);
        assert!(read.len() <= 15, "{read:?}");
        read.sort_unstable();
        read.dedup();
        assert_eq!(read.len(), 10);
    }
}

mod elevator {
    use super::*;

    #[test]
    fn one_cursor_takes_the_columns_that_anyone_wants_there() {
        let mut world = world(PolicyKind::Elevator, 1_000);
        let table = world.add_table(&table(4, &[10, 10, 10]));
        world.start(table, &[0], 0..40, &[pace(1)]);
        world.start(table, &[1], 20..40, &[pace(1)]);
        world.drive();
        assert_eq!(loads(&world), [0, 1, 2, 3]);
        assert_eq!(pages_read(&world), [0, 3, 6, 7, 9, 10]);
    }

    #[test]
    fn the_cursor_goes_on_from_where_it_is_and_wraps() {
        let mut world = world(PolicyKind::Elevator, 20);
        let table = world.add_table(&table(6, &[10]));
        world.start(table, &[0], 0..60, &[pace(10)]);
        world.drive_until(35);
        world.start(table, &[0], 0..60, &[pace(10)]);
        world.drive();
        let read = loads(&world);
        let wraps = read.windows(2).filter(|two| two[1] < two[0]).count();
        assert_eq!((&read[..6], wraps), (&[0, 1, 2, 3, 4, 5][..], 1), "{read:?}");
    }

    #[test]
    fn the_cursor_does_not_jump_to_where_there_would_be_room() {
        let mut world = world(PolicyKind::Elevator, 40);
        let mut layout = Layout::builder(1);
        for bytes in [10, 30, 30, 10] {
            let page = layout.add_page(GroupIndex(0), bytes);
            layout.add_chunk(10, vec![vec![page]]);
        }
        let table = world.add_table(&std::sync::Arc::new(layout.build()));
        world.start(table, &[0], 0..20, &[pace(500)]);
        world.start(table, &[0], 20..40, &[pace(1)]);
        world.start(table, &[0], 30..40, &[pace(1)]);
        world.drive();
        assert_eq!(loads(&world), [0, 1, 2, 3], "chunk 3 would have fitted before chunk 2");
    }

    #[test]
    fn the_fast_scan_waits_for_the_slow_one() {
        let mut world = world(PolicyKind::Elevator, 30);
        let table = world.add_table(&table(10, &[10]));
        let slow = world.start(table, &[0], 0..100, &[pace(1_000)]);
        let fast = world.start(table, &[0], 0..100, &[pace(1)]);
        world.drive();
        assert_eq!(loads(&world), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "each chunk once");
        assert_eq!(world.finished, [fast, slow]);
        let fast_ns = world.ended[&fast].at;
        assert!(fast_ns > 6_000, "held up by the slow one, done after {fast_ns} ns");
    }

    #[test]
    fn a_page_leaves_only_when_nobody_wants_it() {
        let mut world = world(PolicyKind::Elevator, 30);
        let table = world.add_table(&table(6, &[10]));
        let slow = world.start(table, &[0], 0..60, &[pace(900)]);
        world.start(table, &[0], 0..60, &[pace(1)]);
        world.drive_until(800);
        assert_eq!(evictions(&world), [] as [u32; 0], "the slow scan still wants them");
        world.cancel(slow);
        world.drive();
        assert_eq!(loads(&world), [0, 1, 2, 3, 4, 5]);
        assert_eq!(evictions(&world), [1, 2, 0], "the slow scan used chunk 0 until it ended");
    }

    #[test]
    fn columns_of_several_scans_that_do_not_fit_together_come_one_after_the_other() {
        let mut world = world(PolicyKind::Elevator, 10);
        let table = world.add_table(&table(2, &[10, 10]));
        world.start(table, &[0], 0..20, &[pace(1)]);
        world.start(table, &[1], 0..20, &[pace(1)]);
        world.drive();
        assert_eq!(world.finished.len(), 2);
        assert_eq!(loads(&world), [0, 0, 1, 1], "the cursor moves on when all is read");
    }
}

mod relevance {
    use super::*;

    fn build(scores: Scores, pool_bytes: u64) -> World {
        World::new(Box::new(Relevance2007::with_scores(scores)), pool_bytes, 1)
    }

    #[test]
    fn two_queries_of_one_table_read_shared_chunks_once() {
        // CS07 §1: a scan of all and a scan of a part, the second one starting later, at different speeds.
        let mut world = world(PolicyKind::Relevance, 50);
        let table = world.add_table(&table(10, &[10]));
        world.start(table, &[0], 0..100, &[pace(40)]);
        world.drive_until(100);
        world.start(table, &[0], 20..80, &[pace(40)]);
        world.drive();
        let mut read = loads(&world);
        read.sort_unstable();
        let count = read.len();
        read.dedup();
        assert_eq!(read.len(), 10);
        assert!(count <= 12, "{count} reads of 10 chunks; normal needs more");
    }

    #[test]
    fn a_short_scan_cuts_the_line() {
        let mut world = world(PolicyKind::Relevance, 60);
        let table = world.add_table(&table(20, &[10]));
        world.start(table, &[0], 0..150, &[pace(1)]);
        world.drive_until(35);
        let short = world.start(table, &[0], 180..190, &[pace(1)]);
        world.drive();
        assert_eq!(world.finished[0], short);
        let waited_ns = world.ended[&short].at - 35;
        assert!(waited_ns <= 20, "{waited_ns} ns: what is being read, its own chunk, no more");
    }

    #[test]
    fn a_long_scan_is_not_starved_by_a_stream_of_short_ones() {
        // A short scan comes whenever one has been read for, so the disk always has a shorter one to serve.
        let mut world = world(PolicyKind::Relevance, 1_000);
        let long = world.add_table(&table(5, &[10]));
        let short = world.add_table(&table(1_000, &[10]));
        world.start(short, &[0], 0..10, &[pace(1)]);
        world.settle();
        let long = world.start(long, &[0], 0..50, &[pace(1)]);
        for newcomer in 1..1_000 {
            world.start(short, &[0], newcomer * 10..newcomer * 10 + 10, &[pace(1)]);
            world.drive_until(newcomer * 10);
            if world.finished.contains(&long) {
                break;
            }
        }
        assert!(world.finished.contains(&long));
    }

    #[test]
    fn row_scores_count_starved_scans_before_others() {
        // Chunk 3 is wanted by two other starved scans, chunk 1 by one, chunk 2 by one that has enough.
        let mut world = build(Scores::Row, 1_000);
        let table = world.add_table(&table(12, &[10]));
        // A trigger with the fewest needed chunks goes first (queryRelevance).
        world.start(table, &[0], 10..40, &[pace(1)]);
        world.start(table, &[0], 10..20, &[NEVER]);
        world.start(table, &[0], 30..120, &[NEVER]);
        world.start(table, &[0], 30..110, &[NEVER]);
        world.settle();
        // The scan of chunk 1 alone needs least: its chunk is read first, for whoever else wants it too.
        assert_eq!(loads(&world), [1]);
        world.drive_until(11);
        // Then the scan of chunks 1 to 3 chooses: L(2) = 1·Q + 1, L(3) = 3·Q + 3.
        assert_eq!(loads(&world), [1, 3]);
    }

    #[test]
    fn column_scores_weigh_scans_against_bytes() {
        // L / P: chunk 0 serves the trigger alone: 1 / 10. Chunk 1 serves two, but with a column of 100 bytes more:
        // 2 / 110. Chunk 2 serves two that read the same: 2 / 10.
        let mut world = build(Scores::Column, 1_000);
        let table = world.add_table(&table(3, &[10, 100]));
        world.start(table, &[0], 0..30, &[pace(1)]);
        world.start(table, &[0, 1], 10..20, &[NEVER]);
        world.start(table, &[0], 20..30, &[NEVER]);
        world.drive_until(10_000);
        let for_trigger: Vec<_> = world
            .log
            .iter()
            .filter(|line| line.contains(" load="))
            .map(|line| line.split_once(" scan=").unwrap().1)
            .collect();
        assert_eq!(
            for_trigger,
            [
                // Scans 1 and 2 need one chunk each, scan 0 needs three: the oldest of the shortest goes first.
                "1 table=0 chunk=1 pages=[p2, p3]",
                "2 table=0 chunk=2 pages=[p4]",
                "0 table=0 chunk=0 pages=[p0]",
            ]
        );
    }

    #[test]
    fn column_scores_choose_the_cheap_chunk_that_serves_many() {
        let mut world = build(Scores::Column, 1_000);
        let table = world.add_table(&table(5, &[10, 100]));
        world.start(table, &[0], 0..30, &[pace(100)]);
        world.start(table, &[0, 1], 10..50, &[NEVER]);
        world.start(table, &[0], 20..60, &[NEVER]);
        world.settle();
        // Scores for scan 0: chunk 0: 1 / 10, chunk 1: 2 / 110, chunk 2: 3 / 110.
        assert_eq!(loads(&world), [0]);
    }

    #[test]
    fn row_scores_keep_what_almost_starved_scans_want() {
        let mut world = build(Scores::Row, 40);
        let table = world.add_table(&table(7, &[10]));
        warm(&mut world, table, &[0], 0..40);
        let start = |world: &mut World, rows: &[std::ops::Range<u64>]| {
            world.try_start(table, &[0], rows.to_vec(), Order::Any, &[NEVER]).unwrap();
        };
        start(&mut world, &[10..40]); // Has three: enough.
        start(&mut world, &[0..20, 30..40]); // Has three: enough.
        start(&mut world, &[0..10, 30..40]); // Has two: at the border of starvation.
        // Keep: chunk 0: 1·Q + 2, chunk 1: 2, chunk 2: 1, chunk 3: 1·Q + 3.
        world.start(table, &[0], 40..70, &[pace(1)]);
        world.drive_until(500);
        assert_eq!(evictions(&world), [2, 4, 5], "2 for the first, then its own, used");
    }

    #[test]
    fn column_scores_keep_what_serves_most_scans_per_byte() {
        let mut world = build(Scores::Column, 440);
        let table = world.add_table(&table(5, &[10, 100]));
        warm(&mut world, table, &[0, 1], 0..40);
        // All at the border of starvation. Keep: chunks 0 and 1: 1 / 110, chunks 2 and 3: 2 / 110.
        world.start(table, &[0, 1], 0..20, &[NEVER]);
        world.start(table, &[0, 1], 20..40, &[NEVER]);
        world.start(table, &[0, 1], 20..40, &[NEVER]);
        world.start(table, &[0, 1], 40..50, &[pace(1)]);
        world.drive_until(500);
        assert_eq!(evictions(&world), [0, 1], "both columns of chunk 0");
    }

    #[test]
    fn columns_that_nobody_needs_go_before_chunks_that_somebody_needs() {
        let mut world = build(Scores::Column, 40);
        let table = world.add_table(&table(3, &[10, 10]));
        warm(&mut world, table, &[0, 1], 0..20);
        world.start(table, &[0], 0..20, &[NEVER]);
        world.start(table, &[0, 1], 20..30, &[pace(1)]);
        world.drive_until(500);
        assert_eq!(evictions(&world), [1, 3]);
    }

    #[test]
    fn what_a_starved_scan_could_use_stays() {
        let mut world = world(PolicyKind::Relevance, 20);
        let table = world.add_table(&table(8, &[10]));
        warm(&mut world, table, &[0], 0..20);
        world.start(table, &[0], 0..10, &[NEVER]);
        world.start(table, &[0], 20..80, &[pace(30)]);
        world.drive_until(5_000);
        assert_eq!(evictions(&world), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn the_scan_we_load_for_is_not_robbed() {
        let mut world = build(Scores::Column, 40);
        let table = world.add_table(&table(4, &[10, 10]));
        warm(&mut world, table, &[0], 0..40);
        world.start(table, &[0], 20..40, &[NEVER]);
        world.start(table, &[0, 1], 0..20, &[pace(1)]);
        world.drive_until(world.now);
        // Column 0 of chunk 1 has the score of column 0 of chunks 2 and 3 and comes before them, but it is its own.
        assert_eq!(evictions(&world), [4]);
    }

    #[test]
    fn a_page_of_more_chunks_than_a_choice_looks_at_goes_when_somebody_waits_for_room() {
        for policy in [PolicyKind::Relevance, PolicyKind::Relevance2007, PolicyKind::Relevance2004]
        {
            let mut world = world(policy, 100);
            let mut builder = Layout::builder(1);
            let page = builder.add_page(GroupIndex(0), 100);
            (0..300).for_each(|_| {
                builder.add_chunk(10, vec![vec![page]]);
            });
            let shared = world.add_table(&std::sync::Arc::new(builder.build()));
            warm(&mut world, shared, &[0], 0..10);
            for end in 1..=300 {
                world.start(shared, &[0], 0..10 * end, &[NEVER]);
            }
            let other = world.add_table(&table(1, &[100]));
            let waits = world.start(other, &[0], 0..10, &[pace(1)]);
            world.drive_until(world.now + 100 * SPACE_TIMEOUT_NS);
            assert!(world.finished.contains(&waits), "{policy}");
        }
    }

    #[test]
    fn small_columns_are_read_first() {
        let mut world = world(PolicyKind::Relevance, 1_000);
        let table = world.add_table(&table(1, &[300, 20, 100]));
        world.start(table, &[0, 1, 2], 0..10, &[pace(1)]);
        world.drive();
        assert_eq!(pages_read(&world), [1, 2, 0]);
    }

    #[test]
    fn a_scan_of_few_columns_wakes_early() {
        let mut world = world(PolicyKind::Relevance, 1_000);
        let table = world.add_table(&table(1, &[300, 20]));
        world.start(table, &[0, 1], 0..10, &[pace(1)]);
        let few = world.start(table, &[1], 0..10, &[pace(1)]);
        world.drive();
        assert_eq!(world.ended[&few].at, 21, "20 ns for its column, 1 ns for its work");
    }

    #[test]
    fn what_the_scan_itself_needs_is_not_evicted_for_it() {
        let mut world = world(PolicyKind::Relevance, 30);
        let table = world.add_table(&table(6, &[10]));
        let scan = world.start(table, &[0], 0..60, &[pace(1)]);
        world.drive();
        assert_eq!(deliveries(&world, scan).len(), 6);
        assert_eq!(loads(&world), [0, 1, 2, 3, 4, 5], "nothing read twice");
    }

    #[test]
    fn a_chunk_that_helps_nobody_else_is_still_chosen() {
        // Slip 4 in docs/papers.md: scores start below zero, not at zero. The scan is not interested in what others want, has no
        // columns in common with them, and its delivery score is negative.
        for scores in [Scores::Row, Scores::Column] {
            let mut world = build(scores, 1_000);
            let table = world.add_table(&table(4, &[10, 0]));
            let lonely = world.start(table, &[1], 30..40, &[pace(1)]);
            world.start(table, &[0], 0..20, &[pace(1)]);
            world.drive();
            assert!(world.finished.contains(&lonely), "{scores:?}");
        }
    }

    #[test]
    fn what_few_others_want_is_handed_out_first() {
        // Row: 2 scans want chunk 0, 3 chunk 1, 1 chunk 2.
        let mut world = build(Scores::Row, 1_000);
        let table = world.add_table(&table(3, &[10]));
        warm(&mut world, table, &[0], 0..30);
        world.start(table, &[0], 0..20, &[NEVER]);
        world.start(table, &[0], 10..20, &[NEVER]);
        let scan = world.start(table, &[0], 0..30, &[pace(1)]);
        world.drive_until(1_000);
        assert_eq!(deliveries(&world, scan), [2, 0, 1]);
    }

    #[test]
    fn what_frees_most_per_scan_is_handed_out_first() {
        // Column: P / U is 10 / 1 for chunk 0, (10 + 100) / 2 for chunk 1, 10 / 2 for chunk 2.
        let mut world = build(Scores::Column, 1_000);
        let table = world.add_table(&table(3, &[10, 100]));
        warm(&mut world, table, &[0, 1], 0..30);
        world.start(table, &[0, 1], 10..20, &[NEVER]);
        world.start(table, &[0], 20..30, &[NEVER]);
        let scan = world.start(table, &[0], 0..30, &[pace(1)]);
        world.drive_until(1_000);
        assert_eq!(deliveries(&world, scan), [1, 0, 2]);
    }

    #[test]
    fn decoded_chunks_are_handed_out_first() {
        let mut world = world(PolicyKind::Relevance, 1_000);
        let table = world.add_table(&table(3, &[10, 10]));
        warm(&mut world, table, &[0, 1], 0..30);
        let scan = world.start(table, &[0, 1], 0..30, &[pace(1)]);
        for (chunk, group) in [(1, 0), (2, 0), (2, 1)] {
            world.manager.slice_decoded(table, ChunkIndex(chunk), GroupIndex(group));
        }
        world.drive();
        assert_eq!(deliveries(&world, scan), [2, 1, 0]);
    }

    #[test]
    fn scans_that_read_ahead_do_not_evict_what_each_other_read_ahead() {
        for policy in [PolicyKind::Relevance, PolicyKind::Attach, PolicyKind::Elevator] {
            let mut world = world(policy, 30);
            let table = world.add_table(&table(8, &[10]));
            world.start(table, &[0], 0..40, &[pace(5_000)]);
            world.start(table, &[0], 40..80, &[pace(5_000)]);
            world.drive_until(4_000);
            assert_eq!(loads(&world).len(), 3, "{policy}: {:?}", loads(&world));
        }
    }

    #[test]
    fn in_order_the_next_chunk_is_read_next_whatever_others_want() {
        let mut world = world(PolicyKind::Relevance, 100);
        let table = world.add_table(&table(4, &[10]));
        world.try_start(table, &[0], vec![0..20], Order::InOrder, &[pace(1)]).unwrap();
        world.start(table, &[0], 10..40, &[NEVER]);
        world.settle();
        assert_eq!(loads(&world), [0]);
    }
}

mod processors {
    use super::*;

    /// A world whose pool holds all that is read, and in which one worker may be at work.
    fn one_worker() -> (World, TableId) {
        let mut world = World::with_workers(PolicyKind::Relevance.build(), 1000, 1, 1);
        let table = world.add_table(&table(6, &[10]));
        warm(&mut world, table, &[0], 0..60);
        (world, table)
    }

    #[test]
    fn no_more_workers_are_at_work_than_may_be() {
        for (active_workers_max, delivered) in [(1, 1), (2, 2), (9, 4)] {
            let policy = PolicyKind::Relevance.build();
            let mut world = World::with_workers(policy, 1000, 1, active_workers_max);
            let table = world.add_table(&table(6, &[10]));
            warm(&mut world, table, &[0], 0..60);
            let scans: Vec<_> =
                (0..4).map(|_| world.start(table, &[0], 0..60, &[pace(100)])).collect();
            world.drive_until(world.now + 50);
            let count: usize = scans.iter().map(|&scan| deliveries(&world, scan).len()).sum();
            assert_eq!(count, delivered);
            world.drive();
            assert_eq!(world.finished.len(), 5);
        }
    }

    #[test]
    fn where_all_have_waited_too_long_twice_as_many_are_at_work_and_no_more() {
        let mut world = World::with_workers(PolicyKind::Relevance.build(), 1000, 1, 1);
        let table = world.add_table(&table(6, &[10]));
        warm(&mut world, table, &[0], 0..60);
        let scans: Vec<_> = (0..20)
            .map(|_| world.start(table, &[0], 0..60, &[pace(SPACE_TIMEOUT_NS / 2)]))
            .collect();
        let mut most = 0;
        while world.step() {
            most = most.max(world.manager.state().active_workers());
        }
        assert_eq!(most, 2);
        assert!(scans.iter().all(|scan| world.finished.contains(scan)));
    }

    #[test]
    fn who_can_use_what_is_decoded_goes_first() {
        let (mut world, table) = one_worker();
        let busy = world.start(table, &[0], 50..60, &[pace(100)]);
        world.drive_until(world.now + 10);
        let early = world.start(table, &[0], 0..20, &[pace(5)]);
        let late = world.start(table, &[0], 20..60, &[pace(5)]);
        world.manager.slice_decoded(table, ChunkIndex(4), GroupIndex(0));
        world.drive_until(world.now + 50);
        assert!(deliveries(&world, early).is_empty() && deliveries(&world, late).is_empty());
        world.drive();
        assert_eq!(world.finished[1], busy);
        let first = world
            .log
            .iter()
            .find(|line| line.contains("deliver") && !line.contains(&format!("scan={busy} ")));
        assert!(first.unwrap().contains(&format!("scan={late} ")), "{first:?}");
        assert_eq!(deliveries(&world, late)[0], 4);
    }

    #[test]
    fn of_equals_the_scan_with_least_left_goes_first() {
        let (mut world, table) = one_worker();
        world.start(table, &[0], 50..60, &[pace(100)]);
        world.drive_until(world.now + 10);
        let long = world.start(table, &[0], 0..50, &[pace(5)]);
        let short = world.start(table, &[0], 0..10, &[pace(5)]);
        world.drive();
        assert!(
            world.finished.iter().position(|&s| s == short)
                < world.finished.iter().position(|&s| s == long)
        );
    }

    /// Which of two scans ends first that begin while a third one keeps the only processor busy.
    fn first_of(
        world: &mut World,
        table: TableId,
        paces: [ScanRate; 2],
        weights: [u32; 2],
    ) -> usize {
        world.start(table, &[0], 50..60, &[pace(100)]);
        world.drive_until(world.now + 10);
        let scans = [0, 1].map(|which| {
            world.weight = weights[which];
            world.start(table, &[0], 0..50, &[paces[which]])
        });
        world.drive();
        let at = |scan| world.finished.iter().position(|&finished| finished == scan);
        usize::from(at(scans[1]) < at(scans[0]))
    }

    #[test]
    fn of_equals_the_scan_of_more_weight_goes_first() {
        for (weights, first) in [([1, 1], 0), ([1, 3], 1), ([3, 1], 0)] {
            let (mut world, table) = one_worker();
            assert_eq!(first_of(&mut world, table, [pace(5); 2], weights), first, "{weights:?}");
        }
    }

    #[test]
    fn of_equals_the_faster_scan_ends_first() {
        for (paces, first) in [([5, 50], 0), ([50, 5], 1)] {
            let (mut world, table) = one_worker();
            assert_eq!(first_of(&mut world, table, paces.map(pace), [1, 1]), first, "{paces:?}");
        }
    }

    #[test]
    fn the_scan_of_more_weight_is_read_for_first() {
        for (weight, first) in [(1, 0), (4, 1)] {
            let mut world = world(PolicyKind::Relevance, 1_000);
            let (short, long) = (table(3, &[10]), table(6, &[10]));
            let (short, long) = (world.add_table(&short), world.add_table(&long));
            let one = world.start(short, &[0], 0..30, &[pace(1)]);
            world.weight = weight;
            let other = world.start(long, &[0], 0..60, &[pace(1)]);
            world.drive();
            assert_eq!(world.finished[0], [one, other][first], "weight {weight}");
        }
    }

    #[test]
    fn a_paused_worker_is_not_at_work() {
        let (mut world, table) = one_worker();
        let paused = world.start(table, &[0], 0..10, &[pace(1_000 * SPACE_TIMEOUT_NS)]);
        world.drive_until(world.now + 10);
        let other = world.start(table, &[0], 0..10, &[pace(5)]);
        world.drive_until(world.now + 10);
        assert!(deliveries(&world, other).is_empty());
        world.manager.pause_worker(Time(world.now), paused, WorkerIndex(0));
        world.settle();
        assert_eq!(deliveries(&world, other), [0]);
    }

    #[test]
    fn nobody_is_held_back_longer_than_the_patience() {
        let (mut world, table) = one_worker();
        world.start(table, &[0], 0..10, &[pace(1_000 * SPACE_TIMEOUT_NS)]);
        world.drive_until(world.now + 10);
        let other = world.start(table, &[0], 0..10, &[pace(5)]);
        world.drive_until(world.now + SPACE_TIMEOUT_NS / 2);
        assert!(deliveries(&world, other).is_empty());
        world.drive_until(world.now + SPACE_TIMEOUT_NS);
        assert_eq!(deliveries(&world, other), [0]);
    }
}
