//! Reading and accounting of the metadata of files: footers, page indexes, Bloom filters, and the values made from
//! them.

use std::any::Any;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::per_column::PerColumn;
use super::{ParquetFile, ReadError, TableFile};
use crate::stores::Device;

/// Reads metadata of files, with the limits, retries and accounts of a program.
pub trait MetadataReader: fmt::Debug + Send + Sync {
    /// Reads a range of a file.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read<'a>(
        &'a self,
        file: &'a TableFile,
        device: &'a Device,
        range: Range<u64>,
    ) -> BoxFuture<'a, Result<Bytes, ReadError>>;

    /// Takes memory for `bytes` bytes of a footer, until the result is dropped.
    ///
    /// # Errors
    /// If there is too little memory.
    fn reserve(&self, file: &TableFile, bytes: u64) -> Result<Box<dyn Any + Send>, ReadError>;
}

/// A reader that reads at once, does not retry, and counts nothing.
#[derive(Debug)]
pub(super) struct DirectReader;

impl MetadataReader for DirectReader {
    fn read<'a>(
        &'a self,
        file: &'a TableFile,
        _: &'a Device,
        range: Range<u64>,
    ) -> BoxFuture<'a, Result<Bytes, ReadError>> {
        file.read(range).boxed()
    }

    fn reserve(&self, _: &TableFile, _: u64) -> Result<Box<dyn Any + Send>, ReadError> {
        Ok(Box::new(()))
    }
}

impl ParquetFile {
    /// Calls `grown` with the bytes of values that are later made from the footer: statistics, and levels of columns.
    /// Only the first call has an effect.
    pub fn on_growth(&self, grown: impl Fn(u64) + Send + Sync + 'static) {
        let _ = self.growth.set(Box::new(grown));
    }

    /// Counts a value of a column that is made on demand.
    pub(super) fn made<'a, T, E>(
        &self,
        values: &'a PerColumn<T>,
        column: usize,
        heap_bytes: impl Fn(&T) -> usize,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<&'a T, E> {
        let mut made_bytes = 0;
        let value = values.get_or_try_make(column, || {
            let value = make()?;
            made_bytes = size_of::<T>() + heap_bytes(&value);
            Ok(value)
        })?;
        if let Some(grown) = self.growth.get().filter(|_| made_bytes > 0) {
            grown(made_bytes as u64);
        }
        Ok(value)
    }

    /// Reads metadata.
    pub(super) async fn read_metadata(&self, range: Range<u64>) -> Result<Bytes, ReadError> {
        self.reader.read(&self.file, &self.device, range).await
    }
}
