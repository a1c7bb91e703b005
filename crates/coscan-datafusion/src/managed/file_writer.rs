//! A Parquet file of a table that is being written.

use std::sync::Arc;
use std::time::Duration;

use coscan_database::{DataFile, FileId};
use datafusion::arrow::array::RecordBatch;
use datafusion::error::Result;
use parquet::arrow::AsyncArrowWriter;
use parquet::arrow::async_writer::AsyncFileWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use tokio::time::Instant;

use crate::managed::data_files::table_directory;
use crate::managed::table::ManagedTable;

/// The memory of a writer at which its rows become a row group, in bytes.
const ROW_GROUP_BYTES_MAX: usize = 256 << 20;

/// A file that is being written. If it is dropped, it is removed.
pub(crate) struct FileWriter {
    writer: AsyncArrowWriter<Box<dyn AsyncFileWriter>>,
    id: FileId,
    path: String,
    rows: u64,
}

impl FileWriter {
    /// Creates a file with a new number.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(crate) async fn new(table: &ManagedTable) -> Result<Self> {
        let database = table.database();
        let id = database.versions().new_file();
        let path = format!("{}/{:010}.parquet", table_directory(table.id()), id.0);
        let file = database.files().create(&path).await?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let schema = Arc::clone(table.columns());
        let writer = AsyncArrowWriter::try_new(file, schema, Some(properties))?;
        Ok(Self { writer, id, path, rows: 0 })
    }

    /// Writes rows, which have the columns of the table.
    ///
    /// # Errors
    /// If they cannot be written.
    pub(crate) async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        self.writer.write(batch).await?;
        if self.writer.memory_size() > ROW_GROUP_BYTES_MAX {
            self.writer.flush().await?;
        }
        Ok(())
    }

    /// The memory that it takes, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.writer.memory_size()
    }

    /// The bytes that it has so far, with those that are still in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.writer.bytes_written() + self.writer.in_progress_size()
    }

    /// Its name within the database.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Ends the row group, so that the file takes little memory.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) async fn flush(&mut self) -> Result<()> {
        Ok(self.writer.flush().await?)
    }

    /// Completes the file, which is durable then.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) async fn finish(self) -> Result<(FileId, DataFile)> {
        self.writer.close().await?;
        Ok((self.id, DataFile::new(self.path, self.rows)))
    }
}

/// Keeps writing at a rate.
pub(crate) struct Pace {
    bytes_per_second: Option<u64>,
    /// The time at which the next bytes may be written.
    next: Instant,
}

impl Pace {
    pub(crate) fn new(bytes_per_second: Option<u64>) -> Self {
        Self { bytes_per_second, next: Instant::now() }
    }

    /// Waits until more bytes may be written after these.
    pub(crate) async fn keep(&mut self, bytes: usize) {
        if let Some(rate) = self.bytes_per_second {
            // What was not written in time is not made up for.
            self.next = self.next.max(Instant::now());
            self.next += Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
            tokio::time::sleep_until(self.next).await;
        }
    }
}
