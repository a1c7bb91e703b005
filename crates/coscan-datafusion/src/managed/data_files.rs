//! The Parquet files of a database: where they are, how they are written and read.

use std::collections::BTreeSet;
use std::io;
use std::path::Path as SystemPath;
use std::sync::Arc;

use bytes::Bytes;
use coscan_database::wal::{Disk, Publication};
use coscan_database::{Database, Lsn, TableId};
use coscan_storage::stores::Stores;
use coscan_storage::table::{TableFile, Value};
use datafusion::common::{DataFusionError, exec_err};
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::buffered::BufWriter;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::async_writer::AsyncFileWriter;
use parquet::errors::ParquetError;
use url::Url;

use crate::error::from_store;

/// The files of a database.
pub(crate) struct DataFiles {
    store: Arc<dyn ObjectStore>,
    store_url: Url,
    /// The directory in the store.
    root: Path,
    /// The same directory as durable storage; `None` in memory.
    disk: Option<Arc<dyn Disk>>,
}

impl DataFiles {
    /// Files in memory, in a store of this address.
    pub(crate) fn in_memory(store_url: Url) -> Self {
        let store = Arc::new(InMemory::new());
        Self { store, store_url, root: Path::default(), disk: None }
    }

    /// Files in a directory, which is the root of a disk.
    ///
    /// # Errors
    /// If the path is not absolute, or no store has local files.
    pub(crate) fn in_directory(
        stores: &Stores,
        root: &SystemPath,
        disk: Arc<dyn Disk>,
    ) -> Result<Self> {
        let not_absolute = || DataFusionError::Plan(format!("{} is not absolute", root.display()));
        let url = Url::from_directory_path(root).map_err(|()| not_absolute())?;
        let (store_url, store) = stores.resolve(&url).map_err(from_store)?;
        let root = Path::from_url_path(url.path())?;
        Ok(Self { store, store_url, root, disk: Some(disk) })
    }

    /// A file, as a table lists it.
    ///
    /// # Errors
    /// If it is not there.
    pub(crate) async fn table_file(&self, path: &str) -> Result<TableFile> {
        let meta = self.store.head(&self.path_in_store(path)).await?;
        let store = Arc::clone(&self.store);
        Ok(TableFile { store, store_url: self.store_url.clone(), meta })
    }

    /// A writer of a new file. The file is there when it is complete.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(crate) async fn create(&self, path: &str) -> Result<Box<dyn AsyncFileWriter>> {
        let Some(disk) = self.disk.clone() else {
            let path = self.path_in_store(path);
            return Ok(Box::new(BufWriter::new(Arc::clone(&self.store), path)));
        };
        let (path, on) = (path.to_owned(), disk);
        let file = blocking(move || {
            if let Some((directory, _)) = path.rsplit_once('/') {
                on.create_directory(directory)?;
                on.sync_directory("")?;
            }
            let publication = Some(Publication::create(&*on, &path)?);
            Ok(UnpublishedFile { disk: on, publication })
        });
        let file = file.await.map_err(DataFusionError::IoError)?;
        Ok(Box::new(DurableWriter { file: Some(file), length: 0 }))
    }

    /// Removes a file that no version of a table has.
    pub(crate) async fn remove(&self, path: &str) {
        if let Err(error) = self.store.delete(&self.path_in_store(path)).await {
            log::warn!("the file {path}, which belongs to no table, cannot be removed: {error}");
        }
    }

    fn path_in_store(&self, path: &str) -> Path {
        path.split('/').fold(self.root.clone(), |directory, name| directory.join(name))
    }
}

/// The directory of a table's files in that of its database.
pub(crate) fn table_directory(table: TableId) -> String {
    format!("table-{}", table.0)
}

/// The paths of the files that tables have, and of those that checkpoints have replaced and that stay for their time.
pub(crate) fn used_files(versions: &Database<Value>) -> BTreeSet<Arc<str>> {
    let mut used: BTreeSet<_> = versions.retired().into_iter().map(|file| file.path).collect();
    let transaction = versions.begin();
    for table in versions.tables() {
        // A table that was created meanwhile has no files yet.
        let Ok(version) = transaction.version(table.id) else { continue };
        used.extend(version.files().iter().map(|file| Arc::clone(&file.file.path)));
    }
    used
}

/// Removes what statements have left that were interrupted: temporary files, and files that no table has. Other files stay, and
/// those that checkpoints have replaced stay for their time.
///
/// # Errors
/// If there are files of tables, but no log: it was lost, and the files are not to be. Also if the directory cannot be read or
/// written.
pub(crate) fn remove_unused(disk: &dyn Disk, versions: &Database<Value>) -> Result<()> {
    let is_empty = versions.begin().lsn() == Lsn(0);
    let used = used_files(versions);
    let directories = disk.list("")?.into_iter();
    for directory in directories.filter(|name| is_number(name.strip_prefix("table-"))) {
        // Something else may have the name.
        let Ok(files) = disk.list(&directory) else { continue };
        for file in files.into_iter().filter(|file| is_data_file(file)) {
            let path = format!("{directory}/{file}");
            if is_empty {
                return exec_err!(
                    "there is the file {path} of a table, but no log, without which it is of no use: restore the directory \
                     wal from a backup, or choose another directory"
                );
            }
            if !used.contains(path.as_str()) {
                disk.remove(&path)?;
            }
        }
    }
    Ok(())
}

/// Whether a file has the name of a data file, or the temporary one that it has while it is written.
fn is_data_file(name: &str) -> bool {
    let name = name.strip_suffix(".temporary").unwrap_or(name);
    name.len() == "0000000000.parquet".len() && is_number(name.strip_suffix(".parquet"))
}

fn is_number(text: Option<&str>) -> bool {
    text.is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Writes a file that has its name when it is durable.
struct DurableWriter {
    /// `None` after an error, or when the file is complete.
    file: Option<UnpublishedFile>,
    length: u64,
}

/// A file that has no name yet. It is removed if it never gets one, also where a thread that writes it ends after the
/// statement.
struct UnpublishedFile {
    disk: Arc<dyn Disk>,
    publication: Option<Publication>,
}

impl UnpublishedFile {
    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match &self.publication {
            Some(publication) => publication.file().write_at(bytes, offset),
            None => Err(io::Error::other("the file is complete")),
        }
    }

    fn publish(mut self) -> io::Result<()> {
        match self.publication.take() {
            Some(publication) => publication.publish(&*self.disk).map(drop),
            None => Ok(()),
        }
    }
}

impl Drop for UnpublishedFile {
    fn drop(&mut self) {
        if let Some(publication) = self.publication.take()
            && let Err(error) = publication.abandon(&*self.disk)
        {
            log::warn!(
                "a temporary file cannot be removed: {error}; it is when the database is opened again"
            );
        }
    }
}

impl DurableWriter {
    /// Does something with the file on a thread that may block.
    async fn with<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(UnpublishedFile) -> io::Result<T> + Send + 'static,
    ) -> Result<T, ParquetError> {
        let Some(file) = self.file.take() else {
            return Err(ParquetError::General("the file could not be written".to_owned()));
        };
        let done = blocking(move || work(file)).await;
        done.map_err(|error| ParquetError::External(Box::new(error)))
    }
}

impl AsyncFileWriter for DurableWriter {
    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), ParquetError>> {
        async move {
            let (start, length) = (self.length, bytes.len() as u64);
            let written = self.with(move |file| file.write(&bytes, start).map(|()| file));
            let file = written.await?;
            self.file = Some(file);
            self.length += length;
            Ok(())
        }
        .boxed()
    }

    fn complete(&mut self) -> BoxFuture<'_, Result<(), ParquetError>> {
        self.with(UnpublishedFile::publish).boxed()
    }
}

/// Runs something on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
