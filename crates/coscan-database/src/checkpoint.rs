//! Checkpoints: new files with the rows of a table as it was when the checkpoint began.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coscan_wal::Lsn;

use crate::commit::PendingCommit;
use crate::database::Database;
use crate::error::Error;
use crate::log::{EncodedFiles, Record, rows_now};
use crate::rewrite::{FileRewrite, TableRewrite, carry_changes, rewritten};
use crate::state::{Commit, DatabaseVersion, ROWS_UNDER_LOCK_MAX, Snapshot};
use crate::table::{DataFile, FileId, RetiredFile, TableId};
use crate::version::{TablePart, TableVersion};

/// How often changes are carried without the lock before the rest is carried under it.
const ROUNDS_MAX: u32 = 8;

/// A checkpoint of a table: parts of it become new files, with the rows that the parts had when it began
/// `[CS11 §2.9, §4.7]`. Nobody waits for it. What others commit until its own commit is carried into the new files.
///
/// Transactions that began before go on with the replaced files, and commit their changes of them into the new ones.
pub struct Checkpoint<V: Clone> {
    database: Database<V>,
    snapshot: Snapshot<V>,
    table: TableId,
    version: TableVersion<V>,
    rewrites: Vec<FileRewrite<V>>,
}

impl<V: Clone> Database<V> {
    /// Begins a checkpoint of a table.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] if there is none of this number.
    pub fn begin_checkpoint(&self, table: TableId) -> Result<Checkpoint<V>, Error> {
        let snapshot = self.state().snapshot();
        let version = snapshot.version(table)?.clone();
        Ok(Checkpoint { database: self.clone(), snapshot, table, version, rewrites: Vec::new() })
    }
}

impl<V: Clone + PartialEq> Checkpoint<V> {
    /// The table as it was when the checkpoint began.
    #[must_use]
    pub fn version(&self) -> &TableVersion<V> {
        &self.version
    }

    /// The last commit that this has.
    #[must_use]
    pub fn lsn(&self) -> Lsn {
        self.snapshot.lsn()
    }

    /// The same rows, with the files that were replaced so far.
    #[must_use]
    pub fn rewritten(&self) -> TableVersion<V> {
        rewritten(&self.version, &self.rewrites)
    }

    /// Replaces a part of the table by a file with its rows, in their order; by none if it has no rows.
    ///
    /// # Errors
    /// [`Error::NoSuchFile`] if the table does not have a file of the part, or it is replaced already, [`Error::WrongRowCount`] if
    /// the new file has not as many rows.
    pub fn replace(
        &mut self,
        part: &TablePart,
        file: Option<(FileId, DataFile)>,
    ) -> Result<(), Error> {
        let mut replaced: BTreeSet<_> =
            self.rewrites.iter().flat_map(FileRewrite::replaced).collect();
        let has_inserted = self.rewrites.iter().any(FileRewrite::has_inserted);
        if !part.files.iter().all(|id| replaced.insert(*id)) || has_inserted && part.inserted {
            return Err(Error::NoSuchFile);
        }
        self.rewrites.push(FileRewrite::new(&self.version, part, file)?);
        Ok(())
    }

    /// Makes the new files those of the table. `now` is the time since which the replaced ones are retired.
    ///
    /// What was changed since the checkpoint began is carried into the new files without the lock, but for the last of it. Time
    /// under the lock grows with the number of files, and with the bytes of the record.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] if the table was dropped, [`Error::NoSuchFile`] if another checkpoint has replaced a part of it, and
    /// [`Error::Log`] if the log has failed. The table has its old files then.
    pub fn start_commit(self, now: u64) -> Result<PendingCommit<V>, Error> {
        let Self { database, snapshot, table, mut rewrites, .. } = self;
        if rewrites.is_empty() {
            return Ok(PendingCommit::new(database, snapshot.lsn()));
        }
        let format = database.value_format();
        let (mut carried, mut encoded) = (snapshot.lsn(), EncodedFiles::default());
        let has_inserted = rewrites.iter().any(FileRewrite::has_inserted);
        let mut carry = |latest: &TableVersion<V>, since: &[Arc<Commit<V>>]| {
            let mut others = since.iter().filter_map(|commit| commit.rewrite_of(table));
            if has_inserted && others.any(TableRewrite::has_inserted) {
                return Err(Error::NoSuchFile); // Another checkpoint has written the same rows.
            }
            let writes = since.iter().filter_map(|commit| commit.writes.get(&table));
            let writes: Vec<_> = writes.collect();
            carry_changes(&mut rewrites, latest, &writes, |id, changes, rows| {
                if let Some(format) = format {
                    encoded.add(id, &rows_now(changes, rows), format);
                }
            })?;
            Ok::<_, Error>(writes.iter().map(|writes| writes.rows()).sum::<u64>())
        };
        for _ in 0..ROUNDS_MAX {
            let (latest, since) = {
                let state = database.state().lock();
                (state.latest.clone(), state.commits_after(carried))
            };
            carried = latest.lsn;
            if carry(latest.version(table)?, &since)? <= ROWS_UNDER_LOCK_MAX {
                break;
            }
        }
        let mut state = database.state().lock();
        let latest = state.latest.version(table)?;
        carry(latest, &state.commits_after(carried))?;
        let after = rewritten(latest, &rewrites);
        let replaced: BTreeSet<_> = rewrites.iter().flat_map(FileRewrite::replaced).collect();
        let old = latest.files().iter().filter(|file| replaced.contains(&file.id));
        let old: Vec<_> = old.map(|file| (file.id, Arc::clone(&file.file.path))).collect();
        let record = database.encoded(|| Record::of_checkpoint(table, &rewrites, encoded, now));
        let lsn = database.submit(state.latest.lsn, record)?;
        state.retired.extend(old.into_iter().map(|(id, path)| RetiredFile {
            id,
            path,
            since: now,
            lsn,
        }));
        let mut tables = Arc::clone(&state.latest.tables);
        if let Some((_, latest)) = Arc::make_mut(&mut tables).get_mut(&table) {
            *latest = after.clone();
        }
        let rewrite = Some((table, TableRewrite { after, files: rewrites }));
        let commit = Commit { lsn, writes: BTreeMap::new(), rewrite };
        state.advance(DatabaseVersion { lsn, tables }, commit);
        drop(state);
        Ok(PendingCommit::new(database, lsn))
    }
}

impl<V: Clone + PartialEq> Database<V> {
    /// Forgets files that were retired at a time or before, unless a running transaction still reads them. When the commit is
    /// durable, nothing needs them any more.
    ///
    /// # Errors
    /// [`Error::Log`] if the log has failed.
    pub fn forget_retired(
        &self,
        before: u64,
    ) -> Result<(PendingCommit<V>, Vec<RetiredFile>), Error> {
        let mut state = self.state().lock();
        let forgotten = state.take_retired(before);
        if forgotten.is_empty() {
            let lsn = state.visible.lsn;
            drop(state);
            return Ok((PendingCommit::new(self.clone(), lsn), forgotten));
        }
        let record = self.encoded(|| Record {
            forgotten: forgotten.iter().map(|file| file.id).collect(),
            ..Record::default()
        });
        let lsn = self.submit(state.latest.lsn, record)?;
        let tables = Arc::clone(&state.latest.tables);
        let commit = Commit { lsn, writes: BTreeMap::new(), rewrite: None };
        state.advance(DatabaseVersion { lsn, tables }, commit);
        drop(state);
        Ok((PendingCommit::new(self.clone(), lsn), forgotten))
    }

    /// The files that checkpoints have replaced and that were not forgotten.
    #[must_use]
    pub fn retired(&self) -> Vec<RetiredFile> {
        self.state().lock().retired.iter().cloned().collect()
    }
}
