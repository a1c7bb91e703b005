//! Commits.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};

use coscan_wal::Lsn;

use crate::database::Database;
use crate::error::Error;
use crate::log::{Record, table_changes};
use crate::state::{Commit, DatabaseVersion, ROWS_UNDER_LOCK_MAX, State};
use crate::table::{Table, TableId};
use crate::table_transaction::TableTransaction;
use crate::table_writes::TableWrites;
use crate::version::TableVersion;

/// How often a large transaction is applied without the lock, before it is applied under it.
const ATTEMPTS_MAX: u32 = 3;

/// The changes of a transaction, to be committed.
pub(crate) struct Changes<V: Clone> {
    /// The last commit that the transaction sees.
    pub(crate) seen: Lsn,
    pub(crate) dropped: Vec<TableId>,
    pub(crate) created: Vec<Table>,
    pub(crate) tables: BTreeMap<TableId, TableTransaction<V>>,
}

impl<V: Clone + PartialEq> Changes<V> {
    fn is_empty(&self) -> bool {
        self.dropped.is_empty() && self.created.is_empty() && self.tables.is_empty()
    }

    fn record(&self) -> Record<V> {
        let tables = self.tables.iter();
        Record {
            dropped: self.dropped.clone(),
            created: self.created.clone(),
            changed: tables.map(|(id, changes)| table_changes(*id, changes)).collect(),
            forgotten: Vec::new(),
        }
    }

    /// The number of rows that were written.
    fn rows_written(&self) -> u64 {
        self.tables.values().map(TableTransaction::rows_written).sum()
    }

    /// Whether one of the commits has replaced files that the changes are in.
    fn is_rewritten(&self, since: &[Arc<Commit<V>>]) -> bool {
        let is_later =
            |commit: &Commit<V>, changes: &TableTransaction<V>| commit.lsn > changes.seen();
        since.iter().any(|commit| {
            self.tables
                .iter()
                .any(|(id, changes)| commit.rewrite_of(*id).is_some() && is_later(commit, changes))
        })
    }

    /// Moves the changes into the files that have replaced those that the transaction saw. `latest` has all the commits.
    fn follow(
        &mut self,
        latest: &DatabaseVersion<V>,
        since: &[Arc<Commit<V>>],
    ) -> Result<(), Error> {
        for (id, changes) in &mut self.tables {
            let (mut others, seen) = (Vec::new(), changes.seen());
            for commit in since.iter().filter(|commit| commit.lsn > seen) {
                others.push(commit);
                let Some(rewrite) = commit.rewrite_of(*id) else { continue };
                let writes: Vec<_> =
                    others.iter().filter_map(|commit| commit.writes.get(id)).collect();
                match changes.after_rewrite(rewrite, commit.lsn, &writes)? {
                    Some(after) => *changes = after,
                    None => return Err(conflict(latest, *id)),
                }
                others.clear();
            }
        }
        Ok(())
    }

    /// Applies the changes to a version. `since` are the commits in it that the transaction does not see.
    fn apply(
        &self,
        latest: &DatabaseVersion<V>,
        since: &[Arc<Commit<V>>],
    ) -> Result<Applied<V>, Error> {
        self.check_names(latest)?;
        let (mut versions, mut writes) = (Vec::with_capacity(self.tables.len()), BTreeMap::new());
        let (empty, latest_lsn) = (TableVersion::default(), latest.lsn);
        for (id, changes) in &self.tables {
            let created = self.created.iter().find(|table| table.id == *id);
            let (name, latest) = match (created, latest.tables.get(id)) {
                (Some(table), _) => (&table.name, &empty),
                (None, Some((table, latest))) => (&table.name, latest),
                (None, None) => return Err(Error::NoSuchTable),
            };
            let since = since.iter().filter(|commit| commit.lsn > changes.seen());
            let since: Vec<_> = since.filter_map(|commit| commit.writes.get(id)).collect();
            let Some((version, written)) = changes.applied_to(latest, &since)? else {
                return Err(Error::Conflict { table: Arc::clone(name), after: latest_lsn });
            };
            versions.push((*id, version));
            writes.insert(*id, written);
        }
        Ok(Applied { versions, writes })
    }

    fn check_names(&self, latest: &DatabaseVersion<V>) -> Result<(), Error> {
        if self.dropped.iter().any(|id| !latest.tables.contains_key(id)) {
            return Err(Error::NoSuchTable);
        }
        for table in &self.created {
            let mut others = latest.tables.values().map(|(other, _)| other);
            let is_left = |other: &Table| !self.dropped.contains(&other.id);
            if others.any(|other| other.name == table.name && is_left(other)) {
                return Err(Error::TableExists(Arc::clone(&table.name)));
            }
        }
        Ok(())
    }

    /// The tables after the commit.
    fn tables_after(
        &self,
        latest: &DatabaseVersion<V>,
        versions: Vec<(TableId, TableVersion<V>)>,
    ) -> Arc<BTreeMap<TableId, (Table, TableVersion<V>)>> {
        let mut tables = Arc::clone(&latest.tables);
        let changed = Arc::make_mut(&mut tables);
        changed.retain(|id, _| !self.dropped.contains(id));
        for table in &self.created {
            changed.insert(table.id, (table.clone(), TableVersion::default()));
        }
        for (id, version) in versions {
            if let Some((_, latest)) = changed.get_mut(&id) {
                *latest = version;
            }
        }
        tables
    }
}

/// The changes of a transaction, applied to versions of its tables.
struct Applied<V: Clone> {
    versions: Vec<(TableId, TableVersion<V>)>,
    writes: BTreeMap<TableId, TableWrites>,
}

impl<V: Clone> Applied<V> {
    /// Whether the tables that were changed are the same in a later version.
    fn fits(&self, before: &DatabaseVersion<V>, now: &DatabaseVersion<V>) -> bool {
        self.versions.iter().all(|(id, _)| match (before.tables.get(id), now.tables.get(id)) {
            (Some((_, before)), Some((_, now))) => before.is_same(now),
            _ => false,
        })
    }
}

/// The error of a transaction that another one was faster than.
fn conflict<V: Clone>(latest: &DatabaseVersion<V>, table: TableId) -> Error {
    match latest.tables.get(&table) {
        Some((table, _)) => Error::Conflict { table: Arc::clone(&table.name), after: latest.lsn },
        None => Error::NoSuchTable,
    }
}

impl<V: Clone + PartialEq> Database<V> {
    /// Commits a transaction: checks it against all commits that it does not see, and applies its changes to the latest
    /// version of each table. Time grows with the rows that it wrote, and with the commits that it does not see.
    ///
    /// A transaction that wrote many rows is applied without the lock. If its tables were changed meanwhile, this is
    /// repeated. If a checkpoint has replaced files that it has changed, its changes are moved into the new ones, without the
    /// lock.
    pub(crate) fn commit(&self, mut changes: Changes<V>) -> Result<PendingCommit<V>, Error> {
        if changes.is_empty() {
            return Ok(PendingCommit::new(self.clone(), changes.seen));
        }
        let mut record = self.encoded(|| changes.record());
        let mut attempts =
            if changes.rows_written() <= ROWS_UNDER_LOCK_MAX { 0 } else { ATTEMPTS_MAX };
        loop {
            let state = self.state().lock();
            let since = state.commits_after(changes.seen);
            if changes.is_rewritten(&since) {
                let latest = state.latest.clone();
                drop(state);
                changes.follow(&latest, &since)?;
                record = self.encoded(|| changes.record());
                continue;
            }
            if attempts == 0 {
                let applied = changes.apply(&state.latest, &since)?;
                return self.accept(state, &changes, applied, record);
            }
            attempts -= 1;
            let latest = state.latest.clone();
            drop(state);
            let applied = changes.apply(&latest, &since)?;
            let state = self.state().lock();
            if applied.fits(&latest, &state.latest) {
                changes.check_names(&state.latest)?;
                return self.accept(state, &changes, applied, record);
            }
        }
    }

    /// Takes a commit into the log, and makes its versions the latest ones.
    fn accept(
        &self,
        mut state: MutexGuard<'_, State<V>>,
        changes: &Changes<V>,
        Applied { versions, writes }: Applied<V>,
        record: Option<Vec<u8>>,
    ) -> Result<PendingCommit<V>, Error> {
        let lsn = self.submit(state.latest.lsn, record)?;
        let tables = changes.tables_after(&state.latest, versions);
        let commit = Commit { lsn, writes, rewrite: None };
        state.advance(DatabaseVersion { lsn, tables }, commit);
        Ok(PendingCommit::new(self.clone(), lsn))
    }
}

/// A commit that conflicts with no other and is in the log, but perhaps not durable yet. Nobody sees it until it is durable.
/// If this is dropped, it becomes durable with the next commit that somebody waits for.
#[derive(Debug)]
#[must_use = "a commit is durable when it was waited for"]
pub struct PendingCommit<V: Clone> {
    database: Database<V>,
    lsn: Lsn,
}

impl<V: Clone> PendingCommit<V> {
    pub(crate) fn new(database: Database<V>, lsn: Lsn) -> Self {
        Self { database, lsn }
    }

    /// Blocks until the commit is durable, and then makes it visible to all transactions that start from now on.
    ///
    /// # Errors
    /// [`Error::Log`] if the log has failed. Nobody knows then whether the commit is durable, before the database is opened
    /// again.
    pub fn wait(self) -> Result<Lsn, Error> {
        if let Some(log) = self.database.log() {
            log.wait(self.lsn)?;
        }
        self.database.publish();
        Ok(self.lsn)
    }

    /// As [`Self::wait`], without blocking, if the database was opened with an executor.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub async fn durable(self) -> Result<Lsn, Error> {
        self.database.durable(self.lsn).await?;
        Ok(self.lsn)
    }
}
