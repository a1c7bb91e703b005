//! The process that is killed: it opens the database, works with it, and does so again.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use coscan_database::wal::{Disk, LocalDisk, publish};
use coscan_database::{
    DataFile, Database, PendingCommit, TableId, TableRowId, TableVersion, Transaction,
};

use super::super::histories::{NamedRow, named_rows_with, text_of};
use super::check::{FILES, open, stored_rows};
use super::disk::KillingDisk;
use super::maintainer::Maintainer;
use super::process::{ACKNOWLEDGED, COUNT, DIRECTORY, DONE, END, NUMBER, SEED, START, STEP};
use super::process::{fail, say};
use super::steps::Steps;
use super::writers::{COUNTERS, Change, Done, Plan, WRITERS, Writer, counter};

/// How often the process opens the database.
const OPENINGS: u64 = 2;

/// Transactions of each thread while it is open.
const TRANSACTIONS: u64 = 20;

/// An error that ends the process.
pub(super) type Failed = Box<dyn Error + Send + Sync>;

/// Runs the process, if this is it.
pub(super) fn run() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    if let Err(error) = Task::of_variables().and_then(|mut task| task.run(&directory)) {
        fail(error);
    }
}

/// What the process is to do.
struct Task {
    seed: u64,
    number: u64,
    done: Done,
    steps: Arc<Steps>,
}

impl Task {
    fn of_variables() -> Result<Self, Failed> {
        let mut done = Done::default();
        let numbers = std::env::var(DONE)?;
        for (done, number) in done.iter_mut().zip(numbers.split(' ')) {
            *done = number.parse()?;
        }
        let chosen = match std::env::var(STEP) {
            Ok(step) => {
                let (nth, name) = step.split_once(' ').ok_or("a step without a number")?;
                Some((name.to_owned(), nth.parse()?))
            }
            Err(_) => None,
        };
        let (seed, number) = (std::env::var(SEED)?.parse()?, std::env::var(NUMBER)?.parse()?);
        Ok(Self { seed, number, done, steps: Arc::new(Steps::new(chosen)) })
    }

    fn run(&mut self, directory: &str) -> Result<(), Failed> {
        let disk = KillingDisk::new(LocalDisk::open(directory)?, Arc::clone(&self.steps));
        let disk: Arc<dyn Disk> = Arc::new(disk);
        for opening in 0..OPENINGS {
            let database = open(Arc::clone(&disk))?;
            disk.create_directory(FILES)?;
            disk.sync_directory("")?;
            let files =
                NewFiles { number: self.number * OPENINGS + opening, next: AtomicU64::new(0) };
            let session = Session { database, disk: Arc::clone(&disk), files };
            if self.done[0] == 0 {
                self.create_counters(&session)?;
            }
            self.work(&session)?;
        }
        for (name, count) in self.steps.counts() {
            say(&format!("{COUNT} {count} {name}"));
        }
        say(END);
        Ok(())
    }

    /// Creates the table that all threads write.
    fn create_counters(&mut self, session: &Session) -> Result<(), Failed> {
        say(&format!("{START} 0 1"));
        let mut transaction = session.database.begin();
        let table = transaction.create_table(COUNTERS, *b"columns")?;
        for writer in 1..=WRITERS {
            transaction.insert(table, counter(writer, 0))?;
        }
        transaction.commit()?;
        acknowledge(&self.steps, 0, 1);
        self.done[0] = 1;
        Ok(())
    }

    /// Runs all threads to their end.
    fn work(&mut self, session: &Session) -> Result<(), Failed> {
        let (seed, steps, writing) = (self.seed, &*self.steps, AtomicUsize::new(WRITERS));
        let maintainer = Maintainer::new(session, seed ^ session.files.number);
        std::thread::scope(|scope| {
            for (writer, done) in (1..).zip(&mut self.done[1..]) {
                let writing = &writing;
                scope.spawn(move || {
                    let mut writer = Writing::new(session, steps, seed, (writer, *done));
                    if let Err(error) = writer.run() {
                        fail(error);
                    }
                    *done += TRANSACTIONS;
                    writing.fetch_sub(1, Ordering::Relaxed);
                });
            }
            maintainer.run(|| writing.load(Ordering::Relaxed) > 0)
        })
    }
}

/// Tells the parent that a transaction is durable, and all that its thread has started before.
fn acknowledge(steps: &Steps, writer: usize, number: u64) {
    steps.reach("before an acknowledgement");
    say(&format!("{ACKNOWLEDGED} {writer} {number}"));
    steps.reach("after an acknowledgement");
}

/// The names of new files, which no process gave before.
struct NewFiles {
    number: u64,
    next: AtomicU64,
}

/// The database while it is open.
pub(super) struct Session {
    pub(super) database: Database<i64>,
    pub(super) disk: Arc<dyn Disk>,
    files: NewFiles,
}

impl Session {
    /// Publishes a file with rows.
    pub(super) fn publish<'a>(
        &self,
        rows: impl ExactSizeIterator<Item = &'a Vec<i64>>,
    ) -> Result<DataFile, Failed> {
        let NewFiles { number, next } = &self.files;
        let path = format!("{FILES}/{number}-{}", next.fetch_add(1, Ordering::Relaxed));
        let count = rows.len() as u64;
        publish(&*self.disk, &path, text_of(rows).as_bytes())?;
        Ok(DataFile::new(path, count))
    }

    /// The rows of a version, for which its files are read.
    pub(super) fn named_rows(&self, version: &TableVersion<i64>) -> Vec<NamedRow> {
        named_rows_with(version, |_, file| {
            stored_rows(&*self.disk, file).unwrap_or_else(|error| fail(error))
        })
    }
}

/// A thread that writes.
struct Writing<'a> {
    session: &'a Session,
    steps: &'a Steps,
    number: usize,
    writer: Writer,
    tables: BTreeMap<String, TableId>,
    pending: Vec<PendingCommit<i64>>,
}

impl<'a> Writing<'a> {
    fn new(
        session: &'a Session,
        steps: &'a Steps,
        seed: u64,
        (number, done): (usize, u64),
    ) -> Self {
        let tables = session.database.tables().into_iter();
        let tables = tables.map(|table| (table.name.to_string(), table.id)).collect();
        let writer = Writer::after(seed, number, done);
        Self { session, steps, number, writer, tables, pending: Vec::new() }
    }

    fn run(&mut self) -> Result<(), Failed> {
        for _ in 0..TRANSACTIONS {
            let plan = self.writer.transact();
            self.commit(&plan)?;
            if plan.waits {
                self.wait()?;
            }
        }
        self.wait()
    }

    fn commit(&mut self, plan: &Plan) -> Result<(), Failed> {
        say(&format!("{START} {} {}", self.number, self.writer.done));
        let mut transaction = self.session.database.begin();
        for change in &plan.changes {
            self.change(&mut transaction, change)?;
        }
        self.pending.push(transaction.start_commit()?);
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Failed> {
        for pending in self.pending.drain(..) {
            pending.wait()?;
        }
        acknowledge(self.steps, self.number, self.writer.done);
        Ok(())
    }

    fn change(
        &mut self,
        transaction: &mut Transaction<i64>,
        change: &Change,
    ) -> Result<(), Failed> {
        match change {
            Change::Create(name) => {
                let table = transaction.create_table(name.as_str(), *b"columns")?;
                self.tables.insert(name.clone(), table);
            }
            Change::Drop(name) => transaction.drop_table(self.table(name)?)?,
            Change::Insert(table, row) => transaction.insert(self.table(table)?, row.clone())?,
            Change::AddFile(table, rows) => {
                let file = self.session.publish(rows.iter())?;
                let id = self.session.database.new_file();
                transaction.add_file(self.table(table)?, id, file)?;
            }
            Change::Update(table, row, cell) => {
                let (table, row) = self.row(transaction, table, *row)?;
                transaction.update(table, row, [*cell])?;
            }
            Change::Delete(table, row) => {
                let (table, row) = self.row(transaction, table, *row)?;
                transaction.delete(table, row)?;
            }
        }
        Ok(())
    }

    fn table(&self, name: &str) -> Result<TableId, Failed> {
        let table = self.tables.get(name).copied();
        table.ok_or_else(|| format!("the table {name} is missing").into())
    }

    /// A row as a transaction sees it, by its first column.
    fn row(
        &self,
        transaction: &Transaction<i64>,
        name: &str,
        row: i64,
    ) -> Result<(TableId, TableRowId), Failed> {
        let table = self.table(name)?;
        let rows = self.session.named_rows(&transaction.version(table)?).into_iter();
        let mut rows = rows.filter(|(_, values)| values[0] == row);
        let (row, _) = rows.next().ok_or_else(|| format!("row {row} of {name} is missing"))?;
        Ok((table, row))
    }
}
