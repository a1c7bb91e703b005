//! One load: it reads its pages, retries what failed, and always reports. It ends early when no scan needs its pages.

use std::collections::BTreeSet;
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

use crate::error::ScanError;
use crate::io::requests::StoreRequests;
use crate::io::retry::{Attempt, Retry};
use crate::observe::metrics::{ScanCounters, add_time};
use crate::scans::parts::{ScanParts, TablePage};
use crate::sync::destructor::InDestructor;
use crate::tables::snapshot::Snapshot;

/// The receiver of the pages of loads.
pub(crate) trait LoadOwner: fmt::Debug + Send + Sync {
    /// Ends a load, these pages of which are not reported, unless a scan needs any of them. Returns whether it has
    /// ended.
    fn give_up(self: Arc<Self>, load: LoadId, pages: &[PageId]) -> bool;

    /// Receives pages of a load, each read or not.
    fn report_pages(self: Arc<Self>, load: LoadId, pages: Vec<(PageId, Result<Bytes, ScanError>)>);

    /// Notes that a load was dropped before it had reported these pages, as happens when a runtime shuts down.
    fn load_dropped(self: Arc<Self>, load: LoadId, pages: Vec<PageId>);
}

/// A decided load. One that never reports would hold its reserved space and its scans for ever. So when it is dropped,
/// as happens when a tokio runtime shuts down, it reports its remaining pages as failed.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) owner: Arc<dyn LoadOwner>,
    pub(crate) id: LoadId,
    pub(crate) unreported: BTreeSet<TablePage>,
    pub(crate) source: Arc<Source>,
    /// The counters of the scan that it was decided for.
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

    /// Waits until the load is urgent.
    async fn is_urgent(&self) {
        self.0.subscribe().wait_for(|&is_urgent| is_urgent).await.expect("the sender is here");
    }
}

/// A page, read or not.
type Outcome = (TablePage, Result<Bytes, ScanError>);

/// The interval at which a load that gets nothing asks whether a scan still needs its pages.
const NEED_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Reads the pages of a load and reports them as they come, until none is left or no scan needs the others.
pub(crate) async fn run(mut load: Load) {
    let started = Instant::now();
    load.read().await;
    add_time(&load.counters.read_ns, started.elapsed());
}

/// Pages that are neighbours and are read together.
struct Group {
    table: usize,
    requests: Vec<PageRequest>,
    attempt: Attempt,
    pause: Duration,
}

impl Load {
    async fn read(&mut self) {
        let pages: Vec<_> = self.unreported.iter().copied().collect();
        // All requests wait for admission from now on, so that no later load comes between them.
        let source = Arc::clone(&self.source);
        let start = |group| Arc::clone(&source).read(group);
        let groups = self.groups(&pages, Attempt::FIRST, Duration::ZERO);
        let mut reading: FuturesUnordered<_> = groups.map(start).collect();
        loop {
            match tokio::time::timeout(NEED_CHECK_INTERVAL, reading.next()).await {
                Ok(Some((attempt, outcomes))) => {
                    reading.extend(self.take(attempt, outcomes).into_iter().map(start));
                    if self.unreported.is_empty() {
                        return;
                    }
                }
                Ok(None) => return,
                // Its requests are dropped, so that a request that hangs does not keep others
                // waiting.
                Err(_) if self.give_up() => return,
                Err(_) => {}
            }
        }
    }

    /// Reports pages that were read, or failed for good. Returns the groups that are read again.
    fn take(&mut self, attempt: Attempt, outcomes: Vec<Outcome>) -> Vec<Group> {
        let mut errors = outcomes.iter().filter_map(|(_, read)| read.as_ref().err());
        let failed = errors.find(|error| error.is_retryable()).cloned();
        let retry =
            failed.as_ref().and_then(|error| self.source.requests.retries().after(attempt, error));
        let Some((Retry { attempt, pause, split }, error)) = retry.zip(failed) else {
            self.report(outcomes);
            return Vec::new();
        };
        let (failed, over): (Vec<_>, Vec<_>) = outcomes
            .into_iter()
            .partition(|(_, read)| matches!(read, Err(error) if error.is_retryable()));
        self.report(over);
        if self.give_up() {
            return Vec::new();
        }
        log::warn!(
            "reading {} pages failed and is tried again in {pause:?}: {error}",
            failed.len()
        );
        let pages = failed.into_iter().map(|(page, _)| page).collect();
        let groups = split.groups(pages).into_iter();
        groups.flat_map(|pages| self.groups(&pages, attempt, pause).collect::<Vec<_>>()).collect()
    }

    /// Groups that read these pages, each on its own.
    fn groups(
        &self,
        pages: &[TablePage],
        attempt: Attempt,
        pause: Duration,
    ) -> impl Iterator<Item = Group> + use<> {
        let groups = self.source.requests_of(pages).into_iter();
        groups.map(move |(table, requests)| Group { table, requests, attempt, pause })
    }

    /// Ends the load if no scan needs any of the remaining pages.
    fn give_up(&mut self) -> bool {
        let pages = self.unreported.iter().map(|&page| self.source.page_id(page));
        let has_ended = Arc::clone(&self.owner).give_up(self.id, &pages.collect::<Vec<_>>());
        if has_ended {
            self.unreported.clear();
        }
        has_ended
    }

    fn report(&mut self, outcomes: Vec<Outcome>) {
        if outcomes.is_empty() {
            return;
        }
        for (page, _) in &outcomes {
            self.unreported.remove(page);
        }
        let page_id = |(page, read)| (self.source.page_id(page), read);
        let pages = outcomes.into_iter().map(page_id).collect();
        Arc::clone(&self.owner).report_pages(self.id, pages);
    }
}

impl Source {
    /// The page of core for a page of a table.
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

    async fn read(self: Arc<Self>, group: Group) -> (Attempt, Vec<Outcome>) {
        let Group { table, requests, attempt, pause } = group;
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        let mut pages: Vec<_> = requests.iter().flat_map(PageRequest::pages).copied().collect();
        pages.dedup();
        let send = |request: PageRequest| async {
            let answer = self.send(table, &request).await;
            (request, answer)
        };
        let read = put_together(&pages, join_all(requests.into_iter().map(send)).await);
        (attempt, pages.into_iter().map(|page| (table, page)).zip(read).collect())
    }

    async fn send(&self, table: usize, request: &PageRequest) -> Result<Vec<Bytes>, ScanError> {
        let table = &self.snapshot(table).table;
        let device = table.parquet_files()[request.file()].device();
        let (bytes, urgent) = (request.byte_count(), self.urgency.is_urgent());
        self.requests.send(device, bytes, urgent, table.read(request)).await
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
