//! One load: reads its pages, retries transient failures, and always reports.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use coscan_core::{LoadId, PageId};
use coscan_storage::table::{PageRequest, put_together};
use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use tokio::sync::watch;

use crate::destructor::InDestructor;
use crate::error::ScanError;
use crate::metrics::{ScanCounters, add_time};
use crate::scan_parts::{ScanParts, TablePage};
use crate::snapshot::Snapshot;
use crate::store_requests::StoreRequests;

/// Takes the pages of loads.
pub(crate) trait LoadOwner: fmt::Debug + Send + Sync {
    /// Whether a scan still needs any of these pages.
    fn needs_any(&self, pages: &[PageId]) -> bool;

    /// Pages of a load, each read or not. The last report of a load says that it `is_over`.
    fn report_pages(
        self: Arc<Self>,
        load: LoadId,
        pages: Vec<(PageId, Result<Bytes, ScanError>)>,
        is_over: bool,
    );

    /// A load was dropped before it had reported these pages, as a runtime does that shuts down.
    fn load_dropped(self: Arc<Self>, load: LoadId, pages: Vec<PageId>);
}

/// A decided load. One that never reports would hold its reserved space and its scans for ever: when it is dropped, as a
/// tokio runtime does that shuts down, it reports its remaining pages as failed.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) owner: Arc<dyn LoadOwner>,
    pub(crate) id: LoadId,
    pub(crate) unreported: Vec<TablePage>,
    pub(crate) source: Arc<Source>,
    /// The number of attempts to read a page.
    pub(crate) attempts: u32,
    /// Of the scan that it was decided for.
    pub(crate) counters: Arc<ScanCounters>,
}

/// The stores and tables that a load reads from.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) requests: Arc<StoreRequests>,
    pub(crate) parts: Arc<ScanParts>,
    pub(crate) urgency: Urgency,
}

/// Whether the requests of a load overtake those of others. A load may become urgent while it is in flight.
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
type Outcome = (TablePage, Result<Bytes, ScanError>);

/// Time before the first retry; it doubles with each.
const PAUSE_FIRST: Duration = Duration::from_millis(20);

pub(crate) async fn run(mut load: Load) {
    let started = Instant::now();
    let attempts = load.attempts;
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
    add_time(&load.counters.read_ns, started.elapsed());
}

impl Load {
    /// Reads the remaining pages and reports them as they come. Returns how many are to be retried and why, if any.
    async fn read(&mut self, is_first: bool, is_last: bool) -> Option<(usize, ScanError)> {
        // A retry reads page by page: only pages that fail again count as failed, and only the scans that need them fail.
        let at_once = if is_first { self.unreported.len().max(1) } else { 1 };
        let sets = self.unreported.chunks(at_once).flat_map(|pages| self.source.requests_of(pages));
        // All requests wait for admission from now on, so that no later load comes between them.
        let mut reading: FuturesUnordered<_> =
            sets.map(|(table, requests)| Arc::clone(&self.source).read(table, requests)).collect();
        let mut again = None;
        while let Some(outcomes) = reading.next().await {
            let is_last = is_last || !self.is_needed();
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

    /// Whether a scan still needs any of the remaining pages.
    fn is_needed(&self) -> bool {
        let pages = self.unreported.iter().map(|&page| self.source.page_id(page));
        self.owner.needs_any(&pages.collect::<Vec<_>>())
    }

    fn report(&mut self, outcomes: Vec<Outcome>) {
        self.unreported.retain(|page| outcomes.iter().all(|(reported, _)| reported != page));
        if !outcomes.is_empty() {
            let source = &self.source;
            let pages = outcomes.into_iter().map(|(page, read)| (source.page_id(page), read));
            let is_over = self.unreported.is_empty();
            Arc::clone(&self.owner).report_pages(self.id, pages.collect(), is_over);
        }
    }
}

impl Source {
    /// The page of core that a page is.
    fn page_id(&self, (table, page): TablePage) -> PageId {
        self.snapshot(table).page_id(page)
    }

    fn snapshot(&self, table: usize) -> &Snapshot {
        &self.parts.columns_of(table).snapshot
    }

    /// The requests that read these pages, in sets that share a page; each with the position of its table.
    fn requests_of(&self, pages: &[TablePage]) -> Vec<(usize, Vec<PageRequest>)> {
        let mut sets = Vec::new();
        for pages in pages.chunk_by(|a, b| a.0 == b.0) {
            let table = pages[0].0;
            let pages: Vec<_> = pages.iter().map(|(_, page)| *page).collect();
            let requests = self.snapshot(table).table.requests(&pages, self.requests.bytes_max());
            let share = |a: &PageRequest, b: &PageRequest| a.pages().last() == b.pages().first();
            sets.extend(requests.chunk_by(share).map(|set| (table, set.to_vec())));
        }
        sets
    }

    async fn read(self: Arc<Self>, table: usize, requests: Vec<PageRequest>) -> Vec<Outcome> {
        let mut pages: Vec<_> = requests.iter().flat_map(PageRequest::pages).copied().collect();
        pages.dedup();
        let send = |request: PageRequest| async {
            let answer = self.send(table, &request).await;
            (request, answer)
        };
        let read = put_together(&pages, join_all(requests.into_iter().map(send)).await);
        pages.into_iter().map(|page| (table, page)).zip(read).collect()
    }

    async fn send(&self, table: usize, request: &PageRequest) -> Result<Vec<Bytes>, ScanError> {
        let table = &self.snapshot(table).table;
        let store = &table.parquet_files()[request.file()].file().store_url;
        let (bytes, urgent) = (request.byte_count(), self.urgency.is_urgent());
        self.requests.send(store.as_str(), bytes, urgent, table.read(request)).await
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if self.unreported.is_empty() {
            return;
        }
        let _destructor = InDestructor::enter();
        let left = self.unreported.iter().map(|&page| self.source.page_id(page));
        Arc::clone(&self.owner).load_dropped(self.id, left.collect());
    }
}
