//! Commands: tables and scans come and go, workers ask and release, the pool changes its size.

use std::ops::Range;
use std::sync::Arc;

use super::{ActiveBufferManager, largest_chunk_bytes};
use crate::error::{RemoveTableError, RequestError, StartScanError};
use crate::ids::{ChunkIndex, GroupIndex, Index, ScanId, TableId, Time, WorkerIndex};
use crate::layout::Layout;
use crate::manager::picking::picks;
use crate::policy::{Room, Strictness};
use crate::scan::{Scan, ScanSpec, Worker};
use crate::set::IndexSet;
use crate::table::Table;

impl ActiveBufferManager {
    /// Adds a table. All its pages are cold.
    pub fn register_table(&mut self, layout: Arc<Layout>) -> TableId {
        let id = TableId(self.next_table);
        self.next_table += 1;
        self.state.tables.insert(id, Table::new(layout));
        id
    }

    /// Takes a table off and evicts its pages.
    ///
    /// # Errors
    /// If it is not registered, or in use.
    pub fn remove_table(&mut self, now: Time, table: TableId) -> Result<(), RemoveTableError> {
        let known = self.state.tables.get(&table).ok_or(RemoveTableError::UnknownTable(table))?;
        if !known.scans.is_empty() || self.state.loads.values().any(|load| load.table == table) {
            return Err(RemoveTableError::InUse(table));
        }
        self.at(now);
        let pages: Vec<_> = self.state.cached_pages().filter(|id| id.table == table).collect();
        self.evict(pages);
        self.state.tables.remove(&table);
        self.policy.on_table_removed(table);
        Ok(())
    }

    /// Registers what a query needs.
    ///
    /// # Errors
    /// If the table or a group is unknown, there is no worker, or the pool can never hold a chunk of the scan.
    pub fn start_scan(&mut self, now: Time, spec: &ScanSpec) -> Result<ScanId, StartScanError> {
        let table =
            self.state.tables.get(&spec.table).ok_or(StartScanError::UnknownTable(spec.table))?;
        let layout = Arc::clone(&table.layout);
        if let Some(&group) =
            spec.groups.iter().find(|group| group.as_usize() >= layout.group_count())
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
        let chunks: IndexSet<ChunkIndex> =
            spec.rows.iter().flat_map(|rows| layout.chunks_in(rows.clone())).collect();
        let picks = picks(&layout, spec, &groups, &chunks, self.config.request_bytes)?;
        self.check_room(&layout, &chunks, &groups)?;
        self.at(now);
        let id = ScanId(self.next_scan);
        self.next_scan += 1;
        let table = self.state.tables.get_mut(&spec.table).expect("looked up above");
        table.scans.push(id);
        if picks.is_some() {
            table.picking.push(id);
        }
        let scan = Scan::new(id, table.take_slot(id), spec, groups, picks, chunks.len() as u64);
        self.state.scans.insert(id, scan);
        self.state.need(id, &chunks);
        self.policy.on_scan_started(&self.state, id);
        Ok(id)
    }

    /// A scan needs more: every chunk that holds one of these rows. What it needs already stays as it is; what it was
    /// handed it would be handed again. Workers that were told that nothing is left may ask again.
    ///
    /// A scan that does not run any more, or has failed, needs nothing.
    ///
    /// # Errors
    /// If the pool can never hold one of the chunks. The scan then needs what it needed before.
    pub fn extend_scan(
        &mut self,
        now: Time,
        scan: ScanId,
        rows: &[Range<u64>],
    ) -> Result<(), StartScanError> {
        let Some(registered) = self.state.scans.get(&scan).filter(|scan| !scan.failed) else {
            return Ok(());
        };
        let layout = self.state.table(registered.table).layout();
        let chunks = rows.iter().flat_map(|rows| layout.chunks_in(rows.clone()));
        let chunks: IndexSet<ChunkIndex> =
            chunks.filter(|&chunk| !registered.needed.contains(chunk)).collect();
        self.check_room(layout, &chunks, &registered.groups)?;
        self.at(now);
        let registered = self.state.scans.get_mut(&scan).expect("looked up above");
        registered.report.chunks_needed += chunks.len() as u64;
        self.state.need(scan, &chunks);
        self.policy.on_scan_extended(&self.state, scan);
        Ok(())
    }

    /// Whether the pool can hold the largest of these chunks.
    fn check_room(
        &self,
        layout: &Layout,
        chunks: &IndexSet<ChunkIndex>,
        groups: &IndexSet<GroupIndex>,
    ) -> Result<(), StartScanError> {
        let chunk_bytes = largest_chunk_bytes(layout, chunks.iter(), groups);
        let pool_bytes = self.state.pool_bytes();
        match chunk_bytes > pool_bytes {
            true => Err(StartScanError::PoolTooSmall { pool_bytes, chunk_bytes }),
            false => Ok(()),
        }
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
        let registered = self.state.scans.get_mut(&scan).ok_or(RequestError::UnknownScan(scan))?;
        let failed = registered.failed;
        let state = registered.worker(worker).ok_or(RequestError::UnknownWorker(scan, worker))?;
        if failed {
            *state = Worker::Finished;
            return Err(RequestError::Failed(scan));
        }
        if matches!(state, Worker::Waiting { .. }) {
            return Err(RequestError::AlreadyWaiting(scan, worker));
        }
        let stood = std::mem::replace(state, Worker::Waiting { since: self.state.now });
        if let Worker::Busy { since, active: true, .. } = stood {
            registered.worked(self.state.now.since(since));
        }
        self.waiting.push((scan, worker));
        Ok(())
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

    /// A worker's query does not go on for now: it waits for something else, or nobody takes its rows. Until the worker
    /// asks again it does not count as one at work.
    pub fn pause_worker(&mut self, now: Time, scan: ScanId, worker: WorkerIndex) {
        self.at(now);
        let registered = self.state.scans.get_mut(&scan);
        if let Some(Worker::Busy { active, .. }) = registered.and_then(|scan| scan.worker(worker)) {
            *active = false;
        }
    }

    /// A scan no longer needs these chunks. Chunks that it was handed, or never needed, are passed over.
    pub fn narrow_scan(
        &mut self,
        now: Time,
        scan: ScanId,
        unwanted: impl IntoIterator<Item = ChunkIndex>,
    ) {
        self.at(now);
        for chunk in unwanted {
            let Some(registered) = self.state.scans.get_mut(&scan) else { return };
            if registered.needed.contains(chunk) {
                registered.report.chunks_narrowed += 1;
                self.state.unneed(scan, &[chunk]);
            }
        }
    }

    /// Ends a scan, done or not: what it used and needed is free for others. Loads under way for it go on.
    pub fn cancel_scan(&mut self, now: Time, scan: ScanId) {
        let Some(registered) = self.state.scans.get(&scan) else { return };
        let workers = registered.workers.len();
        for worker in 0..workers {
            self.release_chunk(now, scan, WorkerIndex::from_usize(worker));
        }
        self.drop_needs(scan);
        self.actions.retain(|action| action.answered_scan() != Some(scan));
        let registered = self.state.scans.remove(&scan).expect("looked up above");
        let table =
            self.state.tables.get_mut(&registered.table).expect("a scan's table stays registered");
        table.scans.retain(|&id| id != scan);
        table.picking.retain(|&id| id != scan);
        table.slots[registered.slot.as_usize()] = None;
        self.policy.on_scan_ended(scan);
    }

    /// Changes what the pool may hold and evicts what is then too much, best pages kept. Returns the new limit: more
    /// than asked for if pages in use, being read, or the largest chunk of a running scan take more.
    pub fn set_pool_bytes(&mut self, now: Time, pool_bytes: u64) -> u64 {
        self.at(now);
        let widest = self.state.scans().map(|scan| {
            let layout = self.state.table(scan.table).layout();
            largest_chunk_bytes(layout, scan.needed.iter(), &scan.groups)
        });
        let target = pool_bytes.max(widest.max().unwrap_or(0));
        for strictness in Strictness::ALL {
            let bytes = self.state.held_bytes().saturating_sub(target);
            if bytes > 0 {
                let room = Room { plan: None, bytes, strictness };
                let victims = self.policy.choose_victims(&self.state, &room);
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
        if let Some(table) = self.state.tables.get_mut(&table) {
            table.decoded.insert((chunk, group));
        }
    }

    /// The caller no longer holds this slice decoded.
    pub fn slice_dropped(&mut self, table: TableId, chunk: ChunkIndex, group: GroupIndex) {
        if let Some(table) = self.state.tables.get_mut(&table) {
            table.decoded.remove(&(chunk, group));
        }
    }
}
