//! Bytes of column chunks: from the pool if it has them, else from the store in requests that coalesce neighbours.

use std::future::ready;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use coscan_core::ChunkIndex;
use coscan_storage::stores::coalesce;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::task::JoinSet;

use super::chunk_reader::{ChunkReader, Column};
use crate::error::ScanError;
use crate::observe::metrics::add_time;

/// The most requests in flight. They are small, so latency dominates.
const REQUESTS_AT_A_TIME: usize = 64;

impl ChunkReader {
    /// Fetches the next bytes of columns of a chunk: from the pool if it has them, else from the store.
    pub(super) async fn fetch(
        &self,
        chunk: ChunkIndex,
        columns: &[Column],
    ) -> Result<Vec<Vec<Bytes>>, ScanError> {
        let started = Instant::now();
        let mut ranges = Vec::new();
        let mut found = Vec::new();
        for column in columns {
            for range in column.prefix.wanted() {
                found.push(self.find_in_pool(chunk, self.columns[column.position], &range));
                ranges.push(range);
            }
        }
        let missing: Vec<_> = (0..ranges.len()).filter(|&range| found[range].is_none()).collect();
        let bytes = |range: usize| ranges[range].end - ranges[range].start;
        let read_bytes: u64 = missing.iter().map(|&range| bytes(range)).sum();
        let all_bytes: u64 = (0..ranges.len()).map(bytes).sum();
        for (range, read) in self.read_ranges(chunk, &ranges, missing).await? {
            found[range] = Some(read);
        }
        self.progress.bytes_read.fetch_add(read_bytes, Ordering::Relaxed);
        self.progress.bytes_reused.fetch_add(all_bytes - read_bytes, Ordering::Relaxed);
        add_time(&self.progress.counters.read_ns, started.elapsed());
        let mut found = found.into_iter().flatten();
        let of_column =
            |column: &Column| found.by_ref().take(column.prefix.wanted().len()).collect();
        Ok(columns.iter().map(of_column).collect())
    }

    /// The bytes of a range of the file that holds a chunk, if pages of a column that are in the pool have them all.
    fn find_in_pool(&self, chunk: ChunkIndex, column: usize, range: &Range<u64>) -> Option<Bytes> {
        let table = self.table.table();
        let mut parts = Vec::new();
        let mut end = range.start;
        for &page in table.layout().slice(chunk, table.group_of_column(column)) {
            let held = table.range_of_page(page);
            if end < range.end && held.contains(&end) {
                let bytes = self.driver.cached(self.table.snapshot().page_id(page))?;
                let offset = |position: u64| usize::try_from(position - held.start).ok();
                let part_end = held.end.min(range.end);
                parts.push(bytes.slice(offset(end)?..offset(part_end)?));
                end = part_end;
            }
        }
        let is_one = parts.len() == 1;
        (end == range.end).then(|| if is_one { parts.remove(0) } else { parts.concat().into() })
    }

    /// Reads those of some ranges of the file that holds a chunk that are missing.
    async fn read_ranges(
        &self,
        chunk: ChunkIndex,
        ranges: &[Range<u64>],
        missing: Vec<usize>,
    ) -> Result<Vec<(usize, Bytes)>, ScanError> {
        let store_requests = Arc::clone(self.driver.requests());
        let requests = requests(ranges, missing, store_requests.bytes_max());
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let table = self.table.table();
        let file = Arc::clone(&table.parquet_files()[table.chunk_file(chunk)]);
        let ranges = ranges.to_vec();
        let reading = async move {
            let read = |request: Vec<usize>| {
                let ranges: Vec<_> = request.iter().map(|&range| ranges[range].clone()).collect();
                let (file, store_requests) = (&file, &store_requests);
                async move {
                    let bytes = ranges[ranges.len() - 1].end - ranges[0].start;
                    let read = file.file().read_ranges(&ranges);
                    let read = store_requests.send(file.device(), bytes, ready(()), read).await?;
                    Ok::<Vec<_>, ScanError>(request.into_iter().zip(read).collect())
                }
            };
            let requests: Vec<_> = requests.into_iter().map(read).collect();
            let reading = stream::iter(requests).buffer_unordered(REQUESTS_AT_A_TIME);
            reading.try_concat().await
        };
        // The task runs on threads where no poll takes milliseconds. It ends when this is dropped.
        let mut task = JoinSet::new();
        task.spawn_on(reading, self.driver.runtime());
        let read = task.join_next().await.expect("there is a task");
        read.unwrap_or(Err(ScanError::ShutDown))
    }
}

/// Requests for the missing ranges, neighbours coalesced into requests of bounded size.
fn requests(ranges: &[Range<u64>], mut missing: Vec<usize>, bytes_max: u64) -> Vec<Vec<usize>> {
    missing.sort_unstable_by_key(|&range| ranges[range].start);
    let sorted: Vec<_> = missing.iter().map(|&range| ranges[range].clone()).collect();
    coalesce(&sorted, bytes_max).into_iter().map(|group| missing[group].to_vec()).collect()
}
