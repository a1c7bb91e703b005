//! Reads versions of a table from its log. All functions block, so they run on threads that may be blocked.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use coscan_storage::table::{ColumnTypes, FileChanges};
use datafusion::error::Result;
use delta_kernel::history_manager::{HistoryCommitType, latest_version_as_of};
use delta_kernel::scan::state::{DvInfo, ScanFile};
use delta_kernel::snapshot::{Snapshot, SnapshotRef};
use delta_kernel::table_features::ColumnMappingMode;
use delta_kernel::{Engine, FileMeta, KernelError, KernelResult, Version};
use delta_kernel_default_engine::DefaultEngine;
use delta_kernel_default_engine::executor::tokio::TokioBackgroundExecutor;
use object_store::ObjectStore;
use url::Url;

use crate::columns::Columns;
use crate::error::from_kernel;

/// The log of a table.
pub(crate) struct Log {
    root: Url,
    types: ColumnTypes,
    engine: DefaultEngine<TokioBackgroundExecutor>,
    /// The newest version that was read, from which newer ones are read, with its commit.
    newest: Mutex<Option<(SnapshotRef, Option<FileMeta>)>>,
    /// The deletion vector that was read last of each data file, as long as a snapshot has it.
    deletions: Mutex<HashMap<String, (DvInfo, Weak<FileChanges>)>>,
}

/// A version of a table.
#[derive(Debug)]
pub(crate) struct LoggedVersion {
    pub(crate) version: Version,
    pub(crate) columns: Columns,
    pub(crate) files: Vec<LoggedFile>,
}

/// A data file of a version.
#[derive(Debug)]
pub(crate) struct LoggedFile {
    pub(crate) location: Url,
    /// The text of its value of each partition column; `None` for NULL.
    pub(crate) partition_values: Vec<Option<String>>,
    pub(crate) deleted_rows: Option<Arc<FileChanges>>,
}

impl Log {
    /// The log of the table in this directory.
    pub(crate) fn new(root: Url, store: Arc<dyn ObjectStore>, types: ColumnTypes) -> Self {
        let engine = DefaultEngine::builder(store).build();
        Self { root, types, engine, newest: Mutex::default(), deletions: Mutex::default() }
    }

    pub(crate) fn root(&self) -> &Url {
        &self.root
    }

    /// The newest version, or `None` if that is `known`.
    ///
    /// # Errors
    /// If the log cannot be read, or the table needs a feature that the kernel does not support.
    pub(crate) fn newest(&self, known: Option<Version>) -> Result<Option<LoggedVersion>> {
        self.newer_than(known).map_err(|error| from_kernel(&self.root, error))
    }

    fn newer_than(&self, known: Option<Version>) -> KernelResult<Option<LoggedVersion>> {
        let before = lock(&self.newest).clone();
        // If the commit is another one, the table was deleted and made anew.
        let before = match before {
            Some((snapshot, commit)) if self.commit(snapshot.version())? == commit => {
                Some(snapshot)
            }
            _ => None,
        };
        let is_known = |snapshot: &SnapshotRef| known == Some(snapshot.version());
        let snapshot = match &before {
            Some(before) => Snapshot::builder_from(Arc::clone(before)).build(&self.engine)?,
            None => Snapshot::builder_for(&self.root).build(&self.engine)?,
        };
        if before.is_some_and(|_| is_known(&snapshot)) {
            return Ok(None);
        }
        let commit = self.commit(snapshot.version())?;
        *lock(&self.newest) = Some((Arc::clone(&snapshot), commit));
        self.read(snapshot).map(Some)
    }

    /// The file of a commit, if it is still there.
    fn commit(&self, version: Version) -> KernelResult<Option<FileMeta>> {
        let name = format!("{version:020}.json");
        let before = self.root.join(&format!("_delta_log/{version:020}"))?;
        let listed = self.engine.storage_handler().list_from(&before)?;
        for file in listed {
            let file = file?;
            let path = file.location.path();
            if path.ends_with(&name) {
                return Ok(Some(file));
            }
            if !path.contains(&format!("/_delta_log/{version:020}.")) {
                break;
            }
        }
        Ok(None)
    }

    /// A version by its number.
    ///
    /// # Errors
    /// As [`newest`](Self::newest); also if there is no such version.
    pub(crate) fn version(&self, version: Version) -> Result<LoggedVersion> {
        let read = || {
            let snapshot = Snapshot::builder_for(&self.root).at_version(version);
            self.read(snapshot.build(&self.engine)?)
        };
        read().map_err(|error| from_kernel(&self.root, error))
    }

    /// The last version at a time, in milliseconds since 1970 in UTC.
    ///
    /// # Errors
    /// As [`newest`](Self::newest); also if no version is so old.
    pub(crate) fn version_at(&self, milliseconds: i64) -> Result<LoggedVersion> {
        let find = || {
            let newest = Snapshot::builder_for(&self.root).build(&self.engine)?;
            let recreatable = HistoryCommitType::Recreatable;
            let commit = latest_version_as_of(&newest, &self.engine, milliseconds, recreatable)?;
            Ok(commit.version)
        };
        self.version(find().map_err(|error| from_kernel(&self.root, error))?)
    }

    fn read(&self, snapshot: SnapshotRef) -> KernelResult<LoggedVersion> {
        lock(&self.deletions).retain(|_, (_, rows)| rows.strong_count() > 0);
        let version = snapshot.version();
        let mode = snapshot.table_properties().column_mapping_mode;
        let scan = snapshot.scan_builder().build()?;
        let columns = Columns::new(
            scan.logical_schema(),
            scan.physical_schema(),
            mode.unwrap_or(ColumnMappingMode::None),
            self.types,
        )?;
        let mut files: Vec<ScanFile> = Vec::new();
        for read in scan.scan_metadata(&self.engine)? {
            files = read?.visit_scan_files(files, |files, file| files.push(file))?;
        }
        let files = files.into_iter().map(|file| self.file(file, &columns.partition_keys));
        let mut files = files.collect::<KernelResult<Vec<_>>>()?;
        // The log lists files in no order, but equal queries should see rows in equal order.
        files.sort_unstable_by(|a, b| a.location.cmp(&b.location));
        Ok(LoggedVersion { version, columns, files })
    }

    fn file(&self, file: ScanFile, partition_keys: &[String]) -> KernelResult<LoggedFile> {
        let location = self.root.join(&file.path)?;
        // An empty text means NULL, as a missing one does.
        let value = |key| file.partition_values.get(key).filter(|text| !text.is_empty()).cloned();
        let partition_values = partition_keys.iter().map(value).collect();
        let deleted_rows = self.deleted_rows(file.path, file.dv_info)?;
        Ok(LoggedFile { location, partition_values, deleted_rows })
    }

    /// The deleted rows of a file. Versions that have the same deletion vector share them.
    fn deleted_rows(&self, path: String, vector: DvInfo) -> KernelResult<Option<Arc<FileChanges>>> {
        if !vector.has_vector() {
            return Ok(None);
        }
        if let Some((known, rows)) = lock(&self.deletions).get(&path)
            && *known == vector
            && let Some(rows) = rows.upgrade()
        {
            return Ok(Some(rows));
        }
        let Some(rows) = vector.get_row_indexes(&self.engine, &self.root)? else { return Ok(None) };
        // How many rows the file has is known when it is opened.
        let rows = FileChanges::from_deleted(u64::MAX, rows).map_err(KernelError::generic_err)?;
        let rows = Arc::new(rows);
        lock(&self.deletions).insert(path, (vector, Arc::downgrade(&rows)));
        Ok(Some(rows))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("root", &self.root.as_str()).finish_non_exhaustive()
    }
}
