//! Many threads share one log.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;

use coscan_wal::*;

use super::gate::{Gated, gated};
use super::support::{open, records};

fn shared(disk: &SimulatedDisk) -> GroupCommit {
    GroupCommit::new(open(disk, 1 << 14).unwrap().0)
}

/// Threads that submit and wait until the log fails, and what was acknowledged.
fn hammer(log: &GroupCommit, threads: u8, commits: u32) -> BTreeMap<Lsn, Vec<u8>> {
    let acknowledged = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for thread in 0..threads {
            let (log, acknowledged) = (log, &acknowledged);
            scope.spawn(move || {
                for commit in 0..commits {
                    let mut payload = vec![thread; 20 + usize::from(thread)];
                    payload.extend_from_slice(&commit.to_le_bytes());
                    let Ok(lsn) = log.submit(payload.clone()) else { break };
                    if log.wait(lsn).is_err() {
                        break;
                    }
                    assert!(log.durable() >= lsn);
                    assert_eq!(acknowledged.lock().unwrap().insert(lsn, payload), None);
                }
            });
        }
    });
    acknowledged.into_inner().unwrap()
}

#[test]
fn all_that_threads_commit_is_there_in_order() {
    let disk = SimulatedDisk::new(0);
    let acknowledged = hammer(&shared(&disk), 8, 200);
    assert_eq!(acknowledged.len(), 1_600);
    let (_, recovery) = open(&disk.crash(1), 1 << 14).unwrap();
    let records = records(&recovery).unwrap();
    assert_eq!(records, acknowledged.into_values().collect::<Vec<_>>());
}

#[test]
fn threads_lose_nothing_acknowledged_when_the_disk_fails() {
    for seed in 0..60 {
        let disk = SimulatedDisk::new(seed);
        let log = shared(&disk);
        match seed % 3 {
            0 => disk.power_off_after(seed * 2),
            1 => disk.fail(Some(Operation::Sync), seed),
            _ => disk.fail(Some(Operation::Write), seed),
        }
        let acknowledged = hammer(&log, 6, 60);
        assert!(log.durable() >= acknowledged.keys().next_back().copied().unwrap_or_default());
        let (_, recovery) = open(&disk.crash(seed), 1 << 14).unwrap();
        let records = records(&recovery).unwrap();
        for (lsn, payload) in acknowledged {
            assert_eq!(records.get(lsn.0 as usize - 1), Some(&payload), "seed {seed}, {lsn}");
        }
    }
}

#[test]
fn what_is_submitted_during_a_sync_shares_the_next() {
    let Gated { disk, log, syncs: gate } = gated();
    let log = GroupCommit::new(log);
    let syncs = disk.operations(Some(Operation::Sync));
    // A failed assertion drops the gate, so that no thread waits for it.
    thread::scope(|scope| {
        let gate = gate;
        let log = &log;
        let first = log.submit("first").unwrap();
        scope.spawn(move || log.wait(first).unwrap());
        gate.begun();
        // The leader syncs. All these follow.
        let lsns: Vec<_> = (0..10_u8).map(|record| log.submit([record]).unwrap()).collect();
        assert_eq!((log.durable(), log.submitted()), (Lsn(0), Lsn(11)));
        for lsn in lsns {
            scope.spawn(move || log.wait(lsn).unwrap());
        }
        gate.end();
        gate.begun();
        assert_eq!(log.durable(), first, "nothing is acknowledged before its sync");
        gate.end();
    });
    assert_eq!(log.durable(), Lsn(11));
    assert_eq!(disk.operations(Some(Operation::Sync)), syncs + 2);
}

#[test]
fn a_failure_wakes_all_who_wait() {
    let Gated { disk, log, syncs: gate } = gated();
    let log = GroupCommit::new(log);
    let failed = |result| matches!(result, Err(LogError::Poisoned { .. }));
    thread::scope(|scope| {
        let gate = gate;
        let lsns: Vec<_> = (0..6_u8).map(|record| log.submit([record]).unwrap()).collect();
        let waiting: Vec<_> = lsns
            .into_iter()
            .map(|lsn| {
                scope.spawn({
                    let log = &log;
                    move || log.wait(lsn)
                })
            })
            .collect();
        gate.begun();
        let later = log.submit("later").unwrap();
        disk.fail(Some(Operation::Sync), 0);
        gate.end();
        for thread in waiting {
            assert!(failed(thread.join().unwrap()));
        }
        assert!(failed(log.wait(later)), "it was in no group");
    });
    assert!(matches!(log.submit("more"), Err(LogError::Poisoned { .. })));
    assert!(
        failed(log.cut_before(Lsn(1)))
            && failed(log.close())
            && failed(log.make_room()) | !log.is_full()
    );
    assert_eq!(log.durable(), Lsn(0));
    let (_, recovery) = super::support::open(&disk, 1 << 14).unwrap();
    assert_eq!(recovery.last(), Lsn(6), "the log can be opened while the handle is still there");
}

#[test]
fn making_room_waits_until_enough_is_durable() {
    let disk = SimulatedDisk::new(0);
    let log = shared(&disk).with_pending_bytes_max(100);
    log.make_room().unwrap();
    assert_eq!(log.durable(), Lsn(0), "there was room");
    let last = log.submit(vec![0; 60]).and_then(|_| log.submit(vec![0; 60])).unwrap();
    assert!(log.is_full());
    log.make_room().unwrap();
    assert_eq!(log.durable(), last);
    assert!(!log.is_full());
}

#[test]
fn a_record_that_nobody_submitted_is_not_waited_for() {
    let log = shared(&SimulatedDisk::new(0));
    assert!(matches!(log.wait(Lsn(1)), Err(LogError::NotSubmitted { .. })));
    log.wait(Lsn(0)).unwrap();
}

#[test]
fn a_shared_log_is_cut_and_closed() {
    let disk = SimulatedDisk::new(0);
    let log = shared(&disk);
    log.submit("a").unwrap();
    let last = log.submit("b").unwrap();
    log.wait(last).unwrap();
    log.cut_before(last.next()).unwrap();
    log.submit("c").unwrap();
    log.close().unwrap();
    assert!(matches!(log.submit("d"), Err(LogError::Closed)));
    log.wait(Lsn(3)).unwrap();
    let (_, recovery) = open(&disk, 1 << 14).unwrap();
    assert_eq!(records(&recovery).unwrap(), [b"c"]);
    assert_eq!(recovery.first(), Lsn(3));
}

#[test]
fn threads_commit_while_the_log_is_cut() {
    let disk = SimulatedDisk::new(0);
    let log = shared(&disk);
    thread::scope(|scope| {
        let committing = scope.spawn(|| hammer(&log, 4, 200));
        while !committing.is_finished() {
            log.cut_before(log.durable()).unwrap();
        }
        assert_eq!(committing.join().unwrap().len(), 800);
    });
    let (_, recovery) = open(&disk.crash(3), 1 << 14).unwrap();
    assert_eq!(recovery.last(), Lsn(800));
    records(&recovery).unwrap();
}
