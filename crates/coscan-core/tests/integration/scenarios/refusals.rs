//! Commands that are refused, and their error messages.

use coscan_core::log::RecordedManager;
use coscan_core::*;

use crate::scenarios::world;
use crate::world::{WorkerProfile, World, worker};

#[test]
fn a_pool_smaller_than_a_chunk_is_refused_with_what_to_do() {
    let (mut world, table) = world(PolicyKind::Relevance, 29).with_table(2, &[10, 20]);
    let refused = world.try_start(table, &[0, 1], vec![0..20], Order::Any, &[worker(1)]);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "the pool holds 29 bytes, but one chunk of this scan takes 30: give the pool at least \
         that much, or make chunks smaller"
    );
    world.start(table, &[1], 0..20, &[worker(1)]);
    world.set_pool_bytes(30);
    world.start(table, &[0, 1], 0..20, &[worker(1)]);
    world.drive();
    assert_eq!(world.finished.len(), 2);
}

#[test]
fn other_commands_are_refused_with_what_to_do() {
    let (mut world, table) = world(PolicyKind::Normal, 100).with_table(2, &[10]);
    let refuse = |world: &mut World, table, group, workers: &[WorkerProfile]| {
        let started = world.try_start(table, &[group], vec![0..20], Order::Any, workers);
        started.unwrap_err().to_string()
    };
    let unknown = TableId(7);
    assert_eq!(refuse(&mut world, unknown, 0, &[worker(1)]), "table 7 is not registered");
    assert_eq!(refuse(&mut world, table, 3, &[worker(1)]), "the table has no column group 3");
    assert_eq!(refuse(&mut world, table, 0, &[]), "a scan needs at least one worker");
    let scan = world.start(table, &[0], 0..20, &[worker(1)]);
    let (now, manager) = (Time(0), &mut world.manager);
    let ask = |manager: &mut RecordedManager, scan, worker| {
        manager.request_chunk(now, scan, WorkerIndex(worker)).unwrap_err().to_string()
    };
    assert_eq!(ask(manager, ScanId(9), 0), "scan 9 is not running");
    assert_eq!(ask(manager, scan, 1), "scan 0 has no worker 1");
    assert_eq!(manager.request_chunk(now, scan, WorkerIndex(0)), Ok(()));
    assert_eq!(ask(manager, scan, 0), "worker 0 of scan 0 is already waiting");
    assert_eq!(
        manager.remove_table(now, table).unwrap_err().to_string(),
        "table 0 is in use: cancel its scans and wait for its loads first"
    );
}
