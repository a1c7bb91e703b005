//! Commands: scans come and go, workers ask and release, the pool changes its size.

use std::ops::Range;

use super::{ActiveBufferManager, largest_chunk_bytes};
use crate::error::{RequestError, StartScanError};
use crate::ids::{ChunkIndex, GroupIndex, Index, PageId, ScanId, TableId, Time, WorkerIndex};
use crate::manager::sparse::sparse_pages;
use crate::pages::Place;
use crate::policy::{EvictionRequest, Strictness};
use crate::scan::{Scan, ScanSpec, Worker, indexes};
use crate::set::IndexSet;
use crate::table::Table;

impl ActiveBufferManager {
    /// Registers what a query needs.
    ///
    /// # Errors
    /// If the table, a chunk, a group or a page is unknown, there is no worker, or the pool can never hold a chunk of the
    /// scan.
    pub fn start_scan(&mut self, now: Time, spec: &ScanSpec) -> Result<ScanId, StartScanError> {
        let table =
            self.state.tables.get(&spec.table).ok_or(StartScanError::UnknownTable(spec.table))?;
        if let Some(&group) =
            spec.groups.iter().find(|group| group.as_usize() >= table.group_count())
        {
            return Err(StartScanError::UnknownGroup(group));
        }
        if spec.workers == 0 {
            return Err(StartScanError::NoWorkers);
        }
        if spec.weight == 0 {
            return Err(StartScanError::NoWeight);
        }
        let groups: IndexSet<GroupIndex> = spec.groups.iter().copied().collect();
        let chunks = known_chunks(table, &spec.chunks)?;
        let selected_pages =
            sparse_pages(&self.state, spec, &groups, &chunks, self.config.request_bytes)?;
        let chunk_bytes = self.check_size(spec.table, &chunks, &groups)?;
        self.at(now);
        let id = ScanId(self.next_scan);
        self.next_scan += 1;
        let table = self.state.tables.get_mut(&spec.table).expect("looked up above");
        let place = (table.take_slot(id), table.device);
        self.state.add_scan(Scan::new(id, place, spec, groups, selected_pages));
        self.add_needs(id, &chunks, chunk_bytes);
        self.policy.on_scan_started(&self.state, id);
        Ok(id)
    }

    /// A scan needs these chunks, too. What it needs already stays as it is; what it was handed it would be handed again.
    /// Workers that were told that nothing is left may ask again.
    ///
    /// A scan that does not run any more, or has failed, needs nothing.
    ///
    /// # Errors
    /// If the table has no such chunk, or the pool can never hold one of them. The scan then needs what it needed before.
    pub fn extend_scan(
        &mut self,
        now: Time,
        scan: ScanId,
        chunks: &[Range<ChunkIndex>],
    ) -> Result<(), StartScanError> {
        let Some(running) = self.state.scan(scan).filter(|scan| !scan.failed) else {
            return Ok(());
        };
        let table_id = running.table;
        let mut chunks = known_chunks(self.state.table(table_id), chunks)?;
        running.needed.iter().for_each(|needed| {
            chunks.remove(needed);
        });
        let groups = running.groups.clone();
        let chunk_bytes = self.check_size(table_id, &chunks, &groups)?;
        self.at(now);
        self.add_needs(scan, &chunks, chunk_bytes);
        self.policy.on_scan_extended(&self.state, scan);
        Ok(())
    }

    /// Bytes of the largest of some chunks, if the pool can hold it.
    fn check_size(
        &self,
        table: TableId,
        chunks: &IndexSet<ChunkIndex>,
        groups: &IndexSet<GroupIndex>,
    ) -> Result<u64, StartScanError> {
        let chunk_bytes = largest_chunk_bytes(&self.state, table, chunks.iter(), groups);
        let pool_bytes = self.state.pool_bytes();
        match chunk_bytes <= pool_bytes {
            true => Ok(chunk_bytes),
            false => Err(StartScanError::PoolTooSmall { pool_bytes, chunk_bytes }),
        }
    }

    fn add_needs(&mut self, scan: ScanId, chunks: &IndexSet<ChunkIndex>, chunk_bytes: u64) {
        let registered = self.state.scans.get_mut(&scan).expect("the scan runs");
        registered.report.chunks_needed += chunks.len() as u64;
        let before = registered.chunk_bytes_max;
        registered.chunk_bytes_max = before.max(chunk_bytes);
        let widest = registered.chunk_bytes_max;
        self.widest.remove(&(before, scan));
        self.widest.insert((widest, scan));
        self.state.need(scan, chunks);
    }

    /// A worker wants its next chunk. If it still works on one, that is released. It is answered by
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
        let (turn, since) = (self.state.next_turn(), self.state.now);
        let wait = |registered: &mut Scan| {
            let failed = registered.failed;
            let state =
                registered.worker(worker).ok_or(RequestError::UnknownWorker(scan, worker))?;
            if failed {
                *state = Worker::Finished;
                return Err(RequestError::Failed(scan));
            }
            if matches!(state, Worker::Waiting { .. }) {
                return Err(RequestError::AlreadyWaiting(scan, worker));
            }
            let stood = std::mem::replace(state, Worker::Waiting { since, turn });
            if let Worker::Busy { since: began, active: true, .. } = stood {
                registered.worked(since.since(began));
            }
            Ok(())
        };
        self.state.change_scan(scan, wait).ok_or(RequestError::UnknownScan(scan))?
    }

    /// A worker no longer uses the pages of its chunk, though it may still work on what it made of them.
    pub fn release_chunk(&mut self, now: Time, scan: ScanId, worker: WorkerIndex) {
        self.at(now);
        let Some(registered) = self.state.scans.get_mut(&scan) else { return };
        if let Some(Worker::Busy { chunk, pinned, .. }) = registered.worker(worker)
            && std::mem::replace(pinned, false)
        {
            let chunk = *chunk;
            let registered = &self.state.scans[&scan];
            for id in self.state.pages_of(registered, chunk) {
                self.state.unpin(id);
            }
        }
    }

    /// A worker has gone, or cannot go on with what it was handed: it no longer waits nor counts as at work, and nothing is
    /// read for it, until it asks again. A chunk whose pages it has not released goes back: its scan needs that chunk again.
    pub fn withdraw_worker(&mut self, now: Time, scan: ScanId, worker: WorkerIndex) {
        self.at(now);
        self.actions.retain(|action| !action.answers(scan, worker));
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
                self.state.need(scan, &IndexSet::from_iter([chunk]));
                self.policy.on_delivered(&self.state, scan, chunk);
            }
        }
    }

    /// A worker's query does not go on for now: it waits for something else, or nobody takes its rows. Until the worker
    /// asks again it does not count as one at work.
    pub fn pause_worker(&mut self, now: Time, scan: ScanId, worker: WorkerIndex) {
        self.at(now);
        self.state.change_scan(scan, |scan| {
            if let Some(Worker::Busy { active, .. }) = scan.worker(worker) {
                *active = false;
            }
        });
    }

    /// A scan no longer needs these chunks. Chunks that it was handed, or never needed, are passed over.
    pub fn prune_scan(
        &mut self,
        now: Time,
        scan: ScanId,
        unwanted: impl IntoIterator<Item = ChunkIndex>,
    ) {
        self.at(now);
        let Some(registered) = self.state.scans.get_mut(&scan) else { return };
        let unwanted: IndexSet<_> = unwanted.into_iter().collect();
        let unwanted: Vec<_> =
            unwanted.iter().filter(|&chunk| registered.needed.contains(chunk)).collect();
        registered.report.chunks_pruned_dynamic += unwanted.len() as u64;
        self.state.unneed(scan, &unwanted);
    }

    /// Ends a scan, done or not: what it used and needed is free for others. Loads under way for it go on.
    pub fn cancel_scan(&mut self, now: Time, scan: ScanId) {
        let Some(registered) = self.state.scans.get(&scan) else { return };
        let workers = registered.workers.len();
        for worker in 0..workers {
            self.release_chunk(now, scan, WorkerIndex::from_usize(worker));
        }
        self.widest.remove(&(self.state.scans[&scan].chunk_bytes_max, scan));
        self.drop_needs(scan);
        self.actions.retain(|action| action.answered_scan() != Some(scan));
        self.state.remove_scan(scan);
        self.policy.on_scan_ended(scan);
    }

    /// Changes what the pool may hold and evicts what is then too much, best pages kept. Returns the new limit: more
    /// than asked for if pages in use, being read, or the largest chunk of a running scan take more.
    pub fn set_pool_bytes(&mut self, now: Time, pool_bytes: u64) -> u64 {
        self.at(now);
        let widest = self.widest.last().map_or(0, |&(bytes, _)| bytes);
        let target = pool_bytes.max(widest);
        for strictness in Strictness::ALL {
            let bytes = self.state.held_bytes().saturating_sub(target);
            if bytes > 0 {
                let room = EvictionRequest { plan: None, bytes, strictness };
                let victims = self.choose_victims(&room);
                self.evict(victims);
            }
        }
        self.state.pool.limit_bytes = target.max(self.state.held_bytes());
        self.state.pool.limit_bytes
    }

    /// Evicts every page that no scan will come to.
    pub fn evict_unwanted(&mut self, now: Time) {
        self.at(now);
        let pages: Vec<_> =
            self.state.unwanted_pages().filter(|&id| self.state.is_evictable(id)).collect();
        self.evict(pages);
    }

    /// Evicts every page that no scan will come to and that was not used since the last call. Called at intervals, it
    /// gives memory back that nobody has had a use for.
    pub fn evict_idle(&mut self, now: Time) {
        self.at(now);
        let began = self.state.pool.begin_period();
        let unwanted = self.state.unwanted_pages();
        let idle = unwanted.take_while(|&id| self.state.page(id).used_at <= began);
        let pages: Vec<_> = idle.filter(|&id| self.state.is_evictable(id)).collect();
        self.evict(pages);
    }

    /// The caller holds this slice decoded; deliveries may prefer it.
    pub fn slice_decoded(&mut self, table: TableId, chunk: ChunkIndex, group: GroupIndex) {
        self.state.recount_decoded(table, chunk, |decoded| decoded.add(chunk, group));
    }

    /// The caller no longer holds this slice decoded.
    pub fn slice_dropped(&mut self, table: TableId, chunk: ChunkIndex, group: GroupIndex) {
        self.state.recount_decoded(table, chunk, |decoded| decoded.remove(chunk, group));
    }

    /// A page arrived that nobody asked for, from another server or as part of another read. Taken if it is cold, some
    /// scan will come to it, and there is room without evicting anything; then the caller keeps its bytes.
    pub fn offer_page(&mut self, now: Time, page: PageId) -> bool {
        if !self.state.pages.contains(&(page..PageId(page.0 + 1))) {
            return false;
        }
        let offered = self.state.page(page);
        let has_room = self.state.held_bytes() + offered.bytes <= self.state.pool_bytes();
        if !self.state.is_cold(page) || offered.wanted == 0 || !has_room {
            return false;
        }
        self.at(now);
        self.state.move_page(page, Place::Cached);
        self.policy.on_page_loaded(&self.state, page);
        true
    }
}

/// These chunks of a table, if it has them.
fn known_chunks(
    table: &Table,
    chunks: &[Range<ChunkIndex>],
) -> Result<IndexSet<ChunkIndex>, StartScanError> {
    let unknown = |chunk: &ChunkIndex| !table.chunks.contains(*chunk);
    match indexes(chunks).find(unknown) {
        Some(chunk) => Err(StartScanError::UnknownChunk(chunk)),
        None => Ok(indexes(chunks).collect()),
    }
}
