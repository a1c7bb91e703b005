//! The directory of a published table: its log, and links to the files of the database.
//!
//! Files are linked, not copied and not moved: other engines may remove them from the table and from the disk, and the database
//! still has them.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coscan_database::wal::{Disk, publish};
use coscan_datafusion::DatabaseDirectory;
use url::Url;

use crate::publishing::schema::directory_name;

/// The directory of all published tables, in that of the database.
const TABLES: &str = "delta";

/// Before the name of a directory that is being removed.
const REMOVED: &str = ".removed-";

/// The longest name of a directory: 255 bytes on usual systems, also while it is being removed.
const NAME_BYTES_MAX: usize = 255 - REMOVED.len();

/// The directory of a table.
#[derive(Clone, Debug)]
pub(super) struct TableDirectory {
    disk: Arc<dyn Disk>,
    /// That of the database.
    database: PathBuf,
    /// Its name among those of all tables.
    name: String,
}

impl TableDirectory {
    pub(super) fn new(database: &DatabaseDirectory, table: &str) -> Self {
        Self::named(database, directory_name(table))
    }

    fn named(database: &DatabaseDirectory, name: String) -> Self {
        Self { disk: Arc::clone(&database.disk), database: database.path.clone(), name }
    }

    /// Those of all tables, dropped or not, but for symbolic links, which lead to what may not be coscan's. What was left of removed
    /// ones is removed.
    ///
    /// # Errors
    /// If the disk fails.
    pub(super) fn all(database: &DatabaseDirectory) -> io::Result<Vec<Self>> {
        if !is_directory(&database.path.join(TABLES)) {
            return Ok(Vec::new());
        }
        let directories = names(&*database.disk, TABLES)?.into_iter();
        let directories = directories.map(|name| Self::named(database, name));
        let mut tables = Vec::new();
        for directory in directories.filter(|directory| is_directory(&directory.path())) {
            match directory.name.starts_with(REMOVED) {
                true => fs::remove_dir_all(directory.path())?,
                false => tables.push(directory),
            }
        }
        Ok(tables)
    }

    /// Whether its name is too long for directories.
    pub(super) fn is_too_long(&self) -> bool {
        self.name.len() > NAME_BYTES_MAX
    }

    /// Whether it is that of a table of this name.
    pub(super) fn is_of(&self, table: &str) -> bool {
        self.name == directory_name(table)
    }

    /// As other engines open it.
    pub(super) fn path(&self) -> PathBuf {
        self.database.join(TABLES).join(&self.name)
    }

    pub(super) fn url(&self) -> Url {
        let absolute = Url::from_directory_path(self.path());
        absolute.unwrap_or_else(|()| Url::parse("file:///").expect("a URL"))
    }

    /// The newest version of which there is a commit; `None` if there is no log.
    ///
    /// # Errors
    /// If the disk fails.
    pub(super) fn newest_version(&self) -> io::Result<Option<u64>> {
        let names = names(&*self.disk, &self.log())?;
        let commits = names.iter().filter_map(|name| name.strip_suffix(".json"));
        Ok(commits.filter_map(|version| version.parse().ok()).max())
    }

    /// Creates the directory, durably, unless it is there.
    ///
    /// # Errors
    /// If the disk fails.
    pub(super) fn create(&self) -> io::Result<()> {
        let (table, log) = (self.relative(), self.log());
        for (directory, parent) in [(TABLES, ""), (&table, TABLES), (&log, &table)] {
            self.disk.create_directory(directory)?;
            self.disk.sync_directory(parent)?;
        }
        Ok(())
    }

    /// Whether there is a commit of this version.
    pub(super) fn has_commit(&self, version: u64) -> bool {
        self.disk.open(&self.commit_path(version)).is_ok()
    }

    /// The content of a commit.
    ///
    /// # Errors
    /// If it is not there, or the disk fails.
    pub(super) fn commit(&self, version: u64) -> io::Result<Vec<u8>> {
        self.disk.read(&self.commit_path(version))
    }

    /// Writes a commit, durably.
    ///
    /// # Errors
    /// `AlreadyExists` if there is one of this version, or if the disk fails.
    pub(super) fn write_commit(&self, version: u64, content: &[u8]) -> io::Result<()> {
        publish(&*self.disk, &self.commit_path(version), content)
    }

    /// Makes a checkpoint of the log durable that another writer has written.
    ///
    /// # Errors
    /// If the disk fails.
    pub(super) fn sync_checkpoint(&self, version: u64) -> io::Result<()> {
        let (log, prefix) = (self.log(), format!("{version:020}.checkpoint"));
        for name in self.disk.list(&log)? {
            if name.starts_with(&prefix) || name == "_last_checkpoint" {
                self.disk.open_writable(&format!("{log}/{name}"))?.sync()?;
            }
        }
        self.disk.sync_directory(&log)
    }

    /// The size of a file of the database, in bytes.
    ///
    /// # Errors
    /// If it is not there, or the disk fails.
    pub(super) fn file_bytes(&self, path: &str) -> io::Result<u64> {
        self.disk.open(path)?.length()
    }

    /// Links files of the database into the table, durably, unless they are. Returns the first link whose name another file
    /// has.
    ///
    /// # Errors
    /// If a file is not there, or the disk fails.
    pub(super) fn link<'a>(
        &self,
        files: impl Iterator<Item = &'a str>,
    ) -> io::Result<Option<String>> {
        let mut is_changed = false;
        for file in files {
            let link = format!("{}/{}", self.relative(), name_of(file));
            match self.disk.link(file, &link) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    if !is_same_file(&self.database.join(file), &self.database.join(&link))? {
                        return Ok(Some(name_of(file).to_owned()));
                    }
                }
                linked => {
                    linked?;
                    is_changed = true;
                }
            }
        }
        if is_changed {
            self.disk.sync_directory(&self.relative())?;
        }
        Ok(None)
    }

    /// Removes links to files of the database, except those of which this is true.
    ///
    /// # Errors
    /// If the disk fails.
    pub(super) fn remove_links(&self, is_used: impl Fn(&str) -> bool) -> io::Result<()> {
        let is_link = |name: &str| {
            let number = name.strip_suffix(".parquet");
            number.is_some_and(|number| {
                number.len() == 10 && number.bytes().all(|byte| byte.is_ascii_digit())
            })
        };
        for name in names(&*self.disk, &self.relative())? {
            if is_link(&name) && !is_used(&name) {
                match self.disk.remove(&format!("{}/{name}", self.relative())) {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Removes the directory, whole or, after a crash, when [`Self::all`] is asked for again.
    ///
    /// # Errors
    /// If the disk fails.
    pub(super) fn remove(&self) -> io::Result<()> {
        let removed = format!("{TABLES}/{REMOVED}{}", self.name);
        let absolute = self.database.join(&removed);
        match fs::remove_dir_all(&absolute) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.disk.rename(&self.relative(), &removed)?;
        self.disk.sync_directory(TABLES)?;
        fs::remove_dir_all(absolute)
    }

    fn relative(&self) -> String {
        format!("{TABLES}/{}", self.name)
    }

    fn log(&self) -> String {
        format!("{TABLES}/{}/_delta_log", self.name)
    }

    fn commit_path(&self, version: u64) -> String {
        format!("{}/{version:020}.json", self.log())
    }
}

/// The name of a file within its directory.
pub(super) fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Whether both are names of one file. Where systems do not say, files of equal size are taken for one.
fn is_same_file(a: &Path, b: &Path) -> io::Result<bool> {
    let (a, b) = (fs::metadata(a)?, fs::metadata(b)?);
    #[cfg(unix)]
    let key = |file: &fs::Metadata| {
        use std::os::unix::fs::MetadataExt;
        (file.dev(), file.ino())
    };
    #[cfg(not(unix))]
    let key = |file: &fs::Metadata| file.len();
    Ok(key(&a) == key(&b))
}

/// Whether it is a directory, and no link to one.
fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// The names in a directory; none if it is not there.
fn names(disk: &dyn Disk, directory: &str) -> io::Result<Vec<String>> {
    match disk.list(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed,
    }
}
