//! Publishing tables to other engines.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use coscan_database::wal::Disk;
use datafusion::arrow::datatypes::SchemaRef;
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
