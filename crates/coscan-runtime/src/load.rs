//! One load: reads its pages, tries again what may pass, and always reports.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use coscan_core::{LoadId, PageIndex};
use coscan_storage::table::{PageRequest, ReadError, put_together};
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio::sync::watch;

use crate::driver::Driver;
use crate::error::ScanError;
use crate::metrics::{ScanCounters, add_time};
use crate::placement::Placement;

/// A decided load. A load that never reports would hold its room and its scans for ever: when it is dropped, as a tokio
/// runtime does that shuts down, it reports what is left as failed.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) id: LoadId,
    /// Of the table that it reads.
    pub(crate) unreported: Vec<PageIndex>,
    pub(crate) source: Arc<Source>,
    /// Of the scan that it is for, if that still runs.
    pub(crate) counters: Option<Arc<ScanCounters>>,
}

/// Where a load reads.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) driver: Arc<Driver>,
    pub(crate) placement: Arc<Placement>,
    pub(crate) urgency: Urgency,
}

/// Whether the requests of a load do not wait for those of others. It may become so while it is under way.
#[derive(Clone, Debug)]
pub(crate) struct Urgency(Arc<watch::Sender<bool>>);

impl Urgency {
    pub(crate) fn new(is_urgent: bool) -> Self {
        Self(Arc::new(watch::Sender::new(is_urgent)))
    }

    pub(crate) fn escalate(&self) {
        self.0.send_replace(true);
    }

    /// Waits until it is urgent.
    async fn is_urgent(&self) {
        self.0.subscribe().wait_for(|&is_urgent| is_urgent).await.expect("the sender is here");
    }
}

/// A page, read or not.
type Outcome = (PageIndex, Result<Bytes, ScanError>);

/// Time before the first new try; it doubles with each.
const PAUSE_FIRST: Duration = Duration::from_millis(20);

pub(crate) async fn run(mut load: Load) {
    let started = Instant::now();
    let attempts = load.source.driver.options().read_attempts;
    let mut pause = PAUSE_FIRST;
    for attempt in 1..=attempts {
        let Some((pages, error)) = load.read(attempt == 1, attempt == attempts).await else {
            break;
        };
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
    /// Reads what is left, and reports pages as they come. Returns how many are to be tried again and why, if any.
    async fn read(&mut self, is_first: bool, is_last: bool) -> Option<(usize, ScanError)> {
        // Once more one by one: only the pages that fail again are failures, and only the scans that need those fail.
        let at_once = if is_first { self.unreported.len().max(1) } else { 1 };
        let sets = self.unreported.chunks(at_once).flat_map(|pages| self.source.requests(pages));
        // All wait at the gate from now on, so that no later load comes between them.
        let mut reading: FuturesUnordered<_> =
            sets.map(|requests| Arc::clone(&self.source).read(requests)).collect();
        let mut again = None;
        while let Some(outcomes) = reading.next().await {
            let driver = &self.source.driver;
            let pages = self.unreported.iter().map(|&page| self.source.placement.page_id(page));
            let is_last = is_last || !driver.wants_any(pages);
            let (failed, over): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|(_, read)| {
                !is_last && matches!(read, Err(error) if error.is_retryable())
            });
            self.report(over);
            if let Some((_, Err(error))) = failed.first() {
                again.get_or_insert((0, error.clone())).0 += failed.len();
            }
        }
        again
    }

    fn report(&mut self, outcomes: Vec<Outcome>) {
        self.unreported.retain(|page| outcomes.iter().all(|(reported, _)| reported != page));
        if !outcomes.is_empty() {
            self.source.driver.report_pages(self, outcomes);
        }
    }
}

impl Source {
    /// The requests that read these pages; those that share a page together.
    fn requests(&self, pages: &[PageIndex]) -> Vec<Vec<PageRequest>> {
        let requests =
            self.placement.table.requests(pages, self.driver.options().request_bytes_max);
        let share = |a: &PageRequest, b: &PageRequest| a.pages().last() == b.pages().first();
        requests.chunk_by(share).map(<[_]>::to_vec).collect()
    }

    async fn read(self: Arc<Self>, requests: Vec<PageRequest>) -> Vec<Outcome> {
        let mut pages: Vec<_> = requests.iter().flat_map(PageRequest::pages).copied().collect();
        pages.dedup();
        let send = |request: PageRequest| async {
            let answer = self.send(&request).await;
            (request, answer)
        };
        let read = put_together(&pages, join_all(requests.into_iter().map(send)).await);
        pages.into_iter().zip(read).collect()
    }

    async fn send(&self, request: &PageRequest) -> Result<Vec<Bytes>, ScanError> {
        let store = &self.placement.table.parquet_files()[request.file()].file().store_url;
        let (bytes, urgent) = (request.byte_count(), self.urgency.is_urgent());
        ask(&self.driver, store.as_str(), bytes, urgent, self.placement.table.read(request)).await
    }
}

/// Makes a request to a store once its gate lets so many bytes pass, and waits for the answer as long as it may take.
pub(crate) async fn ask<T>(
    driver: &Driver,
    store: &str,
    bytes: u64,
    urgent: impl Future<Output = ()>,
    request: impl Future<Output = Result<T, ReadError>>,
) -> Result<T, ScanError> {
    let admission = driver.concurrency_limits().of(store).pass(bytes, urgent).await;
    // The store's time begins here: a wait at the gate is none of its fault.
    let timeout = driver.options().read_timeout;
    let answer = AssertUnwindSafe(request).catch_unwind();
    match tokio::time::timeout(timeout, answer).await {
        Ok(Ok(Ok(answer))) => {
            admission.answered();
            Ok(answer)
        }
        Ok(Ok(Err(error))) => Err(error.into()),
        Ok(Err(_)) => Err(ScanError::ReadPanicked),
        Err(_) => Err(ScanError::ReadTimeout { timeout }),
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let left = std::mem::take(&mut self.unreported);
        self.report(left.into_iter().map(|page| (page, Err(ScanError::ShutDown))).collect());
    }
}
