//! Appending, cutting, opening, and each failure by name.

use std::sync::Arc;

use coscan_wal::*;

use super::support::{open, options, records, segments};

fn texts(recovery: &Recovery) -> Vec<String> {
    let records = records(recovery).unwrap();
    records.into_iter().map(|record| String::from_utf8(record).unwrap()).collect()
}

#[test]
fn a_new_log_is_empty() {
    let disk = SimulatedDisk::new(0);
    let (log, recovery) = open(&disk, 1 << 16).unwrap();
    assert_eq!((log.first(), log.durable()), (Lsn(1), Lsn(0)));
    assert_eq!((recovery.first(), recovery.last()), (Lsn(1), Lsn(0)));
    assert!(records(&recovery).unwrap().is_empty());
    assert_eq!(recovery.torn(), None);
}

#[test]
fn records_are_there_after_a_crash() {
    let disk = SimulatedDisk::new(0);
    let (mut log, _) = open(&disk, 1 << 16).unwrap();
    assert_eq!(log.append_all(&["a", "b"]).unwrap(), Lsn(2));
    assert_eq!(log.append_all::<&str>(&[]).unwrap(), Lsn(2));
    assert_eq!(log.append_all(&[""]).unwrap(), Lsn(3));
    for seed in 0..20 {
        let (log, recovery) = open(&disk.duplicate().crash(seed), 1 << 16).unwrap();
        assert_eq!(texts(&recovery), ["a", "b", ""]);
        assert_eq!((log.first(), log.durable()), (Lsn(1), Lsn(3)));
    }
}

#[test]
fn a_group_takes_one_sync() {
    let disk = SimulatedDisk::new(0);
    let (mut log, _) = open(&disk, 1 << 16).unwrap();
    let before = disk.operations(Some(Operation::Sync));
    log.append_all(&vec![[7; 100]; 100]).unwrap();
    assert_eq!(disk.operations(Some(Operation::Sync)), before + 1);
}

#[test]
fn segments_are_preallocated_and_named_by_their_first_record() {
    let disk = SimulatedDisk::new(0);
    let (mut log, _) = open(&disk, 8_192).unwrap();
    log.append_all(&vec![[1; 1_000]; 5]).unwrap();
    let names =
        ["wal/00000000000000000001-0000000001.log", "wal/00000000000000000004-0000000001.log"];
    assert_eq!(segments(&disk), names);
    assert_eq!(disk.read(names[0]).unwrap().len(), 8_192);
    assert_eq!(log.segment_count(), 2);
}

#[test]
fn opening_cuts_the_space_that_the_last_segment_has_left() {
    let disk = SimulatedDisk::new(0);
    let (mut log, _) = open(&disk, 1 << 16).unwrap();
    log.append_all(&["12345678"]).unwrap();
    drop(log);
    open(&disk, 1 << 16).unwrap();
    assert_eq!(disk.read(&segments(&disk)[0]).unwrap().len(), 4096 + 40);
}

#[test]
fn what_is_cut_as_torn_is_cut_from_the_file() {
    let disk = SimulatedDisk::new(0);
    let (mut log, _) = open(&disk, 1 << 16).unwrap();
    log.append_all(&["12345678"]).unwrap();
    disk.fail(Some(Operation::Write), 0);
    log.append_all(&[vec![1; 5_000]]).unwrap_err();
    drop(log);
    let (_, recovery) = open(&disk, 1 << 16).unwrap();
    let torn = recovery.torn().unwrap();
    assert_eq!((torn.offset, torn.lsn), (4096 + 40, Lsn(2)));
    assert_eq!(disk.read(&torn.path).unwrap().len(), 4096 + 40);
}

#[test]
fn a_record_larger_than_a_segment_has_one_of_its_own() {
    let disk = SimulatedDisk::new(0);
    let (mut log, _) = open(&disk, 8_192).unwrap();
    log.append_all(&[vec![1; 20_000]]).unwrap();
    log.append_all(&[vec![2; 10], vec![3; 3 << 20], vec![4; 10]]).unwrap();
    assert_eq!(log.segment_count(), 4);
    let (log, recovery) = open(&disk.crash(9), 8_192).unwrap();
    let lengths: Vec<_> = records(&recovery).unwrap().iter().map(Vec::len).collect();
    assert_eq!(lengths, [20_000, 10, 3 << 20, 10]);
    assert_eq!(log.segment_count(), 5);
}

#[test]
fn cutting_removes_whole_segments_before_a_record() {
    let disk = SimulatedDisk::new(0);
    let (mut log, _) = open(&disk, 8_192).unwrap();
    for record in 0..9_u8 {
        log.append_all(&[vec![record; 1_000]]).unwrap();
    }
    log.cut_before(Lsn(6)).unwrap();
    assert_eq!((log.first(), log.segment_count()), (Lsn(4), 2));
    log.cut_before(Lsn(2)).unwrap();
    let (log, recovery) = open(&disk.crash(1), 8_192).unwrap();
    assert_eq!((log.first(), recovery.first(), recovery.last()), (Lsn(4), Lsn(4), Lsn(9)));
    assert_eq!(records(&recovery).unwrap()[0], vec![3; 1_000]);
    let wrong = |from| matches!(recovery.records(from), Err(LogError::OutOfRange { .. }));
    assert!(wrong(Lsn(3)) && wrong(Lsn(11)) && !wrong(Lsn(10)) && !wrong(Lsn(4)));
    let mut from_8 = recovery.records(Lsn(8)).unwrap();
    assert_eq!(from_8.next_record().unwrap().map(|record| record.lsn), Some(Lsn(8)));
}

#[test]
fn numbers_go_on_after_everything_was_cut() {
    let mut disk = SimulatedDisk::new(0);
    let (mut log, _) = open(&disk, 8_192).unwrap();
    log.append_all(&["a", "b"]).unwrap();
    log.cut_before(Lsn(3)).unwrap();
    assert_eq!((log.first(), log.segment_count()), (Lsn(3), 1));
    drop(log);
    for seed in 0..5 {
        disk = disk.crash(seed);
        let (log, recovery) = open(&disk, 8_192).unwrap();
        assert_eq!((recovery.first(), recovery.last(), log.durable()), (Lsn(3), Lsn(2), Lsn(2)));
        assert_eq!(segments(&disk).len(), 1, "openings without records leave no segments");
    }
    let (mut log, _) = open(&disk.crash(9), 8_192).unwrap();
    assert_eq!(log.append_all(&["c"]).unwrap(), Lsn(3));
}

#[test]
fn a_cut_that_a_crash_undoes_leaves_no_gap() {
    for seed in 0..200 {
        let disk = SimulatedDisk::new(seed);
        let (mut log, _) = open(&disk, 4_096).unwrap();
        log.append_all(&["1", "2", "3", "4", "5", "6"]).unwrap();
        disk.power_off_after(seed % 12);
        let _ = log.cut_before(Lsn(6));
        let (_, recovery) = open(&disk.crash(seed), 4_096).unwrap();
        assert_eq!(records(&recovery).unwrap().len() as u64, 7 - recovery.first().0);
    }
}

#[test]
fn a_failed_write_or_sync_poisons_the_log() {
    for operation in [Operation::Write, Operation::Sync] {
        let disk = SimulatedDisk::new(3);
        let (mut log, _) = open(&disk, 1 << 16).unwrap();
        log.append_all(&["a"]).unwrap();
        disk.fail(Some(operation), 0);
        assert!(matches!(log.append_all(&["b"]), Err(LogError::Io { .. })));
        let error = log.append_all(&["c"]).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, LogError::Poisoned { .. }));
        assert!(text.contains("open the database again") && text.contains("disk fails"), "{text}");
        assert!(matches!(log.cut_before(Lsn(2)), Err(LogError::Poisoned { .. })));
        assert_eq!(log.durable(), Lsn(1));
        assert!(matches!(log.close(), Err(LogError::Poisoned { .. })));
    }
}

#[test]
fn what_a_failed_sync_left_in_the_cache_is_made_durable_by_opening() {
    for seed in 0..100 {
        let disk = SimulatedDisk::new(seed);
        let (mut log, _) = open(&disk, 1 << 16).unwrap();
        log.append_all(&["a"]).unwrap();
        disk.fail(Some(Operation::Sync), 0);
        log.append_all(&[vec![9; 3_000], vec![8; 30]]).unwrap_err();
        drop(log);
        // The cache has the records, so they are recovered, although the disk may not have them.
        let (_, recovery) = open(&disk, 1 << 16).unwrap();
        assert_eq!(recovery.last(), Lsn(3));
        let (_, recovery) = open(&disk.crash(seed), 1 << 16).unwrap();
        assert_eq!(records(&recovery).unwrap().len(), 3);
    }
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing() {
    let disk = SimulatedDisk::new(0);
    let (mut log, _) = open(&disk, 8_192).unwrap();
    disk.limit_bytes(Some(8_192));
    log.append_all(&[[1; 3_000]]).unwrap();
    let error = log.append_all(&[[2; 3_000]]).unwrap_err();
    let LogError::Io { action: "publish", source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    drop(log);
    assert!(matches!(open(&disk, 8_192), Err(LogError::Io { .. })));
    disk.limit_bytes(None);
    let (_, recovery) = open(&disk, 8_192).unwrap();
    assert_eq!(records(&recovery).unwrap(), [[1; 3_000]]);
}

#[test]
fn a_read_only_disk_is_an_error() {
    let disk = SimulatedDisk::new(0);
    let (mut log, _) = open(&disk, 8_192).unwrap();
    disk.set_read_only(true);
    let LogError::Io { source, .. } = log.append_all(&["a"]).unwrap_err() else {
        panic!("written")
    };
    assert_eq!(source.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    disk.set_read_only(false);
    assert!(matches!(log.append_all(&["a"]), Err(LogError::Poisoned { .. })));
    drop(log);
    disk.set_read_only(true);
    let Err(error) = open(&disk, 8_192) else { panic!("opened") };
    assert!(matches!(&error, LogError::Io { .. }), "{error}");
}

#[test]
fn a_log_that_cannot_be_read_is_not_cut() {
    let disk = SimulatedDisk::new(0);
    let (mut log, _) = open(&disk, 8_192).unwrap();
    log.append_all(&["a", "b"]).unwrap();
    drop(log);
    let reads = disk.operations(Some(Operation::Read));
    drop(open(&disk.duplicate(), 8_192).unwrap());
    for failing in 0..reads + 4 {
        let disk = disk.duplicate();
        disk.fail(Some(Operation::Read), failing);
        let _ = open(&disk, 8_192);
        let (_, recovery) = open(&disk.restart(0), 8_192).unwrap();
        assert_eq!(recovery.last(), Lsn(2));
    }
}

#[test]
fn a_log_is_open_once_at_a_time() {
    let disk = SimulatedDisk::new(0);
    let (log, _) = open(&disk, 8_192).unwrap();
    let Err(error) = open(&disk, 8_192) else { panic!("opened twice") };
    assert!(matches!(&error, LogError::Locked { path } if path == "wal/LOCK"), "{error}");
    drop(log);
    let (_log, _) = open(&disk, 8_192).unwrap();
    assert!(open(&disk.crash(0), 8_192).is_ok(), "a crash leaves no lock");
}

#[test]
fn leftover_temporaries_are_removed() {
    let disk = SimulatedDisk::new(0);
    drop(open(&disk, 8_192).unwrap());
    disk.create("wal/00000000000000000009-0000000001.log.temporary").unwrap();
    drop(open(&disk, 8_192).unwrap());
    assert!(disk.list("wal").unwrap().iter().all(|name| !name.ends_with("temporary")));
}

#[test]
fn a_log_may_be_at_the_root_of_the_disk() {
    let disk = Arc::new(SimulatedDisk::new(0));
    let options = LogOptions { directory: String::new(), ..options(8_192) };
    let (mut log, _) = Log::open(disk.clone(), options.clone()).unwrap();
    log.append_all(&["a"]).unwrap();
    let (_, recovery) = Log::open(Arc::new(disk.crash(1)), options).unwrap();
    assert_eq!(texts(&recovery), ["a"]);
}

#[test]
fn a_log_on_a_local_disk_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(LocalDisk::open(directory.path().join("new/database")).unwrap());
    for opening in 0..3_u64 {
        let (mut log, recovery) = Log::open(disk.clone(), options(8_192)).unwrap();
        assert_eq!(records(&recovery).unwrap().len() as u64, opening * 10);
        assert!(matches!(Log::open(disk.clone(), options(8_192)), Err(LogError::Locked { .. })));
        log.append_all(&vec![[opening as u8; 1_000]; 10]).unwrap();
    }
    let (mut log, _) = Log::open(disk.clone(), options(8_192)).unwrap();
    log.cut_before(Lsn(25)).unwrap();
    log.close().unwrap();
    let (_, recovery) = Log::open(disk, options(8_192)).unwrap();
    assert!(recovery.first() > Lsn(20) && recovery.last() == Lsn(30));
    assert_eq!(records(&recovery).unwrap().last().unwrap(), &vec![2; 1_000]);
}
