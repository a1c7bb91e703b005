//! Commands that register the needs of scans.

use std::ops::Range;

use super::ActiveBufferManager;
use crate::error::StartScanError;
use crate::ids::{ChunkIndex, GroupIndex, Index, ScanId, TableId, Time};
use crate::manager::sparse::sparse_pages;
use crate::scan::{Order, RemoteQuery, Scan, ScanSpec, indexes};
use crate::set::IndexSet;
use crate::state::State;
use crate::table::Table;

impl ActiveBufferManager {
    /// Registers an interest: column groups of chunks that another server needs. An interest is a scan without workers. It
    /// makes pages stay longer and be chosen sooner, but nothing is read for it and it never waits.
    /// [Extend](Self::extend_scan), [prune](Self::prune_scan) and [cancel](Self::cancel_scan) it like a scan.
    ///
    /// # Errors
    /// If the table, a chunk or a group is unknown, or no id is left.
    pub fn register_interest(
        &mut self,
        now: Time,
        table: TableId,
        groups: &[GroupIndex],
        chunks: &[Range<ChunkIndex>],
    ) -> Result<ScanId, StartScanError> {
        let spec = ScanSpec {
            table,
            groups: groups.to_vec(),
            chunks: chunks.to_vec(),
            order: Order::Any,
            workers: 0,
            weight: 1,
            pages: None,
            computation: None,
        };
        self.register(now, &spec, None)
    }

    /// Registers a scan with its needs.
    ///
    /// # Errors
    /// If the table, a chunk, a group or a page is unknown, it has no worker or no weight, the pool can never hold one of
    /// its chunks, or no id is left.
    pub fn start_scan(&mut self, now: Time, spec: &ScanSpec) -> Result<ScanId, StartScanError> {
        self.start(now, spec, None)
    }

    /// Registers a scan that reads for a query at another server.
    ///
    /// # Errors
    /// As [`start_scan`](Self::start_scan).
    pub fn start_remote_scan(
        &mut self,
        now: Time,
        spec: &ScanSpec,
        query: RemoteQuery,
    ) -> Result<ScanId, StartScanError> {
        self.start(now, spec, Some(query))
    }

    fn start(
        &mut self,
        now: Time,
        spec: &ScanSpec,
        remote: Option<RemoteQuery>,
    ) -> Result<ScanId, StartScanError> {
        if spec.workers == 0 {
            return Err(StartScanError::NoWorkers);
        }
        if spec.weight == 0 {
            return Err(StartScanError::NoWeight);
        }
        self.register(now, spec, remote)
    }

    fn register(
        &mut self,
        now: Time,
        spec: &ScanSpec,
        remote: Option<RemoteQuery>,
    ) -> Result<ScanId, StartScanError> {
        let table =
            self.state.tables.get(&spec.table).ok_or(StartScanError::UnknownTable(spec.table))?;
        if let Some(&group) =
            spec.groups.iter().find(|group| group.as_usize() >= table.group_count())
        {
            return Err(StartScanError::UnknownGroup(group));
        }
        let groups: IndexSet<GroupIndex> = spec.groups.iter().copied().collect();
        let chunks = known_chunks(table, &spec.chunks)?;
        let selected_pages =
            sparse_pages(&self.state, spec, &groups, &chunks, self.config.request_cost_bytes)?;
        let chunk_bytes = match spec.workers {
            0 => 0, // Nothing is read for an interest.
            _ => self.check_size(spec.table, &chunks, &groups)?,
        };
        let id = ScanId(self.next_scan);
        let next_scan = self.next_scan.checked_add(1).ok_or(StartScanError::NoIdLeft)?;
        self.at(now);
        self.next_scan = next_scan;
        let table = self.state.tables.get_mut(&spec.table).expect("looked up above");
        let slot = table.take_slot(id);
        let device = table.device;
        let scan = Scan::new(id, (slot, device), spec, groups, selected_pages);
        self.state.add_scan(Scan { remote, ..scan });
        self.add_needs(id, &chunks, chunk_bytes);
        self.policy.on_scan_started(&self.state, id);
        Ok(id)
    }

    /// Adds chunks to the needs of a scan, so that a scan of many can be registered in steps. Chunks that it still
    /// needs are not added twice; chunks that it was handed are handed out again. Workers that were told that no chunk
    /// is left may ask again. The pages that a sparse scan reads of these chunks must be among those that it was
    /// started with.
    ///
    /// Does nothing if the scan does not run any more, or has failed.
    ///
    /// # Errors
    /// If the table has no such chunk, or the pool can never hold one of them. The needs of the scan are then
    /// unchanged.
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
        chunks.retain(|&chunk| !running.needed.contains(chunk));
        let (groups, is_interest) = (running.groups.clone(), running.is_interest());
        let chunk_bytes =
            if is_interest { 0 } else { self.check_size(table_id, &chunks, &groups)? };
        self.at(now);
        self.add_needs(scan, &chunks, chunk_bytes);
        self.policy.on_scan_extended(&self.state, scan, &chunks);
        Ok(())
    }

    /// The bytes of the largest of some chunks, if the pool can hold it.
    fn check_size(
        &self,
        table: TableId,
        chunks: &[ChunkIndex],
        groups: &IndexSet<GroupIndex>,
    ) -> Result<u64, StartScanError> {
        let chunk_bytes = largest_chunk_bytes(&self.state, table, chunks, groups);
        let pool_bytes = self.state.pool_bytes();
        match chunk_bytes <= pool_bytes {
            true => Ok(chunk_bytes),
            false => Err(StartScanError::PoolTooSmall { pool_bytes, chunk_bytes }),
        }
    }

    fn add_needs(&mut self, scan: ScanId, chunks: &[ChunkIndex], chunk_bytes: u64) {
        let registered = &self.state.scans[&scan];
        let pages = chunks
            .iter()
            .filter(|_| registered.is_sparse())
            .flat_map(|&chunk| registered.pages(self.state.table(registered.table), chunk));
        let selected_bytes: u64 = pages.map(|page| self.state.bytes_of(page)).sum();
        let registered = self.state.scans.get_mut(&scan).expect("the scan runs");
        registered.selected_bytes += selected_bytes;
        registered.report.chunks_needed += chunks.len() as u64;
        let before = registered.chunk_bytes_max;
        let largest = before.max(chunk_bytes);
        registered.chunk_bytes_max = largest;
        self.largest_chunks.remove(&(before, scan));
        self.largest_chunks.insert((largest, scan));
        self.state.need(scan, chunks);
    }
}

/// These chunks of a table, each once and in order, if the table has them.
fn known_chunks(
    table: &Table,
    chunks: &[Range<ChunkIndex>],
) -> Result<Vec<ChunkIndex>, StartScanError> {
    let unknown = |chunk: &ChunkIndex| !table.chunks.contains(*chunk);
    if let Some(chunk) = indexes(chunks).find(unknown) {
        return Err(StartScanError::UnknownChunk(chunk));
    }
    let mut chunks: Vec<_> = indexes(chunks).collect();
    chunks.sort_unstable();
    chunks.dedup();
    Ok(chunks)
}

/// The bytes of the largest of some chunks of a table, counting only some column groups.
fn largest_chunk_bytes(
    state: &State,
    table: TableId,
    chunks: &[ChunkIndex],
    groups: &IndexSet<GroupIndex>,
) -> u64 {
    let table = state.table(table);
    let chunk_bytes = |&chunk| {
        let pages = groups.iter().flat_map(|group| table.slice(chunk, group));
        pages.map(|&page| state.bytes_of(page)).sum()
    };
    chunks.iter().map(chunk_bytes).max().unwrap_or(0)
}
