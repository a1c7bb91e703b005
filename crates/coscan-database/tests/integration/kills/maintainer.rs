//! The thread that writes checkpoints and states, and removes files that nothing needs any more, while others commit.

use coscan_core::SplitMix64;
use coscan_database::{Error, TableId};

use super::super::histories::fold_with;
use super::child::{Failed, Session};
use super::process::{FORGET, RETIRED, fail, say};
use super::writers::COUNTERS;

/// The thread.
pub(super) struct Maintainer<'a> {
    session: &'a Session,
    random: SplitMix64,
    /// The time as it counts it.
    now: u64,
}

impl<'a> Maintainer<'a> {
    pub(super) fn new(session: &'a Session, seed: u64) -> Self {
        Self { session, random: SplitMix64(seed), now: 0 }
    }

    /// Works while others write.
    pub(super) fn run(mut self, others_write: impl Fn() -> bool) -> Result<(), Failed> {
        while others_write() {
            match self.random.below(4) {
                0 => self.session.database.write_state()?,
                1 => self.forget(self.now.saturating_sub(2))?,
                _ => {
                    let tables = self.session.database.tables();
                    let table = self.random.below(tables.len() as u64) as usize;
                    let files = self.random.next_u64();
                    self.checkpoint(tables[table].id, |position| files >> (position % 64) & 1 > 0)?;
                }
            }
        }
        // Each of these comes in every process, so that none of their steps is missing.
        let counters = self.session.database.table(COUNTERS);
        self.checkpoint(counters.ok_or("the shared table is missing")?.id, |_| true)?;
        self.session.database.write_state()?;
        self.forget(self.now)
    }

    /// Makes a new file of some of a table's files, and of the rows that no file has.
    fn checkpoint(
        &mut self,
        table: TableId,
        is_folded: impl Fn(usize) -> bool,
    ) -> Result<(), Failed> {
        self.now += 1;
        let Session { database, disk, .. } = self.session;
        let mut checkpoint = match database.begin_checkpoint(table) {
            // It was dropped meanwhile, as may happen below.
            Err(Error::NoSuchTable) => return Ok(()),
            begun => begun?,
        };
        let mut new = None;
        let named_rows = |version: &_| self.session.named_rows(version);
        fold_with(&mut checkpoint, is_folded, true, named_rows, |rows| {
            let file = self.session.publish(rows.iter().map(|(_, row)| row));
            let file = file.unwrap_or_else(|error| fail(error));
            new = Some(file.path.clone());
            (database.new_file(), file)
        })?;
        match (checkpoint.start_commit(self.now), new) {
            (Err(Error::NoSuchTable), Some(path)) => disk.remove(&path)?,
            (Err(Error::NoSuchTable), None) => {}
            (pending, _) => {
                pending?.wait()?;
                self.say_retired();
            }
        }
        Ok(())
    }

    /// Tells the parent which files are retired: nobody else retires or forgets any.
    fn say_retired(&self) {
        for file in self.session.database.retired() {
            say(&format!("{RETIRED} {}", file.path));
        }
    }

    /// Removes files that were replaced at a time or before.
    fn forget(&self, before: u64) -> Result<(), Failed> {
        say(FORGET);
        let (pending, files) = self.session.database.forget_retired(before)?;
        pending.wait()?;
        self.say_retired();
        files.iter().try_for_each(|file| self.session.disk.remove(&file.path))?;
        Ok(())
    }
}
