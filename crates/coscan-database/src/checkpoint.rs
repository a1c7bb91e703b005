//! Checkpoints: new files with the rows of a table as it was when the checkpoint began.

use std::collections::BTreeSet;
use std::sync::Arc;

use coscan_wal::Lsn;

use crate::commit::PendingCommit;
use crate::database::Database;
use crate::error::Error;
use crate::log::Record;
use crate::rewrite::{FileRewrite, TableRewrite, follow, rewritten};
use crate::state::{Commit, DatabaseVersion, Snapshot};
use crate::table::{DataFile, FileId, RetiredFile, TableId};
use crate::version::{TablePart, TableVersion};

/// How many changed rows are carried into the new files under the lock at once, if it can be helped.
const FEW_ROWS: u64 = 256;

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
    /// Time under the lock grows with what was changed since the checkpoint began, and with the number of files.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] if the table was dropped, [`Error::NoSuchFile`] if another checkpoint has replaced a file, and
    /// [`Error::Log`] if the log has failed. The table has its old files then.
    pub fn start_commit(self, now: u64) -> Result<PendingCommit<V>, Error> {
        let Self { database, snapshot, table, version, mut rewrites } = self;
        if rewrites.is_empty() {
            return Ok(PendingCommit::new(database, snapshot.lsn()));
        }
        let mut carried = snapshot.lsn();
        for _ in 0..ROUNDS_MAX {
            let (latest, since) = {
                let state = database.state().lock();
                (state.latest.clone(), state.commits_after(carried))
            };
            carried = latest.lsn;
            follow(&mut rewrites, latest.version(table)?)?;
            let writes = since.iter().filter_map(|commit| commit.writes.get(&table));
            if writes.map(|writes| writes.rows()).sum::<u64>() <= FEW_ROWS {
                break;
            }
        }
        let mut state = database.state().lock();
        let latest = state.latest.version(table)?;
        follow(&mut rewrites, latest)?;
        let after = rewritten(latest, &rewrites);
        let old: Vec<_> = rewrites.iter().flat_map(FileRewrite::replaced).collect();
        let old: Vec<_> = old.into_iter().filter_map(|id| latest.file(id)).cloned().collect();
        let record = database.encoded(|| Record::of_checkpoint(table, &version, &rewrites, now));
        let lsn = database.submit(state.latest.lsn, record)?;
        let mut retired = Vec::clone(&state.latest.retired);
        retired.extend(old.into_iter().map(|file| RetiredFile {
            id: file.id,
            path: file.file.path,
            since: now,
            lsn,
        }));
        let mut tables = Arc::clone(&state.latest.tables);
        if let Some((_, latest)) = Arc::make_mut(&mut tables).get_mut(&table) {
            *latest = after.clone();
        }
        let rewrite = Some((table, TableRewrite { after, files: rewrites }));
        let commit = Commit { lsn, writes: std::collections::BTreeMap::new(), rewrite };
        state.advance(DatabaseVersion { lsn, tables, retired: Arc::new(retired) }, commit);
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
        let oldest = state.oldest();
        let is_forgotten = |file: &RetiredFile| file.since <= before && file.lsn <= oldest;
        let retired = state.latest.retired.iter().cloned();
        let (forgotten, left): (Vec<_>, Vec<_>) = retired.partition(is_forgotten);
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
        let (tables, retired) = (Arc::clone(&state.latest.tables), Arc::new(left));
        let commit = Commit { lsn, writes: std::collections::BTreeMap::new(), rewrite: None };
        state.advance(DatabaseVersion { lsn, tables, retired }, commit);
        drop(state);
        Ok((PendingCommit::new(self.clone(), lsn), forgotten))
    }

    /// The files that checkpoints have replaced and that were not forgotten.
    #[must_use]
    pub fn retired(&self) -> Vec<RetiredFile> {
        Vec::clone(&self.state().lock().visible.retired)
    }
}
