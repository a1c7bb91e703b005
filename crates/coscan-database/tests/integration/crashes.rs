//! Crashes of a database on a simulated disk: what was acknowledged is there when it is opened again, and nothing else is
//! but some of the first of what was not.

use std::collections::BTreeMap;
use std::sync::Arc;

use coscan_core::SplitMix64;
use coscan_database::wal::{LogOptions, SimulatedDisk};
use coscan_database::{
    DataFile, Database, Error, PendingCommit, Reader, TableId, TableVersion, Transaction,
    ValueFormat, put_number,
};

use super::histories::{COLUMNS, Rows, fold, named_rows, rows_of};

/// How many seeds are tried, unless the variable says otherwise.
const SEEDS: u64 = 300;
const SEEDS_VARIABLE: &str = "COSCAN_CRASH_SEEDS";

pub(super) fn format() -> ValueFormat<i64> {
    let encode = |value: &i64, out: &mut Vec<u8>| put_number(out, value.cast_unsigned());
    let decode = |reader: &mut Reader<'_>| reader.number().map(u64::cast_signed);
    ValueFormat { encode, decode }
}

fn options() -> LogOptions {
    LogOptions { segment_bytes: 4096, ..LogOptions::default() }
}

pub(super) fn open(disk: &SimulatedDisk) -> Result<Database<i64>, Error> {
    Database::open(Arc::new(disk.clone()), options(), format())
}

/// All rows of all tables.
pub(super) type State = BTreeMap<String, Rows>;

pub(super) fn state_of(database: &Database<i64>) -> State {
    state_with(database, rows_of)
}

/// All rows of all tables. `rows_of` gives the rows of a version.
pub(super) fn state_with(
    database: &Database<i64>,
    rows_of: impl Fn(&TableVersion<i64>) -> Rows,
) -> State {
    let transaction = database.begin();
    let tables = database.tables().into_iter();
    tables
        .map(|table| (table.name.to_string(), rows_of(&transaction.version(table.id).unwrap())))
        .collect()
}

/// A database at work, and its states after each change that it has taken.
struct Run {
    database: Database<i64>,
    random: SplitMix64,
    /// The state after each change, the first one being that at the start.
    states: Vec<State>,
    /// The number of changes that were acknowledged.
    acknowledged: usize,
    pending: Vec<PendingCommit<i64>>,
    created: u64,
}

impl Run {
    fn new(database: Database<i64>, seed: u64) -> Self {
        let states = vec![state_of(&database)];
        let random = SplitMix64(seed);
        Self { database, random, states, acknowledged: 0, pending: Vec::new(), created: seed << 20 }
    }

    fn latest(&self) -> &State {
        self.states.last().unwrap()
    }

    /// Makes changes until the disk fails.
    fn until_failure(&mut self) {
        for _ in 0..200 {
            let done = match self.random.below(16) {
                12 => self.checkpoint(),
                13 => self.database.write_state(),
                14 => self.forget(),
                0 => self.create(),
                1 if self.latest().len() > 1 => self.drop_table(),
                2 => self.wait(),
                _ => self.commit(),
            };
            if let Err(error) = done {
                assert!(
                    matches!(
                        error,
                        Error::Log(_) | Error::StateFile { .. } | Error::WriteState { .. }
                    ),
                    "{error}"
                );
                return;
            }
        }
    }

    /// Waits for the commits that are pending.
    fn wait(&mut self) -> Result<(), Error> {
        for pending in std::mem::take(&mut self.pending) {
            pending.wait()?;
        }
        self.acknowledged = self.states.len() - 1;
        Ok(())
    }

    fn create(&mut self) -> Result<(), Error> {
        self.created += 1;
        let name = format!("t{}", self.created);
        let mut next = self.latest().clone();
        next.insert(name.clone(), Rows::new());
        self.states.push(next);
        let mut transaction = self.database.begin();
        transaction.create_table(name.as_str(), *b"columns")?;
        self.pending.push(transaction.start_commit()?);
        self.wait()
    }

    fn drop_table(&mut self) -> Result<(), Error> {
        self.wait()?;
        let tables = self.database.tables();
        let table = &tables[self.random.below(tables.len() as u64) as usize];
        let mut next = self.latest().clone();
        next.remove(&*table.name);
        self.states.push(next);
        let mut transaction = self.database.begin();
        transaction.drop_table(table.id)?;
        self.pending.push(transaction.start_commit()?);
        self.wait()
    }

    fn commit(&mut self) -> Result<(), Error> {
        // A transaction sees what is durable, so it would conflict with what is pending.
        if self.random.below(2) == 0 {
            self.wait()?;
        }
        let tables = self.database.tables();
        if tables.is_empty() {
            return self.create();
        }
        let table = tables[self.random.below(tables.len() as u64) as usize].clone();
        let only_inserts = !self.pending.is_empty();
        let mut transaction = self.database.begin();
        let before = rows_of(&transaction.version(table.id)?);
        for _ in 0..1 + self.random.below(6) {
            self.change(&mut transaction, table.id, only_inserts);
        }
        let after = rows_of(&transaction.version(table.id)?);
        let mut next = self.latest().clone();
        let rows = next.get_mut(&*table.name).unwrap();
        rows.retain(|name, _| after.contains_key(name) || !before.contains_key(name));
        rows.extend(after.into_iter().filter(|(name, row)| before.get(name) != Some(row)));
        self.states.push(next);
        self.pending.push(transaction.start_commit()?);
        if self.random.below(3) > 0 { self.wait() } else { Ok(()) }
    }

    /// New files with the rows of some of a table, while others commit.
    fn checkpoint(&mut self) -> Result<(), Error> {
        let tables = self.database.tables();
        let Some(table) = tables.first() else { return Ok(()) };
        let mut checkpoint = self.database.begin_checkpoint(table.id)?;
        let (files, inserted) = (self.random.next_u64(), self.random.below(2) > 0);
        let is_set = |position: usize| files >> (position % 64) & 1 > 0;
        fold(&mut checkpoint, &self.database, is_set, inserted);
        for _ in 0..self.random.below(4) {
            self.commit()?;
        }
        match checkpoint.start_commit(self.random.below(100)) {
            Ok(pending) => self.pending.push(pending),
            // The table was dropped, or another checkpoint that is not durable yet has replaced a file.
            Err(Error::NoSuchTable | Error::NoSuchFile) => return Ok(()),
            Err(error) => return Err(error),
        }
        self.states.push(self.latest().clone());
        if self.random.below(2) > 0 { self.wait() } else { Ok(()) }
    }

    fn forget(&mut self) -> Result<(), Error> {
        let (pending, _) = self.database.forget_retired(self.random.below(100))?;
        self.states.push(self.latest().clone());
        self.pending.push(pending);
        Ok(())
    }

    fn change(&mut self, transaction: &mut Transaction<i64>, table: TableId, only_inserts: bool) {
        let version = transaction.version(table).unwrap();
        let rows = named_rows(&version);
        let row = rows.get(self.random.below(rows.len().max(1) as u64) as usize);
        let row = row.map(|(name, _)| *name);
        let value = self.random.below(1000).cast_signed();
        match (self.random.below(6), row) {
            (0, _) => {
                let file = DataFile::new(format!("file {value}"), 1 + self.random.below(40));
                transaction.add_file(table, self.database.new_file(), file).unwrap();
            }
            (1 | 2, Some(row)) if !only_inserts => {
                let column = 1 + self.random.below(u64::from(COLUMNS) - 1) as u32;
                transaction.update(table, row, [(column, value)]).unwrap();
            }
            (3, Some(row)) if !only_inserts => transaction.delete(table, row).unwrap(),
            _ => {
                self.created += 1;
                let row = [-self.created.cast_signed(), value, value + 1];
                transaction.insert(table, row).unwrap();
            }
        }
    }

    /// Whether a state is one that a crash may leave.
    fn may_leave(&self, state: &State) -> bool {
        self.states[self.acknowledged..].contains(state)
    }
}

fn seeds() -> u64 {
    let from_variable = std::env::var(SEEDS_VARIABLE).ok();
    from_variable.and_then(|text| text.parse().ok()).unwrap_or(SEEDS)
}

#[test]
fn what_was_acknowledged_survives_crashes() {
    for seed in 0..seeds() {
        let mut random = SplitMix64(seed);
        let mut disk = SimulatedDisk::new(seed);
        for round in 0..4 {
            let Ok(database) = open(&disk) else {
                // The power may have gone while the log was opened.
                disk = disk.crash(random.next_u64());
                let database = open(&disk).unwrap();
                drop(database);
                continue;
            };
            disk.power_off_after(random.below(120));
            let mut run = Run::new(database, seed * 10 + round);
            run.until_failure();
            disk = disk.crash(random.next_u64());
            let database = open(&disk).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let state = state_of(&database);
            let acknowledged = run.acknowledged;
            assert!(
                run.may_leave(&state),
                "seed {seed}, round {round}: {acknowledged} acknowledged"
            );
            // What was left is changed further.
            drop(database);
        }
    }
}

#[test]
fn a_failed_disk_loses_nothing_that_was_acknowledged() {
    for seed in 0..seeds() {
        let mut random = SplitMix64(seed);
        let disk = SimulatedDisk::new(seed);
        let database = open(&disk).unwrap();
        match random.below(3) {
            0 => disk.fail(None, random.below(150)),
            1 => disk.limit_bytes(Some(4096 + random.below(30_000))),
            _ => disk.fail(Some(coscan_database::wal::Operation::Sync), random.below(30)),
        }
        let mut run = Run::new(database, seed);
        run.until_failure();
        // Readers go on with what is durable, and writers are refused.
        assert!(run.may_leave(&state_of(&run.database)), "seed {seed}");
        let Run { states, acknowledged, .. } = run;
        drop(run.pending);
        drop(run.database);
        disk.limit_bytes(None);
        let disk = disk.restart(random.next_u64());
        let state = state_of(&open(&disk).unwrap());
        assert!(
            states[acknowledged..].contains(&state),
            "seed {seed}: {acknowledged} acknowledged"
        );
    }
}

#[test]
fn numbers_are_never_given_again() {
    let disk = SimulatedDisk::new(1);
    let database = open(&disk).unwrap();
    let mut transaction = database.begin();
    let table = transaction.create_table("a", *b"").unwrap();
    let file = database.new_file();
    transaction.add_file(table, file, DataFile::new("f", 10)).unwrap();
    transaction.insert(table, [1, 2, 3]).unwrap();
    transaction.commit().unwrap();
    let mut dropping = database.begin();
    dropping.drop_table(table).unwrap();
    dropping.commit().unwrap();
    drop(database);
    let database = open(&disk).unwrap();
    let mut creating = database.begin();
    assert!(creating.create_table("a", *b"").unwrap() > table);
    creating.commit().unwrap();
    assert!(database.new_file() > file);
}

#[test]
fn a_database_is_open_once() {
    let disk = SimulatedDisk::new(1);
    let database = open(&disk).unwrap();
    assert!(open(&disk).unwrap_err().to_string().contains("locked"));
    drop(database);
    open(&disk).unwrap();
}

#[test]
fn a_commit_is_visible_when_it_is_durable_and_not_before() {
    let disk = SimulatedDisk::new(1);
    let database = open(&disk).unwrap();
    let mut creating = database.begin();
    let table = creating.create_table("a", *b"").unwrap();
    creating.commit().unwrap();
    let rows = || database.begin().version(table).unwrap().visible_rows();
    let insert = || {
        let mut transaction = database.begin();
        transaction.insert(table, [1, 2, 3]).unwrap();
        transaction.start_commit().unwrap()
    };
    let pending = insert();
    assert_eq!(rows(), 0);
    pending.wait().unwrap();
    assert_eq!(rows(), 1);
    let pending = insert();
    disk.fail(Some(coscan_database::wal::Operation::Sync), 0);
    pending.wait().unwrap_err();
    assert_eq!(rows(), 1);
}
