//! Reads of the engine's own scan, which go through the table's stores and use the footers that the table holds.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coscan_storage::stores::COALESCE_GAP_BYTES;
use coscan_storage::table::{ParquetFile, ReadError, TableFile};
use datafusion::common::internal_err;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{ParquetFileMetrics, ParquetFileReaderFactory};
use datafusion::error::Result;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::coalesce_ranges;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ParquetMetaData;

/// Creates readers of opened files.
#[derive(Debug)]
pub(crate) struct DirectReaders;

impl ParquetFileReaderFactory for DirectReaders {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        _: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let location = &file.object_meta.location;
        let Some(opened) = file.extension::<Arc<ParquetFile>>() else {
            return internal_err!("{location} was not opened");
        };
        Ok(Box::new(DirectReader {
            metrics: ParquetFileMetrics::new(partition, location.as_ref(), metrics),
            file: opened.file().clone(),
            metadata: Arc::clone(opened.metadata()),
        }))
    }
}

/// Reads one file, and checks that it is the one that was opened.
struct DirectReader {
    metrics: ParquetFileMetrics,
    file: TableFile,
    metadata: Arc<ParquetMetaData>,
}

impl AsyncFileReader for DirectReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.metrics.bytes_scanned.add(bytes_of(&range));
        async move { self.file.read(range).await.map_err(to_parquet) }.boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        self.metrics.bytes_scanned.add(ranges.iter().map(bytes_of).sum());
        async move {
            let file = &self.file;
            coalesce_ranges(&ranges, |range| file.read(range), COALESCE_GAP_BYTES)
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

fn to_parquet(error: ReadError) -> ParquetError {
    ParquetError::External(Box::new(error))
}
