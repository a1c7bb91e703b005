//! What a database must have after a kill.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use coscan_database::wal::{Disk, LocalDisk, LogOptions};
use coscan_database::{DataFile, Database, Error};

use super::super::crashes::{State, format, state_with};
use super::super::histories::{Rows, named_rows_with, rows_in, without_names};
use super::process::{Case, Ended, STARTING};
use super::writers::{Done, Progress, Writer, part_of, state_after};

/// The directory of the files of tables.
pub(super) const FILES: &str = "files";

/// Opens a database, with segments of a few records.
pub(super) fn open(disk: Arc<dyn Disk>) -> Result<Database<i64>, Error> {
    let options = LogOptions { segment_bytes: 2 * 4096, ..LogOptions::default() };
    Database::open(disk, options, format())
}

/// The rows of a file.
///
/// # Errors
/// If it is missing, or does not have as many rows as its table says.
pub(super) fn stored_rows(disk: &dyn Disk, file: &DataFile) -> Result<Vec<Vec<i64>>, String> {
    let text = disk.read(&file.path).map_err(|error| format!("{}: {error}", file.path))?;
    let rows = String::from_utf8(text).ok().and_then(|text| rows_in(&text));
    let rows = rows.filter(|rows| rows.len() as u64 == file.rows);
    rows.ok_or_else(|| format!("{} is not whole", file.path))
}

/// All rows of all tables, with those of their files.
fn state_of(database: &Database<i64>, disk: &dyn Disk) -> State {
    let stored = |_, file: &DataFile| stored_rows(disk, file).unwrap();
    state_with(database, |version| without_names(named_rows_with(version, stored)))
}

/// Copies a directory. Names of one file stay names of one file.
pub(super) fn copy(from: &Path, to: &Path) {
    copy_into(from, to, &mut BTreeMap::new());
}

fn copy_into(from: &Path, to: &Path, copies: &mut BTreeMap<u64, PathBuf>) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (metadata, copied) = (entry.metadata().unwrap(), to.join(entry.file_name()));
        if metadata.is_dir() {
            copy_into(&entry.path(), &copied, copies);
        } else if let Some(first) = copies.get(&metadata.ino()) {
            fs::hard_link(first, &copied).unwrap();
        } else {
            fs::copy(entry.path(), &copied).unwrap();
            copies.insert(metadata.ino(), copied);
        }
    }
}

/// Checks the database that a process has left, and changes it. Returns the number of transactions that it has of each
/// thread.
pub(super) fn check(case: &Case<'_>, directory: &Path, ended: &Ended) -> Done {
    let _nobody_starts = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    let disk: Arc<dyn Disk> = Arc::new(LocalDisk::open(directory).unwrap());
    let opened = |time| {
        open(Arc::clone(&disk)).unwrap_or_else(|error| panic!("{case}: opened {time}: {error}"))
    };
    let database = opened("first");
    let found = state_of(&database, &*disk);
    let done = done_in(case, &found, &ended.progress);
    assert_eq!(found, state_after(case.seed, done), "{case}: it has what nobody committed");
    let retired: BTreeSet<_> =
        database.retired().iter().map(|file| file.path.to_string()).collect();
    for path in &retired {
        assert!(disk.open(path).is_ok(), "{case}: {path} was removed before it was forgotten");
    }
    let lost: Vec<_> = ended.retired.difference(&retired).collect();
    assert!(lost.is_empty(), "{case}: nobody will remove these files: {lost:?}");
    drop(database);

    let database = opened("again");
    assert_eq!(state_of(&database, &*disk), found, "{case}: opened again");
    let mut transaction = database.begin();
    let table = transaction.create_table("afterwards", *b"columns").unwrap();
    transaction.insert(table, [1, 2, 3]).unwrap();
    transaction.commit().unwrap_or_else(|error| panic!("{case}: committed afterwards: {error}"));
    drop(database);

    let mut after = found;
    after.insert("afterwards".to_owned(), Rows::from([(1, vec![1, 2, 3])]));
    let database = opened("after another commit");
    assert_eq!(state_of(&database, &*disk), after, "{case}: opened after another commit");
    done
}

/// The number of transactions that a state has of each thread.
fn done_in(case: &Case<'_>, found: &State, progress: &Progress) -> Done {
    let Progress { started, acknowledged } = *progress;
    let mut done = Done::default();
    done[0] = u64::from(!found.is_empty());
    assert!((acknowledged[0]..=started[0]).contains(&done[0]), "{case}: the shared table");
    if done[0] == 0 {
        return done;
    }
    for writer in 1..done.len() {
        let part = part_of(found, writer);
        let (first, last) = (acknowledged[writer], started[writer]);
        let mut model = Writer::new(case.seed, writer);
        let mut matching = Vec::new();
        loop {
            if model.state == part {
                matching.push(model.done);
            }
            if model.done == last {
                break;
            }
            model.transact();
        }
        let Some(number) = matching.iter().copied().find(|number| *number >= first) else {
            panic!(
                "{case}: {first} transactions of thread {writer} were acknowledged and {last} started, but the \
                 database has its state after {matching:?}"
            );
        };
        done[writer] = number;
    }
    done
}
