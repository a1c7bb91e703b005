//! Commits.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};

use coscan_wal::Lsn;

use crate::database::Database;
use crate::error::Error;
use crate::log::{Record, table_changes};
use crate::state::{Commit, DatabaseVersion, State};
use crate::table::{Table, TableId};
use crate::table_transaction::{TableTransaction, TableWrites};
use crate::version::TableVersion;

/// The most rows of a transaction that is applied under the lock at once.
const FEW_ROWS: u64 = 256;

/// How often a large transaction is applied without the lock, before it is applied under it.
const ATTEMPTS_MAX: u32 = 3;

/// The changes of a transaction, to be committed.
pub(crate) struct Changes<'a, V: Clone> {
    /// The last commit that the transaction sees.
    pub(crate) seen: Lsn,
    pub(crate) dropped: &'a [TableId],
    pub(crate) created: &'a [Table],
    pub(crate) tables: Vec<(TableId, &'a TableTransaction<V>)>,
}

impl<V: Clone> Changes<'_, V> {
    fn is_empty(&self) -> bool {
        self.dropped.is_empty() && self.created.is_empty() && self.tables.is_empty()
    }

    fn record(&self) -> Record<V> {
        let tables = self.tables.iter();
        Record {
            dropped: self.dropped.to_vec(),
            created: self.created.to_vec(),
            changed: tables.map(|(id, changes)| table_changes(*id, changes)).collect(),
        }
    }

    /// Applies the changes to a version. `since` are the commits in it that the transaction does not see.
    fn apply(
        &self,
        latest: &DatabaseVersion<V>,
        since: &[Arc<Commit>],
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
            let since: Vec<_> = since.iter().filter_map(|commit| commit.writes.get(id)).collect();
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
        for table in self.created {
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
        for table in self.created {
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

impl<V: Clone> Database<V> {
    /// Commits a transaction: checks it against all commits that it does not see, and applies its changes to the latest
    /// version of each table. Time grows with the rows that it wrote, and with the commits that it does not see.
    ///
    /// A transaction that wrote many rows is applied without the lock. If its tables were changed meanwhile, this is
    /// repeated.
    pub(crate) fn commit(&self, changes: &Changes<'_, V>) -> Result<PendingCommit<V>, Error> {
        if changes.is_empty() {
            return Ok(PendingCommit::new(self.clone(), changes.seen));
        }
        let record = self.encoded(|| changes.record());
        let rows: u64 = changes.tables.iter().map(|(_, changes)| changes.rows_written()).sum();
        let attempts = if rows <= FEW_ROWS { 0 } else { ATTEMPTS_MAX };
        for _ in 0..attempts {
            let (latest, since) = {
                let state = self.state().lock();
                (state.latest.clone(), state.commits_after(changes.seen))
            };
            let applied = changes.apply(&latest, &since)?;
            let state = self.state().lock();
            if applied.fits(&latest, &state.latest) {
                changes.check_names(&state.latest)?;
                return self.accept(state, changes, applied, record);
            }
        }
        let state = self.state().lock();
        let applied = changes.apply(&state.latest, &state.commits_after(changes.seen))?;
        self.accept(state, changes, applied, record)
    }

    /// Takes a commit into the log, and makes its versions the latest ones.
    fn accept(
        &self,
        mut state: MutexGuard<'_, State<V>>,
        changes: &Changes<'_, V>,
        Applied { versions, writes }: Applied<V>,
        record: Option<Vec<u8>>,
    ) -> Result<PendingCommit<V>, Error> {
        let lsn = self.submit(state.latest.lsn, record)?;
        let tables = changes.tables_after(&state.latest, versions);
        state.advance(DatabaseVersion { lsn, tables }, Commit { lsn, writes });
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
    fn new(database: Database<V>, lsn: Lsn) -> Self {
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
        if let Some(log) = self.database.log() {
            log.committed(self.lsn).await?;
        }
        self.database.publish();
        Ok(self.lsn)
    }
}
