//! A database of tables that statements change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use coscan_database::{Database, TableId};
use coscan_runtime::MetadataReservation;
use coscan_storage::table::Value;
use tokio::sync::Notify;
use url::Url;

use crate::managed::data_files::DataFiles;
use crate::managed::database_options::DatabaseOptions;
use crate::managed::opened_files::{OpenedFiles, change_bytes};
use crate::managed::publisher::Publishing;
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
    publishing: Option<Publishing>,
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
            publisher: None,
        };
        Self::new(coscan, options, Database::default(), DataFiles::in_memory(url), None, name)
    }

    pub(crate) fn new(
        coscan: CoscanOptions,
        options: DatabaseOptions,
        versions: Database<Value>,
        files: DataFiles,
        publishing: Option<Publishing>,
        name: String,
    ) -> Self {
        let memory = coscan.manager().count_metadata(change_bytes(&versions));
        let (opened, memory) = (Mutex::default(), Mutex::new(memory));
        let (changed, checkpointing) = (Arc::default(), tokio::sync::Mutex::default());
        let inner = Inner {
            coscan,
            options,
            versions,
            files,
            publishing,
            name,
            opened,
            memory,
            open_bytes: AtomicU64::new(0),
            changed,
            checkpointing,
        };
        Self { inner: Arc::new(inner), _background: None }
    }

    /// The same database for its users, and what the work in its background has of it: the database, as long as it is open, and
    /// word that its users are gone.
    pub(crate) fn for_users(self) -> (Self, WeakDatabase, Arc<Notify>) {
        let closed = Arc::new(Notify::new());
        let guard = BackgroundGuard { closed: Arc::clone(&closed) };
        let weak = WeakDatabase {
            inner: Arc::downgrade(&self.inner),
            changed: Arc::clone(&self.inner.changed),
        };
        (Self { _background: Some(Arc::new(guard)), ..self }, weak, closed)
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

    pub(crate) fn publishing(&self) -> Option<&Publishing> {
        self.inner.publishing.as_ref()
    }

    pub(crate) fn name(&self) -> &str {
        &self.inner.name
    }

    /// Whether both are the same database.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl fmt::Debug for ManagedDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagedDatabase").field("name", &self.inner.name).finish_non_exhaustive()
    }
}
