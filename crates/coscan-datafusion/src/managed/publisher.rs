//! Publishing tables to other engines.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use coscan_database::wal::Disk;
use coscan_database::{FileId, TableId};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;

/// Shows other engines the tables of a database, for instance with a log of Delta Lake beside its own log. What is published is
/// a copy: the database never reads it.
///
/// Methods block. One is called at a time for each database.
pub trait TablePublisher: fmt::Debug + Send + Sync {
    /// Makes this the newest version that other engines see, unless they see it already. A table whose columns the format does not
    /// have is not published, which is no error.
    ///
    /// # Errors
    /// If the disk fails; or, as [`DataFusionError::Plan`](datafusion::error::DataFusionError::Plan), if another engine has
    /// changed the table, so that somebody has to decide.
    fn publish(&self, directory: &DatabaseDirectory, version: &PublishedVersion) -> Result<()>;

    /// Removes what was published of tables other than these, and of files other than these unless the newest published
    /// version of their table has them.
    ///
    /// # Errors
    /// If the disk fails.
    fn clean(
        &self,
        directory: &DatabaseDirectory,
        tables: &BTreeSet<Arc<str>>,
        files: &BTreeSet<Arc<str>>,
    ) -> Result<()>;
}

/// The directory of a database.
#[derive(Clone, Debug)]
pub struct DatabaseDirectory {
    /// Its absolute path.
    pub path: PathBuf,
    /// The same directory as durable storage.
    pub disk: Arc<dyn Disk>,
}

/// A version of a table that is in files as a whole.
#[derive(Clone, Debug)]
pub struct PublishedVersion {
    /// The name of the table.
    pub name: String,
    /// The number of the table, which no other table of the database ever has.
    pub table: u64,
    /// Its columns, which never change.
    pub columns: SchemaRef,
    /// The last commit of the database that it has.
    pub lsn: u64,
    /// Its files, in order.
    pub files: Vec<PublishedFile>,
}

/// A Parquet file of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublishedFile {
    /// Its path within the directory of the database. No other file of a commit ever has it.
    pub path: Arc<str>,
    /// The number of its rows.
    pub rows: u64,
}

/// The publisher of a database, and what it has published since the database was opened.
#[derive(Debug)]
pub(crate) struct Publishing {
    publisher: Arc<dyn TablePublisher>,
    directory: DatabaseDirectory,
    /// What was published last. Held while the publisher works.
    pub(crate) last: tokio::sync::Mutex<LastPublished>,
}

/// What was published last.
#[derive(Default, Debug)]
pub(crate) struct LastPublished {
    /// The files of each table that were published last, or that cannot be until somebody decides something.
    pub(crate) files: BTreeMap<TableId, Vec<FileId>>,
    /// The tables and files that were there at the last cleaning.
    pub(crate) cleaned: Option<(BTreeSet<TableId>, BTreeSet<Arc<str>>)>,
}

impl Publishing {
    pub(crate) fn new(publisher: Arc<dyn TablePublisher>, directory: DatabaseDirectory) -> Self {
        Self { publisher, directory, last: tokio::sync::Mutex::default() }
    }

    /// Lets the publisher do something on a thread that may block.
    pub(crate) async fn run(
        &self,
        work: impl FnOnce(&dyn TablePublisher, &DatabaseDirectory) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let (publisher, directory) = (Arc::clone(&self.publisher), self.directory.clone());
        let work = move || work(&*publisher, &directory);
        match tokio::task::spawn_blocking(work).await {
            Ok(done) => done,
            Err(error) => internal_err!("publishing ended: {error}"),
        }
    }
}
