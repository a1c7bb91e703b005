//! Publishes versions of tables.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use coscan_datafusion::{
    CoscanOptions, DatabaseDirectory, DatabaseOptions, ManagedDatabase, PublishedVersion,
    TablePublisher,
};
use datafusion::common::{DataFusionError, exec_err, plan_err};
use datafusion::error::Result;

use crate::publishing::actions::Commit;
use crate::publishing::directory::{TableDirectory, name_of};
use crate::publishing::log_state::{LogState, check_origin, write_checkpoint};
use crate::publishing::schema::DeltaSchema;

/// How many times a commit is attempted while other engines take its version.
const ATTEMPTS_MAX: u32 = 10;

/// A checkpoint of the log is written every so many versions.
const VERSIONS_PER_CHECKPOINT: u64 = 100;

/// Publishes the tables of databases as Delta tables: table `trips` of the database in a directory is the Delta table in its
/// directory `delta/trips`. Files are linked, so that they take no space twice, and other engines cannot take any from the
/// database.
///
/// A version is published when all of its rows are in files: after a checkpoint, and after a statement whose rows became files at
/// once. Other engines may compact and vacuum the Delta table; if they change it otherwise, it is not published any more.
#[derive(Default, Debug)]
pub struct DeltaPublisher {
    /// The newest version of each directory, as far as this process has written it.
    written: Mutex<HashMap<PathBuf, Arc<LogState>>>,
}

/// Opens the database of a directory, as [`ManagedDatabase::open`] does, and publishes its tables as Delta tables.
///
/// # Errors
/// As [`ManagedDatabase::open`].
pub async fn open_database(
    coscan: CoscanOptions,
    directory: impl AsRef<Path>,
) -> Result<ManagedDatabase> {
    let publisher = Some(Arc::new(DeltaPublisher::default()) as _);
    let options = DatabaseOptions { publisher, ..DatabaseOptions::default() };
    ManagedDatabase::open_with(coscan, directory, options).await
}

impl TablePublisher for DeltaPublisher {
    fn publish(&self, database: &DatabaseDirectory, version: &PublishedVersion) -> Result<()> {
        let directory = TableDirectory::new(database, &version.name);
        if directory.is_too_long() {
            log::info!("table {} is not published: its name is too long", version.name);
            return Ok(());
        }
        self.publish_in(&directory, version).map_err(|error| of_directory(error, &directory))
    }

    fn clean(
        &self,
        database: &DatabaseDirectory,
        tables: &BTreeSet<Arc<str>>,
        files: &BTreeSet<Arc<str>>,
    ) -> Result<()> {
        let files: BTreeSet<_> = files.iter().map(|path| name_of(path)).collect();
        let mut cleaned = Ok(());
        for directory in TableDirectory::all(database)? {
            let is_dropped = !tables.iter().any(|table| directory.is_of(table));
            let done = match is_dropped {
                true => self.remove(&directory),
                false => self.remove_links(&directory, &files),
            };
            cleaned = cleaned.and(done.map_err(|error| of_directory(error, &directory)));
        }
        cleaned
    }
}

/// An error with the directory that it is about.
fn of_directory(error: DataFusionError, directory: &TableDirectory) -> DataFusionError {
    error.context(format!("the Delta table {}", directory.path().display()))
}

impl DeltaPublisher {
    fn publish_in(&self, directory: &TableDirectory, version: &PublishedVersion) -> Result<()> {
        let schema = match DeltaSchema::new(&version.columns) {
            Ok(schema) => schema,
            Err(reason) => {
                log::info!("table {} is not published as a Delta table: {reason}", version.name);
                // It may be there of another table of this name.
                return self.remove(directory);
            }
        };
        for _ in 0..ATTEMPTS_MAX {
            let before = self.newest(directory, version.table)?;
            if let Some(written) = write_version(directory, version, &schema, before)? {
                // Another engine may have removed a file that no version had yet.
                link(directory, version)?;
                self.written().insert(directory.path(), written);
                return Ok(());
            }
        }
        exec_err!("other engines kept writing to it: run VACUUM FULL again")
    }

    /// The newest version of a directory, if this has written it.
    fn last_written(&self, directory: &TableDirectory) -> Option<Arc<LogState>> {
        let written = self.written().get(&directory.path()).cloned()?;
        // What another engine does to the log shows in the versions that there are.
        let is_newest =
            directory.has_commit(written.version) && !directory.has_commit(written.version + 1);
        is_newest.then_some(written)
    }

    /// The newest version of a directory; `None` if there is none.
    fn newest(&self, directory: &TableDirectory, table: u64) -> Result<Option<Arc<LogState>>> {
        let written = self.last_written(directory);
        self.written().remove(&directory.path());
        if let Some(written) = written.filter(|written| written.table == table) {
            return Ok(Some(written));
        }
        let Some(state) = LogState::read(directory, table)? else { return Ok(None) };
        if state.lsn.is_none() {
            // It is that of a table which was dropped.
            directory.remove()?;
            return Ok(None);
        }
        Ok(Some(Arc::new(state)))
    }

    /// Removes what was published of a table, unless another engine has changed it.
    fn remove(&self, directory: &TableDirectory) -> Result<()> {
        self.written().remove(&directory.path());
        match directory.newest_version()? {
            Some(newest) => match check_origin(directory, newest) {
                Ok(()) => directory.remove()?,
                Err(error) => log::warn!("the Delta table of a dropped table stays: {error}"),
            },
            // Something was interrupted, or it is not a table at all.
            None => directory.remove_links(|_| false)?,
        }
        Ok(())
    }

    /// Removes links to all files but these and those of the newest version.
    fn remove_links(&self, directory: &TableDirectory, files: &BTreeSet<&str>) -> Result<()> {
        let state = match self.last_written(directory) {
            Some(written) => Some(written),
            // The number of the table does not matter here.
            None => match LogState::read(directory, 0) {
                Ok(state) => state.map(Arc::new),
                Err(error) => {
                    log::warn!("no link is removed: {error}");
                    return Ok(());
                }
            },
        };
        let is_listed =
            |name: &str| state.as_ref().is_some_and(|state| state.files.contains_key(name));
        Ok(directory.remove_links(|name| files.contains(name) || is_listed(name))?)
    }

    fn written(&self) -> MutexGuard<'_, HashMap<PathBuf, Arc<LogState>>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the version after another one, unless the log has it. Returns the newest version; `None` if another engine has
/// written one meanwhile.
fn write_version(
    directory: &TableDirectory,
    version: &PublishedVersion,
    schema: &DeltaSchema,
    before: Option<Arc<LogState>>,
) -> Result<Option<Arc<LogState>>> {
    if let Some(before) = &before
        && before.lsn.is_some_and(|lsn| lsn > version.lsn)
    {
        return not_of_this_database(directory, "commits");
    }
    if before.is_none() {
        directory.create()?;
    }
    link(directory, version)?;
    let size = |path: &str| Ok((name_of(path).to_owned(), directory.file_bytes(path)?));
    let files = version.files.iter().map(|file| size(&file.path));
    let files: BTreeMap<_, _> = files.collect::<Result<_>>()?;
    if let Some(before) = &before
        && before.files == files
    {
        return Ok(Some(Arc::clone(before)));
    }
    let mut commit = Commit::new(version.table, version.lsn, now());
    let none = BTreeMap::new();
    let old = before.as_ref().map_or(&none, |before| &before.files);
    if before.is_none() {
        commit.create(&version.name, schema);
    }
    old.keys().filter(|name| !files.contains_key(*name)).for_each(|name| commit.remove(name));
    for file in &version.files {
        let name = name_of(&file.path);
        if !old.contains_key(name) {
            commit.add(name, files[name], file.rows);
        }
    }
    let number = before.as_ref().map_or(0, |before| before.version + 1);
    match directory.write_commit(number, &commit.to_bytes()) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
        written => written?,
    }
    if number > 0
        && number.is_multiple_of(VERSIONS_PER_CHECKPOINT)
        && let Err(error) = write_checkpoint(directory, number)
    {
        log::warn!("the Delta log {} has no new checkpoint: {error}", directory.path().display());
    }
    let (table, lsn) = (version.table, Some(version.lsn));
    Ok(Some(Arc::new(LogState { version: number, table, lsn, files })))
}

/// Links the files of a version into the table.
fn link(directory: &TableDirectory, version: &PublishedVersion) -> Result<()> {
    match directory.link(version.files.iter().map(|file| &*file.path))? {
        Some(name) => not_of_this_database(directory, &format!("a file {name}")),
        None => Ok(()),
    }
}

fn not_of_this_database<T>(directory: &TableDirectory, what: &str) -> Result<T> {
    plan_err!(
        "the Delta table {} has {what} of another state of this database, perhaps because that was restored from a backup: \
         remove the directory, and VACUUM FULL writes it anew",
        directory.path().display()
    )
}

/// The time in milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
