//! The life of a scan under any policy: it starts, is extended, pruned, cancelled, fails, and shares its chunks among
//! workers.

use std::collections::VecDeque;

use coscan_core::*;

use crate::scenarios::world;
use crate::world::{NEVER, World, table, worker};

#[test]
fn a_scan_that_has_got_everything_goes_on_when_it_needs_more() {
    for policy in PolicyKind::variants() {
        let (mut world, layout) = world(policy, 20).with_table(6, &[10]);
        let scan = world.start(layout, &[0], 0..20, &[worker(5), NEVER]);
        world.drive();
        assert_eq!(world.delivered_to(scan), [0, 1], "{policy}");
        world.extend(scan, &[1, 3, 5]);
        world.drive();
        let mut handed = world.delivered_to(scan);
        handed.sort_unstable();
        assert_eq!(handed, [0, 1, 3, 5], "{policy}");
        let report = world.manager.report(scan).unwrap();
        assert_eq!((report.chunks_needed, report.chunks_delivered), (4, 4), "{policy}");
    }
}

#[test]
fn two_scans_of_the_same_page_at_the_same_time_cause_one_read() {
    for policy in PolicyKind::variants() {
        let (mut world, table) = world(policy, 100).with_table(3, &[10]);
        world.start(table, &[0], 0..30, &[worker(5)]);
        world.start(table, &[0], 0..30, &[worker(5)]);
        world.drive();
        assert_eq!(world.chunks_read(), [0, 1, 2], "{policy}");
        assert_eq!(world.finished.len(), 2);
    }
}

#[test]
fn a_scan_of_no_columns_reads_nothing() {
    for policy in PolicyKind::variants() {
        let (mut world, table) = world(policy, 10).with_table(3, &[10]);
        let scan = world.start(table, &[], 0..30, &[worker(5)]);
        world.drive();
        assert_eq!(world.delivered_to(scan), [0, 1, 2], "{policy}");
        assert_eq!(world.pages_read(), [] as [u32; 0]);
    }
}

#[test]
fn a_scan_of_no_rows_finishes_at_once() {
    for policy in PolicyKind::variants() {
        let (mut world, table) = world(policy, 10).with_table(3, &[10]);
        let scan = world.start(table, &[0], 7..7, &[worker(5), worker(5)]);
        world.drive();
        let finish = |worker| Action::Finish { scan, worker: WorkerIndex(worker) };
        assert_eq!(world.actions, [finish(0), finish(1)]);
        assert_eq!((world.finished, world.now), (vec![scan], 0));
    }
}

#[test]
fn a_page_that_fails_fails_only_scans_that_need_it() {
    for policy in PolicyKind::variants() {
        let (mut world, table) = world(policy, 1_000).with_table(4, &[10, 10]);
        let page = world.page(table, PageIndex(5)); // Column 1 of chunk 2.
        world.failing.insert(page);
        let one_column = world.start(table, &[0], 0..40, &[worker(5)]);
        let both = world.start(table, &[0, 1], 0..40, &[worker(5), worker(5)]);
        let elsewhere = world.start(table, &[0, 1], 0..20, &[worker(5)]);
        world.drive();
        assert_eq!(world.failed, [both], "{policy}");
        assert_eq!(world.finished.len(), 2, "{policy}");
        assert!(world.finished.contains(&one_column) && world.finished.contains(&elsewhere));
    }
}

#[test]
fn a_cancelled_scan_gets_no_more_chunks_and_frees_its_pages() {
    for policy in PolicyKind::variants() {
        let (mut world, table) = world(policy, 20).with_table(4, &[10]);
        let holder = world.start(table, &[0], 0..20, &[worker(1_000_000), worker(1_000_000)]);
        world.drive_until(50);
        let other = world.start(table, &[0], 20..40, &[worker(5)]);
        world.drive_until(60);
        assert_eq!(world.delivered_to(other), [] as [u32; 0], "the pool is in use");
        world.cancel(holder);
        world.drive_until(200);
        assert_eq!(world.finished, [other], "{policy}");
    }
}

#[test]
fn a_failure_after_the_scan_was_cancelled_is_not_reported() {
    let (mut world, table) = world(PolicyKind::Normal, 100).with_table(1, &[10]);
    let scan = world.start(table, &[0], 0..10, &[worker(1)]);
    let manager = &mut world.manager;
    let Some(Action::Load { load, pages, .. }) = manager.poll_action() else { panic!() };
    manager.page_failed(Time(1), load, pages[0]);
    manager.cancel_scan(Time(1), scan);
    assert_eq!(manager.poll_action(), None);
}

#[test]
fn workers_share_the_chunks_of_a_scan_in_order() {
    for policy in PolicyKind::variants() {
        let (mut world, table) = world(policy, 40).with_table(8, &[10]);
        let workers = [worker(5), worker(70), worker(30)];
        let scan = world.try_start(table, &[0], vec![0..80], Order::InOrder, &workers).unwrap();
        // Another scan brings later chunks into the pool first.
        world.start(table, &[0], 60..80, &[worker(5)]);
        world.drive();
        assert_eq!(world.delivered_to(scan), [0, 1, 2, 3, 4, 5, 6, 7], "{policy}");
    }
}

#[test]
fn a_chunk_given_up_is_not_handed_out() {
    for policy in PolicyKind::variants() {
        let (mut world, table) = world(policy, 20).with_table(4, &[10]);
        let scan = world.start(table, &[0], 0..40, &[worker(50)]);
        world.drive_until(30);
        world.prune(scan, &[0, 1, 3]);
        world.drive();
        let report = world.ended[&scan].report;
        assert_eq!(report.chunks_delivered + report.chunks_pruned_dynamic, 4, "{policy}");
        assert!(report.chunks_pruned_dynamic >= 2);
    }
}

#[test]
fn a_chunk_being_read_is_not_broken_up_by_another_load() {
    for policy in PolicyKind::variants() {
        let (mut world, table) = World::new(policy.build(), 70, 2).with_table(4, &[10, 20]);
        world.start(table, &[0, 1], 0..40, &[worker(1)]);
        world.start(table, &[1], 20..40, &[worker(1)]);
        world.start(table, &[0], 30..40, &[worker(1)]);
        world.drive(); // The model checks that what a load has brought stays until the load is over.
        assert_eq!(world.finished.len(), 3, "{policy}");
    }
}

#[test]
fn a_failed_scan_gets_nothing_more_and_keeps_its_needs_until_they_are_pruned() {
    let orders = |policy| [(policy, Order::Any), (policy, Order::InOrder)];
    for (policy, order) in PolicyKind::variants().flat_map(orders) {
        let mut manager = ActiveBufferManager::new(Config::default(), policy.build());
        let (table, _) = manager.register_layout(&table(8, &[10]), DeviceId(0));
        let chunks = std::iter::once(ChunkIndex(0)..ChunkIndex(8)).collect();
        let groups = vec![GroupIndex(0)];
        let spec = ScanSpec {
            table,
            groups,
            chunks,
            order,
            workers: 2,
            weight: 1,
            pages: None,
            computation: None,
        };
        let scan = manager.start_scan(Time(0), &spec).unwrap();
        let workers = [0, 1].map(WorkerIndex);
        workers.iter().for_each(|&it| manager.request_chunk(Time(0), scan, it).unwrap());
        // Reads continue. Other decisions are returned.
        let mut reading = VecDeque::new();
        let settle = |manager: &mut ActiveBufferManager, reading: &mut VecDeque<_>| {
            let mut others = Vec::new();
            while let Some(action) = manager.poll_action() {
                match action {
                    Action::Load { load, pages, .. } => {
                        reading.extend(pages.into_iter().map(|page| (load, page)));
                    }
                    other => others.push(other),
                }
            }
            manager.audit().unwrap();
            others
        };
        assert_eq!(settle(&mut manager, &mut reading), [], "{policy}");
        let (load, page) = reading.pop_front().unwrap();
        manager.page_loaded(Time(1), load, page);
        let handed = settle(&mut manager, &mut reading);
        let [Action::Deliver { worker: busy, .. }] = handed[..] else { panic!("{handed:?}") };

        let (load, page) = reading.pop_front().unwrap();
        manager.page_failed(Time(2), load, page);
        assert_eq!(settle(&mut manager, &mut reading), [Action::Fail { scan, page }], "{policy}");
        assert!(!reading.is_empty());
        while let Some((load, page)) = reading.pop_front() {
            manager.page_failed(Time(3), load, page);
            assert_eq!(settle(&mut manager, &mut reading), [], "{policy}: it fails once");
        }
        let asked = manager.request_chunk(Time(4), scan, busy);
        assert_eq!(asked, Err(RequestError::Failed(scan)));
        assert_eq!(settle(&mut manager, &mut reading), []);
        assert!(reading.is_empty(), "{policy}: nothing is read for it");

        let needed: Vec<_> = manager.state().scan(scan).unwrap().needed().iter().collect();
        assert_eq!(needed.len(), 7);
        for step in needed.chunks(4) {
            manager.prune_scan(Time(5), scan, step.iter().copied());
            assert_eq!(settle(&mut manager, &mut reading), []);
        }
        assert!(manager.state().scan(scan).unwrap().needed().is_empty());
        assert_eq!(manager.report(scan).unwrap().chunks_pruned_dynamic, 0, "they were lost");
    }
}
