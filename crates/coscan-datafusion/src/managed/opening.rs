//! Opening a database in a directory.

use std::path::Path as SystemPath;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coscan_database::wal::{Disk, GroupCommit, LocalDisk, LogError, LogOptions};
use coscan_database::{Database, Error};
use coscan_storage::table::Value;
use datafusion::common::{DataFusionError, exec_err};
use datafusion::error::Result;

use crate::error::from_database;
use crate::managed::checkpointer::run_in_background;
use crate::managed::data_files::{DataFiles, remove_unused};
use crate::managed::database::ManagedDatabase;
use crate::managed::database_options::DatabaseOptions;
use crate::managed::encoding::{VALUES, schema_of};
use crate::managed::opened_files::fits_columns;
use crate::managed::publisher::{DatabaseDirectory, Publishing};
use crate::options::CoscanOptions;

/// How often, and for how long, it is tried to open a database that is locked.
const LOCK_WAIT: Duration = Duration::from_millis(10);
const LOCK_WAIT_MAX: Duration = Duration::from_secs(1);

impl ManagedDatabase {
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
            let open = || {
                Database::open_with(Arc::clone(&disk), LogOptions::default(), VALUES, share.clone())
            };
            let versions = once_unlocked(open).map_err(from_database)?;
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
        let files = DataFiles::in_directory(coscan.stores(), &directory, Arc::clone(&disk))?;
        let publishing = options.publisher.clone().map(|publisher| {
            Publishing::new(publisher, DatabaseDirectory { path: directory, disk })
        });
        let has_background = options.background;
        let database = Self::new(coscan, options, versions, files, publishing, name);
        Ok(if has_background { run_in_background(database) } else { database })
    }
}

/// Opens a database, and waits for a moment if it is locked: the last write of one that was just closed may still be ending.
fn once_unlocked<V>(open: impl Fn() -> Result<V, Error>) -> Result<V, Error> {
    let started = Instant::now();
    loop {
        match open() {
            Err(Error::Log(LogError::Locked { .. })) if started.elapsed() < LOCK_WAIT_MAX => {
                std::thread::sleep(LOCK_WAIT);
            }
            opened => return opened,
        }
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
