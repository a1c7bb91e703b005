//! Opens files: reads their footers, unless they are known.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};

use super::metadata_reader::DirectReader;
use super::read::from_store;
use super::{FileOptions, FileToOpen, MetadataReader, ParquetFile, TableError, footer};
use crate::stores::Device;

/// The most concurrent reads of footers: the number that object stores answer without slowing down.
const FOOTERS_AT_A_TIME: usize = 32;

impl ParquetFile {
    /// Opens a file. Reads only its footer with the page index, and only if that is not given.
    ///
    /// # Errors
    /// If the file cannot be read, is not sound Parquet, or uses features that coscan does not support.
    pub async fn open(
        file: impl Into<FileToOpen>,
        options: FileOptions,
    ) -> Result<Arc<Self>, TableError> {
        Self::open_with(file, options, Arc::new(DirectReader)).await
    }

    /// As [`Self::open`], with a reader for the footer and, later, Bloom filters.
    ///
    /// # Errors
    /// As [`Self::open`], and as the reader fails.
    pub async fn open_with(
        file: impl Into<FileToOpen>,
        options: FileOptions,
        reader: Arc<dyn MetadataReader>,
    ) -> Result<Arc<Self>, TableError> {
        let FileToOpen { file, footer } = file.into();
        let name: Arc<str> = file.name().into();
        let device = Device::of(&file.store_url, &file.meta.location).await;
        let device = device.map_err(|error| from_store(&name, error))?;
        let metadata = match footer.filter(|footer| footer::is_whole(footer)) {
            Some(footer) => footer,
            None => footer::read(&file, &device, &name, &*reader).await?,
        };
        let metadata = footer::checked(metadata, &name, file.meta.size)?;
        Self::of_footer(file, device, metadata, options, reader)
    }

    /// Opens files, some at a time. The results are in the order of `files`.
    ///
    /// # Errors
    /// As [`Self::open`], for the first file that fails.
    pub async fn open_all(
        files: Vec<FileToOpen>,
        options: FileOptions,
    ) -> Result<Vec<Arc<Self>>, TableError> {
        let opening = stream::iter(files).map(|file| Self::open(file, options));
        opening.buffered(FOOTERS_AT_A_TIME).try_collect().await
    }
}
