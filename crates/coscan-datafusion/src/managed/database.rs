//! A database of tables that statements change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path as SystemPath;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use coscan_database::wal::{Disk, GroupCommit, LocalDisk, LogOptions};
use coscan_database::{Database, TableId};
use coscan_runtime::MetadataReservation;
use coscan_storage::table::Value;
use datafusion::common::{DataFusionError, exec_err};
use datafusion::error::Result;
use tokio::sync::Notify;
use url::Url;

use crate::error::from_database;
use crate::managed::background;
use crate::managed::data_files::{DataFiles, remove_unused};
use crate::managed::database_options::DatabaseOptions;
use crate::managed::encoding::{VALUES, schema_of};
use crate::managed::memory;
use crate::managed::opened_files::{OpenedFiles, fits_columns};
use crate::options::CoscanOptions;

/// A database of tables that `INSERT`, `UPDATE`, `DELETE` and `MERGE` change. A clone is the same database.
///
/// Each statement is a transaction of its own, unless its session has begun one: it sees all tables as they were when it
/// was planned, and changes them when it is executed. If another statement changed a row meanwhile that it changes, too,
/// it is planned and executed again, up to three times. A change is durable when its statement has returned.
#[derive(Clone)]
pub struct ManagedDatabase {
    inner: Arc<Inner>,
    /// Held by all who use the database; `None` for the work in the background itself.
    _background: Option<Arc<BackgroundGuard>>,
}

/// Ends the work in the background when it is dropped.
struct BackgroundGuard {
    closed: Arc<Notify>,
}

/// A database that is not kept open.
pub(crate) struct WeakDatabase {
    inner: Weak<Inner>,
    changed: Arc<Notify>,
}

impl WeakDatabase {
    /// Waits until something is committed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The database; `None` if it was closed.
    pub(crate) fn upgrade(&self) -> Option<ManagedDatabase> {
        let inner = self.inner.upgrade()?;
        Some(ManagedDatabase { inner, _background: None })
    }
}

impl Drop for BackgroundGuard {
    fn drop(&mut self) {
        self.closed.notify_one();
    }
}

struct Inner {
    coscan: CoscanOptions,
    options: DatabaseOptions,
    versions: Database<Value>,
    files: DataFiles,
    /// The name in EXPLAIN, and in the identity of tables.
    name: String,
    /// The files of each table that were opened last.
    opened: Mutex<BTreeMap<TableId, Arc<OpenedFiles>>>,
    /// The memory of the changes of all tables, estimated.
    memory: Mutex<MetadataReservation>,
    /// The memory of the changes of open transactions, estimated.
    open_bytes: AtomicU64,
    /// Something was committed.
    changed: Arc<Notify>,
    /// Held by a checkpoint.
    checkpointing: tokio::sync::Mutex<()>,
}

impl ManagedDatabase {
    /// An empty database in memory: its rows are gone with the last of its clones, tables and statements. Its tables share
    /// the reads and the memory of the manager of these options.
    #[must_use]
    pub fn in_memory(coscan: CoscanOptions) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("memory-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let url = Url::parse(&format!("coscan://{name}")).expect("a URL");
        let options = DatabaseOptions {
            background: false,
            checkpoint_bytes_per_second: None,
            retention: Duration::ZERO,
        };
        Self::new(coscan, options, Database::default(), DataFiles::in_memory(url), name)
    }

    /// Opens the database of a directory. If there is none, it is created, and so is the directory. One process has it open
    /// at a time.
    ///
    /// It must be called on a Tokio runtime, to which the database then hands its writes.
    ///
    /// # Errors
    /// If another process has it open, the directory cannot be written, or durable bytes of its log are damaged.
    pub async fn open(coscan: CoscanOptions, directory: impl AsRef<SystemPath>) -> Result<Self> {
        Self::open_with(coscan, directory, DatabaseOptions::default()).await
    }

    /// As [`Self::open`], with these options.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_with(
        coscan: CoscanOptions,
        directory: impl AsRef<SystemPath>,
        options: DatabaseOptions,
    ) -> Result<Self> {
        let directory = std::path::absolute(directory)?;
        let name = directory.display().to_string();
        let opening = move || {
            let disk: Arc<dyn Disk> = Arc::new(LocalDisk::open(&directory)?);
            // Stores know no `..`.
            let directory = directory.canonicalize()?;
            let runtime = tokio::runtime::Handle::current();
            let share = move |log| {
                GroupCommit::with_executor(log, move |job| drop(runtime.spawn_blocking(job)))
            };
            let options = LogOptions::default();
            let versions = Database::open_with(Arc::clone(&disk), options, VALUES, share);
            let versions = versions.map_err(from_database)?;
            check_versions(&versions)?;
            remove_unused(&*disk, &versions)?;
            Ok::<_, DataFusionError>((directory, disk, versions))
        };
        let opened = tokio::task::spawn_blocking(opening).await;
        let opened = opened.map_err(|error| DataFusionError::External(Box::new(error)))?;
        let (directory, disk, versions) = opened
            .map_err(|error| error.context(format!("the database {name} cannot be opened")))?;
        if let Some(torn) = versions.torn() {
            log::warn!(
                "{name}: the last {} bytes of {}, from {} on, were cut. They are what a crash had left of statements that had \
                 not returned. If there was no crash, the disk is damaged: compare with a backup",
                torn.bytes,
                torn.path,
                torn.lsn
            );
        }
        let files = DataFiles::in_directory(coscan.stores(), &directory, disk)?;
        let has_background = options.background;
        let database = Self::new(coscan, options, versions, files, name);
        Ok(if has_background { database.with_background() } else { database })
    }

    fn new(
        coscan: CoscanOptions,
        options: DatabaseOptions,
        versions: Database<Value>,
        files: DataFiles,
        name: String,
    ) -> Self {
        let memory = coscan.manager().count_metadata(memory::change_bytes(&versions));
        let (opened, memory) = (Mutex::default(), Mutex::new(memory));
        let (changed, checkpointing) = (Arc::default(), tokio::sync::Mutex::default());
        let inner = Inner {
            coscan,
            options,
            versions,
            files,
            name,
            opened,
            memory,
            open_bytes: AtomicU64::new(0),
            changed,
            checkpointing,
        };
        Self { inner: Arc::new(inner), _background: None }
    }

    /// The same database for its users. Work in the background ends when they are gone.
    fn with_background(self) -> Self {
        let closed = Arc::new(Notify::new());
        let guard = BackgroundGuard { closed: Arc::clone(&closed) };
        let database = Self { _background: Some(Arc::new(guard)), ..self.clone() };
        // Something may be due since the database was open before.
        self.notify_changed();
        let weak = WeakDatabase {
            inner: Arc::downgrade(&self.inner),
            changed: Arc::clone(&self.inner.changed),
        };
        tokio::spawn(async move {
            tokio::select! {
                () = closed.notified() => {}
                () = background::run(weak) => {}
            }
        });
        database
    }

    /// Lets the work in the background see that something was committed.
    pub(crate) fn notify_changed(&self) {
        self.inner.changed.notify_one();
    }

    /// The memory of the changes of open transactions.
    pub(crate) fn open_bytes(&self) -> &AtomicU64 {
        &self.inner.open_bytes
    }

    /// A checkpoint holds it.
    pub(crate) fn checkpointing(&self) -> &tokio::sync::Mutex<()> {
        &self.inner.checkpointing
    }

    /// The memory of the changes of all tables, estimated.
    pub(crate) fn memory(&self) -> MutexGuard<'_, MetadataReservation> {
        self.inner.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The files of a table that were opened last.
    pub(crate) fn opened(&self, table: TableId) -> Arc<OpenedFiles> {
        let mut opened = self.inner.opened.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(opened.entry(table).or_default())
    }

    /// Forgets what was kept of tables that were dropped.
    pub(crate) fn forget_dropped(&self) {
        let tables: BTreeSet<_> =
            self.inner.versions.tables().iter().map(|table| table.id).collect();
        let mut opened = self.inner.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|table, _| tables.contains(table));
        drop(opened);
        self.recount_changes();
    }

    pub(crate) fn versions(&self) -> &Database<Value> {
        &self.inner.versions
    }

    pub(crate) fn coscan(&self) -> &CoscanOptions {
        &self.inner.coscan
    }

    pub(crate) fn options(&self) -> &DatabaseOptions {
        &self.inner.options
    }

    pub(crate) fn files(&self) -> &DataFiles {
        &self.inner.files
    }

    pub(crate) fn name(&self) -> &str {
        &self.inner.name
    }

    /// Whether both are the same database.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

/// Checks that the changes of all tables fit their columns, as far as the log does not ensure it.
fn check_versions(versions: &Database<Value>) -> Result<()> {
    let transaction = versions.begin();
    for table in versions.tables() {
        let columns = schema_of(&table.definition)?;
        let version = transaction.version(table.id).map_err(from_database)?;
        if !fits_columns(&version, &columns) {
            return exec_err!(
                "the log has values of table {} that are not of the types of its columns: restore the database from a backup",
                table.name
            );
        }
    }
    Ok(())
}

impl fmt::Debug for ManagedDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagedDatabase").field("name", &self.inner.name).finish_non_exhaustive()
    }
}
