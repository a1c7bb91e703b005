//! The latest state of a database, and as much of the past as running transactions need.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coscan_wal::Lsn;

use crate::error::Error;
use crate::rewrite::TableRewrite;
use crate::table::{RetiredFile, Table, TableId};
use crate::table_writes::TableWrites;
use crate::version::TableVersion;

/// The most rows that are applied under the lock at once, if it can be helped.
pub(crate) const ROWS_UNDER_LOCK_MAX: u64 = 256;

/// All tables of a database after a commit.
#[derive(Clone)]
pub(crate) struct DatabaseVersion<V: Clone> {
    pub(crate) lsn: Lsn,
    pub(crate) tables: Arc<BTreeMap<TableId, (Table, TableVersion<V>)>>,
}

impl<V: Clone> DatabaseVersion<V> {
    pub(crate) fn version(&self, table: TableId) -> Result<&TableVersion<V>, Error> {
        let found = self.tables.get(&table);
        found.map(|(_, version)| version).ok_or(Error::NoSuchTable)
    }
}

/// What later commits of transactions that do not see a commit need to know of it.
pub(crate) struct Commit<V: Clone> {
    pub(crate) lsn: Lsn,
    /// The rows that it wrote, which those of others are checked against.
    pub(crate) writes: BTreeMap<TableId, TableWrites>,
    /// The table whose files it has replaced, if it is a checkpoint.
    pub(crate) rewrite: Option<(TableId, TableRewrite<V>)>,
}

impl<V: Clone> Commit<V> {
    /// How it has replaced files of a table.
    pub(crate) fn rewrite_of(&self, table: TableId) -> Option<&TableRewrite<V>> {
        self.rewrite.as_ref().filter(|(id, _)| *id == table).map(|(_, rewrite)| rewrite)
    }
}

pub(crate) struct State<V: Clone> {
    /// The tables after all commits, also after those that are not durable yet.
    pub(crate) latest: DatabaseVersion<V>,
    /// The tables after the last durable commit, which new transactions see.
    pub(crate) visible: DatabaseVersion<V>,
    /// The files that checkpoints have replaced and that are still there, the first ones first. Those of commits that are
    /// not durable yet are among them.
    pub(crate) retired: VecDeque<RetiredFile>,
    /// The tables after each commit that is not durable yet.
    pending: VecDeque<DatabaseVersion<V>>,
    /// The commits that running transactions may conflict with, in order.
    commits: VecDeque<Arc<Commit<V>>>,
    /// The numbers of running transactions by the last commit that they see.
    snapshots: BTreeMap<Lsn, usize>,
}

/// A state that threads share.
pub(crate) struct SharedState<V: Clone>(Mutex<State<V>>);

/// All tables at the start of a transaction. The commits since are kept as long as it is.
pub(crate) struct Snapshot<V: Clone> {
    state: Arc<SharedState<V>>,
    at: DatabaseVersion<V>,
}

impl<V: Clone> SharedState<V> {
    /// A state without a past.
    pub(crate) fn new(latest: DatabaseVersion<V>, retired: VecDeque<RetiredFile>) -> Self {
        Self(Mutex::new(State {
            visible: latest.clone(),
            latest,
            retired,
            pending: VecDeque::new(),
            commits: VecDeque::new(),
            snapshots: BTreeMap::new(),
        }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State<V>> {
        // Changes of the state cannot panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A snapshot of what is visible now.
    pub(crate) fn snapshot(self: &Arc<Self>) -> Snapshot<V> {
        let mut state = self.lock();
        let at = state.visible.clone();
        *state.snapshots.entry(at.lsn).or_default() += 1;
        drop(state);
        Snapshot { state: Arc::clone(self), at }
    }
}

impl<V: Clone> State<V> {
    /// Makes a version the latest one, after a commit. It is visible when it is durable.
    pub(crate) fn advance(&mut self, latest: DatabaseVersion<V>, commit: Commit<V>) {
        self.pending.push_back(latest.clone());
        self.latest = latest;
        self.commits.push_back(Arc::new(commit));
    }

    /// Makes the commits up to one visible, or all. Returns those that are forgotten, to be dropped without the lock.
    #[must_use]
    pub(crate) fn publish(&mut self, durable: Option<Lsn>) -> Vec<Arc<Commit<V>>> {
        let is_durable =
            |pending: &DatabaseVersion<V>| durable.is_none_or(|lsn| pending.lsn <= lsn);
        while let Some(visible) = self.pending.pop_front_if(|pending| is_durable(pending)) {
            self.visible = visible;
        }
        self.forget()
    }

    /// The commits that a transaction does not see which sees those up to `seen`.
    pub(crate) fn commits_after(&self, seen: Lsn) -> Vec<Arc<Commit<V>>> {
        let first = self.commits.partition_point(|commit| commit.lsn <= seen);
        self.commits.range(first..).cloned().collect()
    }

    /// Takes the files that were retired at a time or before and that no running transaction reads, up to the first one
    /// that has to stay.
    pub(crate) fn take_retired(&mut self, before: u64) -> Vec<RetiredFile> {
        let oldest = self.oldest();
        let is_over = |file: &mut RetiredFile| file.since <= before && file.lsn <= oldest;
        std::iter::from_fn(|| self.retired.pop_front_if(is_over)).collect()
    }

    /// The last commit that all running transactions see.
    pub(crate) fn oldest(&self) -> Lsn {
        let first = self.snapshots.first_key_value();
        first.map_or(self.visible.lsn, |(lsn, _)| *lsn)
    }

    /// Forgets commits that all running transactions see, and returns them: there may be many after a long transaction.
    fn forget(&mut self) -> Vec<Arc<Commit<V>>> {
        let oldest = self.oldest();
        let seen = self.commits.partition_point(|commit| commit.lsn <= oldest);
        self.commits.drain(..seen).collect()
    }
}

impl<V: Clone> Snapshot<V> {
    pub(crate) fn lsn(&self) -> Lsn {
        self.at.lsn
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.at.tables.values().map(|(table, _)| table)
    }

    pub(crate) fn version(&self, table: TableId) -> Result<&TableVersion<V>, Error> {
        self.at.version(table)
    }
}

impl<V: Clone> Drop for Snapshot<V> {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if let Some(count) = state.snapshots.get_mut(&self.at.lsn) {
            *count -= 1;
            if *count == 0 {
                state.snapshots.remove(&self.at.lsn);
                let forgotten = state.forget();
                drop(state);
                drop(forgotten);
            }
        }
    }
}

impl<V: Clone> fmt::Debug for Snapshot<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("lsn", &self.at.lsn).finish_non_exhaustive()
    }
}
