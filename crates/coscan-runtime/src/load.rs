//! One load: reads its pages, tries again what may pass, and always reports.

use std::panic::AssertUnwindSafe;
use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use coscan_core::{LoadId, PageIndex, TableId};
use coscan_storage::table::ParquetTable;
use futures::FutureExt;
use futures::future::join_all;

use crate::driver::Driver;
use crate::error::ScanError;
use crate::metrics::{ScanCounters, add_time};

/// A decided load. A load that never reports would hold its room and its scans for ever: when it is dropped, as a tokio
/// runtime does that shuts down, it reports what is left as failed.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) driver: Arc<Driver>,
    pub(crate) id: LoadId,
    pub(crate) table_id: TableId,
    pub(crate) table: Arc<ParquetTable>,
    pub(crate) unreported: Vec<PageIndex>,
    /// Of the scan that it is for, if that still runs.
    pub(crate) counters: Option<Arc<ScanCounters>>,
}

/// A page, read or not.
type Outcome = (PageIndex, Result<Bytes, ScanError>);

/// Time before the first new try; it doubles with each.
const PAUSE_FIRST: Duration = Duration::from_millis(20);

pub(crate) async fn run(mut load: Load) {
    let started = Instant::now();
    let attempts = load.driver.options().read_attempts;
    let mut pause = PAUSE_FIRST;
    for attempt in 1..=attempts {
        let outcomes = if attempt == 1 {
            load.read(&load.unreported).await
        } else {
            // One by one: only the pages that fail again are failures, and only the scans that need those fail.
            let pages = load.unreported.iter().map(|page| load.read(slice::from_ref(page)));
            join_all(pages).await.into_iter().flatten().collect()
        };
        let is_last =
            attempt == attempts || !load.driver.wants_any(load.table_id, &load.unreported);
        let (again, over): (Vec<_>, Vec<_>) = outcomes
            .into_iter()
            .partition(|(_, read)| !is_last && matches!(read, Err(error) if error.is_retryable()));
        load.report(over);
        let Some((_, Err(error))) = again.first() else { break };
        let pages = again.len();
        log::warn!(
            "try {attempt} to read {pages} pages failed and is made again in {pause:?}: {error}"
        );
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    if let Some(counters) = &load.counters {
        add_time(&counters.read_ns, started.elapsed());
    }
}

impl Load {
    async fn read(&self, pages: &[PageIndex]) -> Vec<Outcome> {
        let timeout = self.driver.options().read_timeout;
        let read = AssertUnwindSafe(self.table.read_pages(pages)).catch_unwind();
        let broken =
            |error: ScanError| pages.iter().map(|&page| (page, Err(error.clone()))).collect();
        match tokio::time::timeout(timeout, read).await {
            Ok(Ok(results)) => {
                let results = results.into_iter().map(|read| read.map_err(ScanError::from));
                pages.iter().copied().zip(results).collect()
            }
            Ok(Err(_)) => broken(ScanError::ReadPanicked),
            Err(_) => broken(ScanError::ReadTimeout { timeout }),
        }
    }

    fn report(&mut self, outcomes: Vec<Outcome>) {
        self.unreported.retain(|page| outcomes.iter().all(|(reported, _)| reported != page));
        if !outcomes.is_empty() {
            self.driver.report_pages(self, outcomes);
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let left = std::mem::take(&mut self.unreported);
        self.report(left.into_iter().map(|page| (page, Err(ScanError::ShutDown))).collect());
    }
}
