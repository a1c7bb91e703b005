//! One load: reads its pages, tries again what may pass, and always reports.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use coscan_core::{LoadId, PageIndex, TableId};
use coscan_storage::table::ParquetTable;
use futures::FutureExt;

use crate::driver::Driver;
use crate::error::ScanError;
use crate::metrics::{ScanCounters, add_time};

/// A decided load.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) id: LoadId,
    pub(crate) table_id: TableId,
    pub(crate) table: Arc<ParquetTable>,
    pub(crate) pages: Vec<PageIndex>,
    /// Of the scan that it is for, if that still runs.
    pub(crate) counters: Option<Arc<ScanCounters>>,
}

/// Time before the first new try; it doubles with each.
const PAUSE_FIRST: Duration = Duration::from_millis(20);

pub(crate) async fn run(driver: Arc<Driver>, load: Load) {
    let started = Instant::now();
    // A load that never reports would hold its room and its scans for ever.
    let read = AssertUnwindSafe(read(&driver, &load)).catch_unwind().await;
    let pages = read.unwrap_or_else(|_| {
        let broken = |page: &PageIndex| (*page, Err(ScanError::ReadPanicked));
        load.pages.iter().map(broken).collect()
    });
    if let Some(counters) = &load.counters {
        add_time(&counters.read_ns, started.elapsed());
    }
    driver.finish_load(&load, pages);
}

async fn read(driver: &Driver, load: &Load) -> Vec<(PageIndex, Result<Bytes, ScanError>)> {
    let options = driver.options();
    let mut done = Vec::with_capacity(load.pages.len());
    let mut pages = load.pages.clone();
    let mut pause = PAUSE_FIRST;
    for attempt in 1..=options.read_attempts {
        let results = read_in_time(load, &pages, options.read_timeout).await;
        let last = attempt == options.read_attempts;
        let (again, over): (Vec<_>, Vec<_>) = std::mem::take(&mut pages)
            .into_iter()
            .zip(results)
            .partition(|(_, result)| matches!(result, Err(error) if error.is_retryable() && !last));
        done.extend(over);
        let Some((_, Err(error))) = again.first() else { break };
        log::warn!(
            "try {attempt} to read {} pages failed and is made again in {pause:?}: {error}",
            again.len()
        );
        pages = again.into_iter().map(|(page, _)| page).collect();
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    done
}

async fn read_in_time(
    load: &Load,
    pages: &[PageIndex],
    timeout: Duration,
) -> Vec<Result<Bytes, ScanError>> {
    match tokio::time::timeout(timeout, load.table.read_pages(pages)).await {
        Ok(results) => results.into_iter().map(|result| result.map_err(ScanError::from)).collect(),
        Err(_) => pages.iter().map(|_| Err(ScanError::ReadTimeout { timeout })).collect(),
    }
}
