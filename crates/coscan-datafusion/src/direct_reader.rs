//! Reads of the engine's own scan, through the table's stores and with the footers that the table holds.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coscan_storage::stores::COALESCE_GAP_BYTES;
use coscan_storage::table::{ParquetTable, ReadError, TableFile};
use datafusion::common::plan_datafusion_err;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{ParquetFileMetrics, ParquetFileReaderFactory};
use datafusion::error::Result;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::{Error as StoreError, GetOptions, GetRange, coalesce_ranges};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ParquetMetaData;

/// Makes readers of a table's files.
#[derive(Debug)]
pub(crate) struct DirectReaders {
    table: Arc<ParquetTable>,
}

impl DirectReaders {
    pub(crate) fn new(table: Arc<ParquetTable>) -> Self {
        Self { table }
    }
}

impl ParquetFileReaderFactory for DirectReaders {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        _: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let location = &file.object_meta.location;
        // All files are in one store, so that their paths tell them apart.
        let index = self.table.files().iter().position(|file| file.meta.location == *location);
        let index = index.ok_or_else(|| plan_datafusion_err!("{location} is not of the table"))?;
        Ok(Box::new(DirectReader {
            metrics: ParquetFileMetrics::new(partition, location.as_ref(), metrics),
            file: self.table.files()[index].clone(),
            metadata: Arc::clone(self.table.parquet_metadata(index)),
        }))
    }
}

/// Reads one file, as long as it is the one that was opened.
struct DirectReader {
    metrics: ParquetFileMetrics,
    file: TableFile,
    metadata: Arc<ParquetMetaData>,
}

impl AsyncFileReader for DirectReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.metrics.bytes_scanned.add(bytes_of(&range));
        async move { read(&self.file, range).await.map_err(to_parquet) }.boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        self.metrics.bytes_scanned.add(ranges.iter().map(bytes_of).sum());
        async move {
            let file = &self.file;
            coalesce_ranges(&ranges, |range| read(file, range), COALESCE_GAP_BYTES)
                .await
                .map_err(to_parquet)
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        let metadata = Arc::clone(&self.metadata);
        async move { Ok(metadata) }.boxed()
    }
}

fn bytes_of(range: &Range<u64>) -> usize {
    usize::try_from(range.end - range.start).unwrap_or(usize::MAX)
}

/// Reads a range on condition that the file has not changed, as the shared scans do.
async fn read(file: &TableFile, range: Range<u64>) -> std::result::Result<Bytes, ReadError> {
    let name: Arc<str> = file.name().into();
    let failed = |error| match error {
        StoreError::Precondition { .. } | StoreError::NotModified { .. } => {
            ReadError::Changed { file: Arc::clone(&name) }
        }
        StoreError::NotFound { .. } => ReadError::Missing { file: Arc::clone(&name) },
        error => ReadError::Store { file: Arc::clone(&name), source: Arc::new(error) },
    };
    // A weak entity tag never satisfies If-Match.
    let strong_tag = file.meta.e_tag.clone().filter(|tag| !tag.starts_with("W/"));
    let options = GetOptions {
        range: Some(GetRange::Bounded(range)),
        if_unmodified_since: strong_tag.is_none().then_some(file.meta.last_modified),
        if_match: strong_tag,
        ..GetOptions::default()
    };
    let result = file.store.get_opts(&file.meta.location, options).await.map_err(failed)?;
    // Not every store honours the conditions.
    let same_tag = match (&file.meta.e_tag, &result.meta.e_tag) {
        (Some(opened), Some(found)) => opened == found,
        _ => true,
    };
    if result.meta.size != file.meta.size || !same_tag {
        return Err(ReadError::Changed { file: name });
    }
    result.bytes().await.map_err(failed)
}

fn to_parquet(error: ReadError) -> ParquetError {
    ParquetError::External(Box::new(error))
}
