//! Commands of scans and workers, and on pages that no scan asked for.

use std::ops::Range;

use super::ActiveBufferManager;
use crate::error::RequestError;
use crate::ids::{
    ChunkIndex, GroupIndex, Index, PageId, ScanId, SliceId, TableId, Time, WorkerIndex,
};
use crate::pages::{Residency, Source};
use crate::scan::{Scan, Worker};

impl ActiveBufferManager {
    /// A worker asks for its next chunk and releases the one that it has. The answer is
    /// [`Deliver`](crate::Action::Deliver), [`Finish`](crate::Action::Finish) or [`Fail`](crate::Action::Fail).
    ///
    /// # Errors
    /// If the scan does not run, has failed, has no such worker, or the worker waits already.
    pub fn request_chunk(
        &mut self,
        now: Time,
        scan: ScanId,
        worker: WorkerIndex,
    ) -> Result<(), RequestError> {
        self.release_chunk(now, scan, worker);
        self.state.end_work(scan, worker);
        let (ticket, now) = (self.state.next_ticket(), self.state.now);
        let wait = |registered: &mut Scan| {
            let failed = registered.failed;
            let waited_ns = registered.remote.map_or(0, |query| query.waited_ns);
            let since = Time(now.0.saturating_sub(waited_ns));
            let state =
                registered.worker(worker).ok_or(RequestError::UnknownWorker(scan, worker))?;
            if failed {
                *state = Worker::Finished;
                return Err(RequestError::Failed(scan));
            }
            if matches!(state, Worker::Waiting { .. }) {
                return Err(RequestError::AlreadyWaiting(scan, worker));
            }
            let stood = std::mem::replace(state, Worker::Waiting { since, ticket });
            if let Worker::Busy { since: began, active: true, .. } = stood {
                registered.worked(now.since(began));
            }
            Ok(())
        };
        self.state.change_scan(scan, wait).ok_or(RequestError::UnknownScan(scan))?
    }

    /// A worker no longer uses the pages of its chunk, though it may still work on what it decoded from them.
    pub fn release_chunk(&mut self, now: Time, scan: ScanId, worker: WorkerIndex) {
        self.at(now);
        let Some(registered) = self.state.scans.get_mut(&scan) else { return };
        if let Some(Worker::Busy { chunk, found, pinned, .. }) = registered.worker(worker)
            && std::mem::replace(pinned, false)
        {
            let (chunk, found) = (*chunk, *found);
            self.count_kept(scan, chunk, found);
            let registered = &self.state.scans[&scan];
            for id in self.state.pages_of(registered, chunk) {
                self.state.unpin(id);
            }
        }
    }

    /// A worker has gone, or cannot use its chunk. Until it asks again it neither waits nor counts as at work, and
    /// nothing is read for it. A chunk whose pages it has not released goes back to the needs of its scan.
    pub fn withdraw_worker(&mut self, now: Time, scan: ScanId, worker: WorkerIndex) {
        self.at(now);
        self.actions.retain(|action| !action.answers(scan, worker));
        self.state.end_work(scan, worker);
        let withdraw = |scan: &mut Scan| {
            let stood = std::mem::replace(scan.worker(worker)?, Worker::Gone);
            let Worker::Busy { chunk, pinned: true, .. } = stood else { return None };
            scan.report.chunks_delivered -= 1;
            Some((chunk, !scan.failed && !scan.needed.contains(chunk)))
        };
        let given_back = self.state.change_scan(scan, withdraw).flatten();
        if let Some((chunk, is_needed)) = given_back {
            for id in self.state.pages_of(&self.state.scans[&scan], chunk) {
                self.state.unpin(id);
            }
            if is_needed {
                self.state.need(scan, &[chunk]);
                self.policy.on_delivered(&self.state, scan, chunk);
            }
        }
    }

    /// The query of a worker is paused, because it waits for something else or its rows are not taken. The worker does
    /// not count as at work until it asks again.
    pub fn pause_worker(&mut self, now: Time, scan: ScanId, worker: WorkerIndex) {
        self.at(now);
        self.state.change_scan(scan, |scan| {
            if let Some(Worker::Busy { active, .. }) = scan.worker(worker) {
                *active = false;
            }
        });
    }

    /// Removes chunks from the needs of a scan. Chunks that it was handed, or never needed, are ignored.
    pub fn prune_scan(
        &mut self,
        now: Time,
        scan: ScanId,
        unneeded: impl IntoIterator<Item = ChunkIndex>,
    ) {
        self.at(now);
        let Some(registered) = self.state.scans.get_mut(&scan) else { return };
        let needed = unneeded.into_iter().filter(|&chunk| registered.needed.contains(chunk));
        let mut unneeded: Vec<_> = needed.collect();
        unneeded.sort_unstable();
        unneeded.dedup();
        if !registered.failed {
            registered.report.chunks_pruned_dynamic += unneeded.len() as u64;
        }
        self.state.remove_need(scan, &unneeded);
    }

    /// Ends a scan, finished or not. Its pages are no longer in use or needed by it. Its loads in flight continue. A
    /// scan that needs many chunks is better [pruned](Self::prune_scan) before, step by step.
    pub fn cancel_scan(&mut self, now: Time, scan: ScanId) {
        let Some(registered) = self.state.scans.get(&scan) else { return };
        let workers = registered.workers.len();
        for worker in 0..workers {
            self.release_chunk(now, scan, WorkerIndex::from_usize(worker));
            self.state.end_work(scan, WorkerIndex::from_usize(worker));
        }
        self.largest_chunks.remove(&(self.state.scans[&scan].chunk_bytes_max, scan));
        let needed: Vec<_> = self.state.scans[&scan].needed.iter().collect();
        self.state.remove_need(scan, &needed);
        self.actions.retain(|action| action.answered_scan() != Some(scan));
        self.state.remove_scan(scan);
        self.policy.on_scan_ended(scan);
    }

    /// Evicts every page that no running scan needs.
    pub fn evict_unneeded(&mut self, now: Time) {
        self.at(now);
        let pages: Vec<_> =
            self.state.unneeded_pages().filter(|&id| self.state.is_evictable(id)).collect();
        self.evict(pages);
    }

    /// Evicts every page that no running scan needs and that was not used since the last call. Calling this at
    /// intervals frees idle memory.
    pub fn evict_idle(&mut self, now: Time) {
        self.at(now);
        let began = self.state.pool.begin_period();
        let unneeded = self.state.unneeded_pages();
        let idle = unneeded.take_while(|&id| self.state.page(id).used_at <= began);
        let pages: Vec<_> = idle.filter(|&id| self.state.is_evictable(id)).collect();
        self.evict(pages);
    }

    /// The caller holds a column of this slice decoded; deliveries may prefer it. When no scan needs it any more,
    /// [`Unneeded`](crate::Action::Unneeded) comes out. Does nothing if the table has no such slice (any more).
    pub fn slice_decoded(&mut self, table: TableId, chunk: ChunkIndex, group: GroupIndex) {
        self.state.add_decoded(SliceId { table, chunk, group });
    }

    /// The caller no longer holds a column of this slice decoded.
    pub fn slice_dropped(&mut self, table: TableId, chunk: ChunkIndex, group: GroupIndex) {
        self.state.remove_decoded(SliceId { table, chunk, group });
    }

    /// Sets where these pages are read from next. Does nothing if one of them does not exist. Loads that read only from other
    /// servers take no slot of a device, because those servers may be waiting for one.
    pub fn set_source(&mut self, now: Time, pages: Range<PageId>, source: Source) {
        if self.state.pages.contains(&pages) {
            self.at(now);
            (pages.start.0..pages.end.0)
                .for_each(|page| self.state.set_source(PageId(page), source));
        }
    }

    /// Offers a page that no load asked for, from another server or as part of another read. It is taken if it is cold,
    /// a running scan needs it, and it fits without an eviction; then the caller keeps its bytes.
    pub fn offer_page(&mut self, now: Time, page: PageId) -> bool {
        if !self.state.pages.contains(&(page..PageId(page.0 + 1))) {
            return false;
        }
        let offered = self.state.page(page);
        let fits = self.state.held_bytes() + offered.bytes <= self.state.pool_bytes();
        if !self.state.is_cold(page) || offered.needed_count == 0 || !fits {
            return false;
        }
        self.at(now);
        self.state.move_page(page, Residency::Cached);
        self.policy.on_page_loaded(&self.state, page);
        true
    }
}
