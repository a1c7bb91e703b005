//! Publishing a file as a whole or not at all.

use std::io::ErrorKind;

use coscan_wal::*;

fn prepared(seed: u64) -> SimulatedDisk {
    let disk = SimulatedDisk::new(seed);
    disk.create_directory("data").unwrap();
    disk.sync_directory("").unwrap();
    disk
}

const CONTENT: [u8; 3_000] = [7; 3_000];

#[test]
fn a_file_is_there_as_a_whole_or_not_at_all() {
    let disk = prepared(0);
    let before = disk.operations(None);
    publish(&disk, "data/a", &CONTENT).unwrap();
    let steps = disk.operations(None) - before;
    let (mut without, mut with) = (0, 0);
    for seed in 0..600 {
        let disk = prepared(seed);
        disk.power_off_after(seed % (steps + 1));
        let published = publish(&disk, "data/a", &CONTENT);
        let disk = disk.crash(seed);
        match disk.read("data/a") {
            Ok(content) => {
                assert_eq!(content, CONTENT, "seed {seed}");
                with += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotFound);
                assert!(published.is_err(), "seed {seed}: it was published");
                without += 1;
            }
        }
        remove_temporaries(&disk, "data").unwrap();
        assert!(disk.list("data").unwrap().iter().all(|name| name == "a"));
    }
    assert!(with > 100 && without > 100, "{with} with, {without} without");
}

#[test]
fn a_file_that_exists_stays() {
    let disk = prepared(0);
    publish(&disk, "data/a", b"first").unwrap();
    let error = publish(&disk, "data/a", b"second").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(disk.read("data/a").unwrap(), b"first");
    assert_eq!(disk.list("data").unwrap(), ["a"]);
}

#[test]
fn a_failed_step_leaves_no_half_file() {
    let disk = prepared(0);
    let before = disk.operations(None);
    publish(&disk, "data/a", &CONTENT).unwrap();
    for step in 0..disk.operations(None) - before {
        let disk = prepared(step);
        disk.fail(None, step);
        publish(&disk, "data/a", &CONTENT).unwrap_err();
        for seed in 0..20 {
            let after = disk.duplicate().crash(seed);
            assert!(after.read("data/a").is_err() || after.read("data/a").unwrap() == CONTENT);
        }
    }
}

#[test]
fn an_abandoned_file_is_removed() {
    let disk = prepared(0);
    let publication = Publication::create(&disk, "data/a").unwrap();
    publication.file().write_at(b"half", 0).unwrap();
    publication.abandon(&disk).unwrap();
    assert!(disk.list("data").unwrap().is_empty());
}

#[test]
fn a_local_disk_publishes_too() {
    let directory = tempfile::tempdir().unwrap();
    let disk = LocalDisk::open(directory.path()).unwrap();
    disk.create_directory("data").unwrap();
    publish(&disk, "data/a", &CONTENT).unwrap();
    assert_eq!(publish(&disk, "data/a", b"").unwrap_err().kind(), ErrorKind::AlreadyExists);
    disk.create("data/b.temporary").unwrap();
    assert_eq!(remove_temporaries(&disk, "data").unwrap(), 1);
    assert_eq!(disk.list("data").unwrap(), ["a"]);
    assert_eq!(disk.read("data/a").unwrap(), CONTENT);
}
