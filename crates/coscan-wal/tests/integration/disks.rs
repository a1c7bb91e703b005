//! Both disks do the same, and the simulated one crashes as told.

use std::io::ErrorKind;

use coscan_wal::*;

/// All that the trait promises without a crash.
fn behaves(disk: &dyn Disk) {
    disk.create_directory("a").unwrap();
    disk.create_directory("a").unwrap();
    disk.create_directory("a/b").unwrap();
    assert_eq!(disk.create("c/file").unwrap_err().kind(), ErrorKind::NotFound);
    let file = disk.create("a/file").unwrap();
    file.write_at(b"hello", 3).unwrap();
    assert_eq!(file.length().unwrap(), 8);
    assert_eq!(disk.read("a/file").unwrap(), b"\0\0\0hello");
    let mut buffer = [9; 4];
    assert_eq!(file.read_at(&mut buffer, 6).unwrap(), 2);
    assert_eq!(buffer, *b"lo\x09\x09");
    assert_eq!(file.read_at(&mut buffer, 100).unwrap(), 0);
    file.preallocate(4).unwrap();
    file.preallocate(10).unwrap();
    assert_eq!(disk.read("a/file").unwrap(), b"\0\0\0hello\0\0");
    file.truncate(4).unwrap();
    file.sync().unwrap();
    assert_eq!(disk.read("a/file").unwrap(), b"\0\0\0h");

    disk.link("a/file", "a/b/second").unwrap();
    assert_eq!(disk.link("a/file", "a/b/second").unwrap_err().kind(), ErrorKind::AlreadyExists);
    disk.open_writable("a/b/second").unwrap().write_at(b"H", 3).unwrap();
    assert_eq!(disk.read("a/file").unwrap(), b"\0\0\0H", "one file with two names");
    disk.rename("a/b/second", "a/third").unwrap();
    assert_eq!(disk.list("a").unwrap(), ["b", "file", "third"]);
    assert_eq!(disk.list("").unwrap(), ["a"]);
    disk.remove("a/file").unwrap();
    assert_eq!(disk.remove("a/file").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(disk.open("a/file").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(file.length().unwrap(), 4, "an open file without a name");
    disk.sync_directory("a").unwrap();
    disk.sync_directory("").unwrap();
    assert_eq!(disk.create("a/../../x").unwrap_err().kind(), ErrorKind::InvalidInput);

    let lock = disk.lock("a/LOCK").unwrap();
    assert_eq!(disk.lock("a/LOCK").unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(lock);
    disk.lock("a/LOCK").unwrap();
    assert!(disk.create("a/third").unwrap().length().unwrap() == 0, "created again");
}

#[test]
fn a_simulated_disk_behaves() {
    behaves(&SimulatedDisk::new(0));
}

#[test]
fn a_local_disk_behaves() {
    let directory = tempfile::tempdir().unwrap();
    behaves(&LocalDisk::open(directory.path()).unwrap());
}

fn with_unsynced() -> SimulatedDisk {
    let disk = SimulatedDisk::new(0);
    let file = disk.create("file").unwrap();
    file.write_at(&[1; 2_048], 0).unwrap();
    file.sync().unwrap();
    disk.sync_directory("").unwrap();
    file.write_at(&[2; 2_048], 0).unwrap();
    disk.create("other").unwrap();
    disk
}

#[test]
fn the_same_seed_is_the_same_crash() {
    let after = |seed| {
        let disk = with_unsynced().crash(seed);
        (disk.read("file").unwrap(), disk.list("").unwrap())
    };
    assert!((0..50).all(|seed| after(seed) == after(seed)));
    let different: std::collections::BTreeSet<_> = (0..50).map(after).collect();
    assert!(different.len() > 15);
}

#[test]
fn a_disk_without_power_refuses_everything() {
    let disk = with_unsynced();
    let file = disk.open("file").unwrap();
    disk.power_off_after(1);
    disk.read("file").unwrap_err();
    let used = disk.operations(None);
    assert!(file.length().is_err() && disk.list("").is_err() && disk.create("new").is_err());
    assert_eq!(disk.operations(None), used);
    let after = disk.crash(1);
    assert!(after.read("file").is_ok() && disk.read("file").is_err());
}

#[test]
fn a_killed_process_loses_nothing() {
    for seed in 0..20 {
        let disk = with_unsynced().restart(seed);
        assert_eq!(disk.read("file").unwrap(), [2; 2_048]);
        assert_eq!(disk.list("").unwrap(), ["file", "other"]);
    }
}

#[test]
fn a_full_disk_still_takes_what_it_has_room_for() {
    let disk = with_unsynced();
    disk.limit_bytes(Some(2_100));
    let file = disk.open_writable("file").unwrap();
    file.write_at(&[3; 100], 2_000).unwrap();
    let full = |result: std::io::Result<()>| result.unwrap_err().kind() == ErrorKind::StorageFull;
    assert!(full(file.write_at(&[3; 100], 2_001)));
    assert!(full(file.preallocate(3_000)));
}
