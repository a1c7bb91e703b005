//! A database: its tables, its log, and the numbers of what is new.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use coscan_pdt::InsertId;
use coscan_wal::{Disk, GroupCommit, Log, LogError, LogOptions, Lsn, Recovery, TornTail};

use crate::error::Error;
use crate::log::{Record, Replay, ValueFormat, read_state, remove_old_states, write_state};
use crate::state::SharedState;
use crate::table::{FileId, RetiredFile, Table, TableId};

/// Tables that change. A clone is the same database.
#[derive(Clone)]
pub struct Database<V: Clone> {
    shared: Arc<Shared<V>>,
}

struct Shared<V: Clone> {
    state: Arc<SharedState<V>>,
    /// The log, unless the database is in memory.
    log: Option<DatabaseLog<V>>,
    next_table: AtomicU64,
    next_file: AtomicU64,
    next_insert: AtomicU64,
}

/// The log of a database.
struct DatabaseLog<V> {
    log: GroupCommit,
    format: ValueFormat<V>,
    torn: Option<TornTail>,
    disk: Arc<dyn Disk>,
    /// The bytes of records since the last state.
    bytes: AtomicU64,
    /// The commit of the last state. Whoever writes one has it.
    last_state: Mutex<Lsn>,
}

impl<V: Clone> Default for Database<V> {
    /// An empty database in memory: it is gone with the last of its clones and transactions.
    fn default() -> Self {
        Self::of(Replay::new(), Lsn::default(), None)
    }
}

impl<V: Clone> Database<V> {
    /// Opens the database of a directory, or creates an empty one: reads its log, and has the tables of all commits that
    /// were acknowledged.
    ///
    /// # Errors
    /// [`Error::Log`] if another process has it open, the disk fails, or durable bytes of the log are damaged;
    /// [`Error::UnknownRecord`] if another version of this crate wrote it.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: LogOptions,
        format: ValueFormat<V>,
    ) -> Result<Self, Error> {
        Self::open_with(disk, options, format, GroupCommit::new)
    }

    /// As [`Self::open`]. `share` makes a group commit of the log, with an executor for async commits.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(
        disk: Arc<dyn Disk>,
        options: LogOptions,
        format: ValueFormat<V>,
        share: impl FnOnce(Log) -> GroupCommit,
    ) -> Result<Self, Error> {
        let (log, recovery) = Log::open(Arc::clone(&disk), options)?;
        let (state, replay) = read_state(&*disk, format)?;
        let (replay, bytes) = replay_after(state, replay, &recovery, format)?;
        remove_old_states(&*disk)?;
        let torn = recovery.torn().cloned();
        let (bytes, last_state) = (AtomicU64::new(bytes), Mutex::new(state));
        let log = DatabaseLog { log: share(log), format, torn, disk, bytes, last_state };
        Ok(Self::of(replay, recovery.last(), Some(log)))
    }

    fn of(replay: Replay<V>, lsn: Lsn, log: Option<DatabaseLog<V>>) -> Self {
        let [next_table, next_file, next_insert] = replay.next_numbers().map(AtomicU64::new);
        let (version, retired) = replay.into_version(lsn);
        let state = Arc::new(SharedState::new(version, retired));
        Self { shared: Arc::new(Shared { state, log, next_table, next_file, next_insert }) }
    }

    /// The end of the log that was cut when the database was opened: what a crash had left of commits that were not
    /// acknowledged. If there was no crash, the disk is damaged.
    #[must_use]
    pub fn torn(&self) -> Option<&TornTail> {
        self.shared.log.as_ref()?.torn.as_ref()
    }

    /// The table of this name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<Table> {
        let visible = self.state().lock().visible.clone();
        let mut tables = visible.tables.values().map(|(table, _)| table);
        tables.find(|table| &*table.name == name).cloned()
    }

    /// All tables.
    #[must_use]
    pub fn tables(&self) -> Vec<Table> {
        let visible = self.state().lock().visible.clone();
        visible.tables.values().map(|(table, _)| table.clone()).collect()
    }

    /// A number for a new file. If no commit has it, it may be given again after the database was opened again.
    #[must_use]
    pub fn new_file(&self) -> FileId {
        FileId(self.shared.next_file.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn new_table(&self) -> TableId {
        TableId(self.shared.next_table.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn new_insert(&self) -> InsertId {
        InsertId(self.shared.next_insert.fetch_add(1, Ordering::Relaxed))
    }

    /// Waits until the log has room for another record, without blocking, if the database was opened with an executor. To be
    /// called before [`Transaction::start_commit`](crate::Transaction::start_commit): it bounds the memory of what is not
    /// durable yet.
    ///
    /// # Errors
    /// [`Error::Log`] if the log has failed.
    pub async fn make_room(&self) -> Result<(), Error> {
        if let Some(log) = self.log().filter(|log| log.is_full()) {
            log.committed(log.submitted()).await?;
        }
        Ok(())
    }

    /// Waits until a commit is durable and visible, without blocking, if the database was opened with an executor.
    ///
    /// # Errors
    /// [`Error::Log`] if the log has failed.
    pub async fn durable(&self, lsn: Lsn) -> Result<(), Error> {
        if let Some(log) = self.log() {
            log.committed(lsn).await?;
        }
        self.publish();
        Ok(())
    }

    pub(crate) fn state(&self) -> &Arc<SharedState<V>> {
        &self.shared.state
    }

    /// The format of values in the log; `None` in memory.
    pub(crate) fn value_format(&self) -> Option<ValueFormat<V>> {
        self.shared.log.as_ref().map(|log| log.format)
    }

    /// A record as the log has it; `None` in memory.
    pub(crate) fn encoded(&self, record: impl FnOnce() -> Record<V>) -> Option<Vec<u8>> {
        self.shared.log.as_ref().map(|log| record().encode(log.format))
    }

    /// Takes a record into the log, and returns the number of the commit after `latest`. It is not durable yet.
    pub(crate) fn submit(&self, latest: Lsn, record: Option<Vec<u8>>) -> Result<Lsn, Error> {
        let (Some(log), Some(record)) = (self.log(), record) else { return Ok(latest.next()) };
        let bytes = record.len();
        let lsn = log.submit(record).map_err(|error| match error {
            LogError::RecordTooLarge { .. } => Error::TooLarge { bytes },
            error => error.into(),
        })?;
        if let Some(log) = &self.shared.log {
            log.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        Ok(lsn)
    }

    /// About the bytes of the log that opening the database replays; 0 in memory.
    #[must_use]
    pub fn replayed_bytes(&self) -> u64 {
        self.shared.log.as_ref().map_or(0, |log| log.bytes.load(Ordering::Relaxed))
    }

    /// Writes the state of the database to a file, and cuts the log before it, so that opening the database takes no longer
    /// than reading the state. Time grows with the changes of all tables; commits wait only while segments are removed. In
    /// memory this does nothing.
    ///
    /// # Errors
    /// [`Error::WriteState`] if the file cannot be written: then the log stays as it was. [`Error::Log`] if the log has failed.
    pub fn write_state(&self) -> Result<(), Error> {
        let Some(log) = &self.shared.log else { return Ok(()) };
        let mut last = log.last_state.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = log.bytes.load(Ordering::Relaxed);
        let (version, retired) = {
            let state = self.state().lock();
            (state.visible.clone(), state.retired.clone())
        };
        if version.lsn == *last {
            return Ok(());
        }
        let is_retired = |file: &RetiredFile| file.lsn <= version.lsn;
        let retired: Vec<_> = retired.into_iter().filter(is_retired).collect();
        let Shared { next_table, next_file, next_insert, .. } = &*self.shared;
        let next =
            [next_table, next_file, next_insert].map(|number| number.load(Ordering::Relaxed));
        let written = write_state(&*log.disk, (&version, &retired), next, log.format);
        if let Err(error) = written {
            // The error of writing is the one to be told.
            drop(remove_old_states(&*log.disk));
            return Err(error);
        }
        *last = version.lsn;
        log.bytes.fetch_sub(bytes, Ordering::Relaxed);
        log.log.cut_before(version.lsn.next())?;
        remove_old_states(&*log.disk)
    }

    /// The log, unless the database is in memory.
    pub(crate) fn log(&self) -> Option<&GroupCommit> {
        self.shared.log.as_ref().map(|log| &log.log)
    }

    /// Makes all durable commits visible.
    pub(crate) fn publish(&self) {
        let durable = self.log().map(GroupCommit::durable);
        let forgotten = self.state().lock().publish(durable);
        drop(forgotten); // Without the lock.
    }
}

/// The database that a log has after a state, and the bytes of its records.
///
/// # Errors
/// [`Error::Log`] if the log begins after the state or ends before it.
fn replay_after<V: Clone>(
    state: Lsn,
    mut replay: Replay<V>,
    recovery: &Recovery,
    format: ValueFormat<V>,
) -> Result<(Replay<V>, u64), Error> {
    let mut bytes = 0;
    recovery.for_each(state.next(), |record| {
        let unknown = Error::UnknownRecord { lsn: record.lsn };
        let decoded = Record::decode(record.payload, format).ok_or(unknown.clone())?;
        bytes += record.payload.len() as u64;
        replay.apply(record.lsn, decoded).map_err(|_| unknown)
    })?;
    replay.apply_pending().map_err(|_| Error::UnknownRecord { lsn: recovery.last() })?;
    Ok((replay, bytes))
}

impl<V: Clone> fmt::Debug for Database<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let latest = self.state().lock().latest.clone();
        f.debug_struct("Database")
            .field("lsn", &latest.lsn)
            .field("tables", &latest.tables.len())
            .finish_non_exhaustive()
    }
}
