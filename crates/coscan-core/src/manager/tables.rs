//! Commands of pages, tables and their chunks.

use std::ops::Range;

use super::ActiveBufferManager;
use crate::chunks::ChunkSpec;
use crate::error::{AddChunksError, RemovePagesError, RemoveTableError, RetireChunksError};
use crate::ids::{ChunkIndex, DeviceId, PageId, TableId, Time};
use crate::layout::Layout;
use crate::pages::{Page, Residency};
use crate::scan::{Worker, indexes};
use crate::table::Table;

impl ActiveBufferManager {
    /// Adds pages of these sizes in bytes, such as those of a file that was opened. They are cold, and no table lists them
    /// yet. Their ids are consecutive; returns the first.
    pub fn add_pages(&mut self, bytes: &[u64]) -> PageId {
        self.state.pages.add(bytes)
    }

    /// The approximate memory in bytes that core needs for this number of pages, whether or not they are in the pool.
    #[must_use]
    pub fn memory_bytes_for_pages(pages: usize) -> u64 {
        (pages * size_of::<Page>()) as u64
    }

    /// The approximate memory in bytes that core needs for these chunks.
    #[must_use]
    pub fn memory_bytes_for_chunks(chunks: &[ChunkSpec]) -> u64 {
        chunks.iter().map(Table::memory_bytes_for).sum::<usize>() as u64
    }

    /// Removes pages that no table lists any more, and evicts those that are in the pool.
    ///
    /// # Errors
    /// If one of them was not added, is listed, in use or being read.
    pub fn remove_pages(
        &mut self,
        now: Time,
        pages: Range<PageId>,
    ) -> Result<(), RemovePagesError> {
        if pages.start == pages.end {
            return Ok(());
        }
        if !self.state.pages.contains(&pages) {
            return Err(RemovePagesError::UnknownPage(pages));
        }
        let ids = || (pages.start.0..pages.end.0).map(PageId);
        for id in ids() {
            let page = self.state.page(id);
            let is_free = page.pins == 0 && page.residency != Residency::Reading;
            if !page.slices().is_empty() || !is_free {
                return Err(RemovePagesError::InUse(id));
            }
        }
        self.at(now);
        self.evict(ids().filter(|&id| self.state.is_evictable(id)).collect());
        self.state.pages.remove(pages);
        Ok(())
    }

    /// Adds a table without chunks, of `group_count` column groups, read from this device.
    pub fn register_table(&mut self, group_count: usize, device: DeviceId) -> TableId {
        let id = TableId(self.next_table);
        self.next_table = self.next_table.checked_add(1).expect("fewer than 2^32 tables ever");
        self.state.add_table(id, Table::new(group_count, device));
        id
    }

    /// Adds a table with all chunks of a layout and pages of its own. Returns it and its first page; the others follow in
    /// the order of the layout.
    pub fn register_layout(&mut self, layout: &Layout, device: DeviceId) -> (TableId, PageId) {
        let first = self.add_pages(&layout.page_bytes());
        let table = self.register_table(layout.group_count(), device);
        self.append_chunks(table, &layout.chunk_specs(first))
            .expect("a layout lists its own pages, in slices of its own groups");
        (table, first)
    }

    /// Adds chunks to a table. The needs of running scans do not change. Pages that are in the pool for other tables are
    /// there for this one, too. Returns the indexes of the chunks in their order: first those of retired chunks, then new
    /// ones, ascending.
    ///
    /// # Errors
    /// If the table or a page is unknown, or a chunk has no rows, not one slice for each column group, or a page twice.
    pub fn append_chunks(
        &mut self,
        table: TableId,
        chunks: &[ChunkSpec],
    ) -> Result<Vec<ChunkIndex>, AddChunksError> {
        let known = self.state.tables.get(&table).ok_or(AddChunksError::UnknownTable(table))?;
        for chunk in chunks {
            if chunk.rows == 0 {
                return Err(AddChunksError::NoRows);
            }
            if chunk.slices.len() != known.group_count() {
                let (slices, groups) = (chunk.slices.len(), known.group_count());
                return Err(AddChunksError::SliceCount { slices, groups });
            }
            let mut pages = chunk.slices.concat();
            let is_known = |page: &PageId| self.state.pages.contains(&(*page..PageId(page.0 + 1)));
            if let Some(&page) = pages.iter().find(|page| !is_known(page)) {
                return Err(AddChunksError::UnknownPage(page));
            }
            pages.sort_unstable();
            if let Some(twice) = pages.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(AddChunksError::PageTwice(twice[0]));
            }
        }
        Ok(chunks.iter().map(|chunk| self.state.add_chunk(table, chunk)).collect())
    }

    /// Removes chunks from a table. Their pages stay until they are removed or evicted.
    ///
    /// # Errors
    /// If the table has no such chunk, or one is in use: a scan needs it, a worker holds it, or it is being read.
    pub fn retire_chunks(
        &mut self,
        now: Time,
        table: TableId,
        chunks: &[Range<ChunkIndex>],
    ) -> Result<(), RetireChunksError> {
        let known = self.state.tables.get(&table).ok_or(RetireChunksError::UnknownTable(table))?;
        for chunk in indexes(chunks) {
            if !known.chunks.contains(chunk) {
                return Err(RetireChunksError::UnknownChunk(chunk));
            }
            let is_needed = !known.classes().class_of(chunk).key().scans.is_empty()
                || known.sparse_needs.contains_key(&chunk);
            if is_needed {
                return Err(RetireChunksError::InUse(chunk));
            }
        }
        let is_retired = |chunk: ChunkIndex| chunks.iter().any(|run| run.contains(&chunk));
        let held = self.state.scans_of(table).flat_map(|scan| &scan.workers);
        let held = held.filter_map(|worker| match worker {
            Worker::Busy { chunk, pinned: true, .. } => Some(*chunk),
            _ => None,
        });
        let loads = self.state.loads.values().filter(|load| load.table == table);
        let mut in_use = held.chain(loads.map(|load| load.chunk));
        if let Some(chunk) = in_use.find(|&chunk| is_retired(chunk)) {
            return Err(RetireChunksError::InUse(chunk));
        }
        drop(in_use);
        self.at(now);
        indexes(chunks).for_each(|chunk| self.state.remove_chunk(table, chunk));
        Ok(())
    }

    /// Removes a table with its chunks. Its pages stay until they are removed or evicted.
    ///
    /// # Errors
    /// If it is not registered, or in use.
    pub fn remove_table(&mut self, now: Time, table: TableId) -> Result<(), RemoveTableError> {
        let known = self.state.tables.get(&table).ok_or(RemoveTableError::UnknownTable(table))?;
        if !known.scans.is_empty() || self.state.loads.values().any(|load| load.table == table) {
            return Err(RemoveTableError::InUse(table));
        }
        let chunks: Vec<_> = known.chunks().collect();
        self.at(now);
        chunks.into_iter().for_each(|chunk| self.state.remove_chunk(table, chunk));
        self.state.remove_table(table);
        self.policy.on_table_removed(table);
        Ok(())
    }
}
