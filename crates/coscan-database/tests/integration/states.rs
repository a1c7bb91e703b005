//! The state of a database in a file, which cuts the log: what a failing disk leaves of it, and damage.

use coscan_database::wal::{Disk, Operation, SimulatedDisk};
use coscan_database::{Database, Error};

use super::crashes::{open, state_of};

#[test]
fn a_state_cuts_the_log_and_its_damage_is_found() {
    let disk = SimulatedDisk::new(1);
    let database = open(&disk).unwrap();
    let mut creating = database.begin();
    let table = creating.create_table("a", *b"").unwrap();
    creating.commit().unwrap();
    for value in 0..200 {
        let mut transaction = database.begin();
        transaction.insert(table, [value, 2, 3]).unwrap();
        transaction.commit().unwrap();
    }
    assert!(database.replayed_bytes() > 1000);
    let before = state_of(&database);
    database.write_state().unwrap();
    assert_eq!(database.replayed_bytes(), 0);
    assert_eq!(disk.list("wal").unwrap().iter().filter(|name| name.ends_with("log")).count(), 1);
    let mut transaction = database.begin();
    transaction.insert(table, [1000, 2, 3]).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let database = open(&disk).unwrap();
    assert_eq!(state_of(&database)["a"].len(), before["a"].len() + 1);
    drop(database);

    let states: Vec<_> =
        disk.list("").unwrap().into_iter().filter(|name| name.starts_with("state-")).collect();
    let [state] = &states[..] else { panic!("{states:?}") };
    let bytes = disk.read(state).unwrap();
    for bit in [70, 8 * bytes.len() / 2, 8 * bytes.len() - 3] {
        let file = disk.open_writable(state).unwrap();
        file.write_at(&[bytes[bit / 8] ^ (1 << (bit % 8))], bit as u64 / 8).unwrap();
        let error = open(&disk).unwrap_err();
        assert!(matches!(error, Error::DamagedState { .. }), "{error}");
        file.write_at(&bytes, 0).unwrap();
    }
    let file = disk.open_writable(state).unwrap();
    file.truncate(bytes.len() as u64 - 8).unwrap();
    assert!(open(&disk).unwrap_err().to_string().contains("is damaged"));
    // Without the state the log begins too late.
    disk.remove(state).unwrap();
    assert!(matches!(open(&disk).unwrap_err(), Error::Log(_)));
}

/// A database with a table of some rows, each of a commit of its own.
fn filled(disk: &SimulatedDisk) -> Database<i64> {
    let database = open(disk).unwrap();
    let mut creating = database.begin();
    creating.create_table("a", *b"").unwrap();
    creating.commit().unwrap();
    insert(&database, 100);
    database
}

fn insert(database: &Database<i64>, rows: i64) {
    let table = database.table("a").unwrap().id;
    for value in 0..rows {
        let mut transaction = database.begin();
        transaction
            .insert(
                table,
                [-value - 1_000_000 - database.begin().lsn().0.cast_signed() * 1000, 2, 3],
            )
            .unwrap();
        transaction.commit().unwrap();
    }
}

fn state_files(disk: &SimulatedDisk) -> Vec<String> {
    let names = disk.list("").unwrap().into_iter();
    names.filter(|name| name.starts_with("state-")).collect()
}

#[test]
fn a_state_that_failed_is_written_at_the_next_try() {
    for operation in [Operation::Sync, Operation::Link, Operation::Remove, Operation::SyncDirectory]
    {
        let disk = SimulatedDisk::new(1);
        let database = filled(&disk);
        disk.fail(Some(operation), 0);
        database.write_state().unwrap_err();
        database.write_state().unwrap_or_else(|error| panic!("{operation:?}: {error}"));
        assert_eq!(state_files(&disk).len(), 1);
    }
}

#[test]
fn a_second_try_does_not_empty_the_state_of_the_first() {
    for seed in 0..50 {
        let disk = SimulatedDisk::new(seed);
        let database = filled(&disk);
        database.write_state().unwrap();
        insert(&database, 100);
        disk.fail(Some(Operation::Remove), 0);
        database.write_state().unwrap_err();
        disk.power_off_after(2 + seed % 6);
        drop(database.write_state());
        drop(database);
        let database = open(&disk.crash(seed)).unwrap_or_else(|error| panic!("{seed}: {error}"));
        assert_eq!(state_of(&database)["a"].len(), 200);
    }
}

#[test]
fn states_that_failed_leave_no_files() {
    let disk = SimulatedDisk::new(1);
    let database = filled(&disk);
    for _ in 0..5 {
        insert(&database, 1);
        disk.fail(Some(Operation::Sync), 0);
        let error = database.write_state().unwrap_err().to_string();
        assert!(error.contains("Nothing is lost"), "{error}");
    }
    assert!(state_files(&disk).is_empty());
}

#[test]
fn other_names_are_no_states() {
    let disk = SimulatedDisk::new(1);
    let database = filled(&disk);
    database.write_state().unwrap();
    for name in ["state-101", "state-x", "state-00000000000000000007.temporary.old"] {
        disk.create(name).unwrap();
    }
    drop(database);
    let database = open(&disk).unwrap();
    assert_eq!(state_of(&database)["a"].len(), 100);
    assert_eq!(state_files(&disk).len(), 4);
}
