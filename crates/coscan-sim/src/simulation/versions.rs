//! Versions of tables: changes add chunks to the manager and make the next version. What no version has any more is removed
//! as the runtime does it: once no scan and no load uses it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coscan_core::{
    ChunkIndex, ChunkSpec, DeviceId, GroupIndex, Index, Order, PageId, PageIndex, TableId,
};

use super::Simulation;
use super::query_run::QueryRun;
use crate::outcome::EventKind;
use crate::table::{Snapshot, TableChange};
use crate::violation::Broken;

/// The versions of a table that somebody may still read.
#[derive(Debug)]
pub(super) struct Versions {
    newest: usize,
    open: BTreeMap<usize, OpenVersion>,
}

#[derive(Debug)]
struct OpenVersion {
    snapshot: Arc<Snapshot>,
    /// The queries that run on it, those left that name it, and one more for the newest version.
    reference_count: usize,
    /// The table of the manager for its scans in order, if it needs one of its own.
    in_order: Option<TableId>,
}

/// What no version has any more, but the manager still has.
#[derive(Debug, Default)]
pub(super) struct PendingRemoval {
    chunks: BTreeSet<(usize, ChunkIndex)>,
    tables: Vec<TableId>,
    pages: BTreeSet<PageId>,
}

impl Simulation<'_> {
    /// Adds the tables with their first versions.
    pub(super) fn add_tables(&mut self) {
        for table in 0..self.workload.tables.len() {
            let layout = &self.workload.tables[table].layout;
            let id = self.manager.register_table(layout.group_count(), DeviceId(0));
            assert_eq!(id.as_usize(), table, "tables are numbered as they come");
            self.names.add_table(id, id);
            let pages = (0..layout.page_count()).map(PageIndex::from_usize);
            let at_start = self.workload.tables[table].initial_chunk_count;
            let comes_later = |&page: &PageIndex| {
                let chunks = layout.chunks_of(page);
                !chunks.is_empty() && chunks.iter().all(|chunk| chunk.as_usize() >= at_start)
            };
            self.add_pages(table, pages.filter(|page| !comes_later(page)).collect());
            let snapshot = self.workload.tables[table].first_snapshot();
            self.add_chunks(table, id, snapshot.chunks());
            let mut versions = Versions { newest: 0, open: BTreeMap::new() };
            versions.open.insert(0, self.open_version(table, 0, snapshot));
            self.tables.push(versions);
        }
    }

    /// The version that a query sees when it starts, which it holds until it ends.
    pub(super) fn hold_version(
        &mut self,
        table: usize,
        named: Option<usize>,
    ) -> (usize, Arc<Snapshot>) {
        let versions = &mut self.tables[table];
        let version = named.unwrap_or(versions.newest).min(versions.newest);
        let open = versions.open.get_mut(&version).expect("it is held for those that name it");
        open.reference_count += 1;
        (version, Arc::clone(&open.snapshot))
    }

    /// Ends the hold of a query on a version, if there is such a version.
    pub(super) fn release_version(&mut self, table: usize, version: usize) {
        let versions = &mut self.tables[table];
        let Some(open) = versions.open.get_mut(&version) else { return };
        open.reference_count -= 1;
        if open.reference_count > 0 {
            return;
        }
        let closed = versions.open.remove(&version).expect("found above");
        let has = |chunk: ChunkIndex| versions.open.values().any(|v| v.snapshot.contains(chunk));
        let gone = closed.snapshot.chunks().iter().filter(|&&chunk| !has(chunk));
        self.leaving.chunks.extend(gone.map(|&chunk| (table, chunk)));
        self.leaving.tables.extend(closed.in_order);
    }

    /// The table of the manager for a scan of a version. Where chunks have the indexes of retired ones, scans in order have
    /// a table of their own, which lists the same pages.
    pub(super) fn table_for(&mut self, table: usize, version: usize, order: Order) -> TableId {
        let main = TableId::from_usize(table);
        let open = &self.tables[table].open[&version];
        let indexes = open.snapshot.chunks().iter().map(|&c| self.names.index(main, c));
        if order == Order::Any || indexes.is_sorted() {
            return main;
        }
        if let Some(id) = open.in_order {
            return id;
        }
        let snapshot = Arc::clone(&open.snapshot);
        let groups = self.workload.tables[table].layout.group_count();
        let id = self.manager.register_table(groups, DeviceId(0));
        self.names.add_table(id, main);
        self.add_chunks(table, id, snapshot.chunks());
        let open = self.tables[table].open.get_mut(&version).expect("found above");
        open.in_order = Some(id);
        id
    }

    /// Makes a change of a table, unless another one has replaced what it replaces.
    pub(super) fn change_table(&mut self, change: &TableChange) {
        let table = change.table;
        let layout = &self.workload.tables[table].layout;
        let before = self.tables[table].newest;
        let snapshot = self.tables[table].open[&before].snapshot.changed(layout, change);
        let Some(snapshot) = snapshot else { return };
        let groups = (0..layout.group_count()).map(GroupIndex::from_usize);
        let slices = change.added.iter().flat_map(|&chunk| {
            groups.clone().flat_map(move |group| layout.slice(chunk, group)).copied()
        });
        let is_new = |&page: &PageIndex| self.names.id(self.numbers.id(table, page)).is_none();
        let pages: BTreeSet<PageIndex> = slices.filter(is_new).collect();
        self.add_pages(table, pages.into_iter().collect());
        self.add_chunks(table, TableId::from_usize(table), &change.added);
        self.record.step(self.now, || EventKind::TableChanged(change.clone()));
        let newest = before + 1;
        let opened = self.open_version(table, newest, snapshot);
        self.tables[table].open.insert(newest, opened);
        self.tables[table].newest = newest;
        self.release_version(table, before);
    }

    fn open_version(&self, table: usize, version: usize, snapshot: Snapshot) -> OpenVersion {
        let names_it = |query: &&QueryRun<'_>| {
            query.query.table == table && query.query.version == Some(version) && !query.has_ended()
        };
        let reference_count = 1 + self.queries.iter().filter(names_it).count();
        OpenVersion { snapshot: Arc::new(snapshot), reference_count, in_order: None }
    }

    fn add_pages(&mut self, table: usize, pages: Vec<PageIndex>) {
        let layout = &self.workload.tables[table].layout;
        let bytes: Vec<u64> = pages.iter().map(|&page| layout.bytes_of(page)).collect();
        let first = self.manager.add_pages(&bytes);
        let pages: Vec<PageId> = pages.iter().map(|&p| self.numbers.id(table, p)).collect();
        self.names.add_pages(first, &pages);
    }

    /// Adds chunks whose pages the manager has to one of its tables.
    fn add_chunks(&mut self, table: usize, id: TableId, chunks: &[ChunkIndex]) {
        let layout = &self.workload.tables[table].layout;
        let page = |&page: &PageIndex| {
            self.names.id(self.numbers.id(table, page)).expect("its pages were added")
        };
        let slice = |chunk, group| layout.slice(chunk, group).iter().map(page).collect();
        let groups = (0..layout.group_count()).map(GroupIndex::from_usize);
        let spec = |&chunk: &ChunkIndex| {
            let rows = layout.rows(chunk);
            let slices = groups.clone().map(|group| slice(chunk, group)).collect();
            ChunkSpec { rows: rows.end - rows.start, slices }
        };
        let specs: Vec<_> = chunks.iter().map(spec).collect();
        let indexes = self.manager.append_chunks(id, &specs).expect("the layout is right");
        for (&chunk, index) in chunks.iter().zip(indexes) {
            self.names.add_chunk(id, chunk, index);
        }
    }

    /// Removes from the manager what no version has and nobody uses. Returns whether anything was removed.
    pub(super) fn remove_unused(&mut self) -> Result<bool, Broken> {
        let mut was_any = false;
        for id in std::mem::take(&mut self.leaving.tables) {
            match self.manager.remove_table(self.now, id) {
                Ok(()) => {
                    self.names.remove_table(id);
                    was_any = true;
                }
                Err(_) => self.leaving.tables.push(id), // A scan or a load is left.
            }
        }
        for (table, chunk) in std::mem::take(&mut self.leaving.chunks) {
            let id = TableId::from_usize(table);
            let run = self.names.runs(id, &[chunk]);
            if self.manager.retire_chunks(self.now, id, &run).is_err() {
                self.leaving.chunks.insert((table, chunk)); // A scan or a load is left.
                continue;
            }
            self.ledger.chunk_retired(table, chunk)?;
            self.names.remove_chunk(id, chunk);
            let layout = &self.workload.tables[table].layout;
            let groups = (0..layout.group_count()).map(GroupIndex::from_usize);
            let pages = groups.flat_map(|group| layout.slice(chunk, group));
            self.leaving.pages.extend(pages.map(|&page| self.numbers.id(table, page)));
            was_any = true;
        }
        for page in std::mem::take(&mut self.leaving.pages) {
            let number = self.numbers.page(page);
            let main = TableId::from_usize(number.table);
            let chunks = self.workload.tables[number.table].layout.chunks_of(number.page);
            if chunks.iter().any(|&chunk| self.names.index(main, chunk).is_some()) {
                continue; // It goes with the last chunk that lists it.
            }
            let id = self.names.id(page).expect("it is removed once");
            match self.manager.remove_pages(self.now, id..PageId(id.0 + 1)) {
                Ok(()) => {
                    self.names.remove_page(page);
                    was_any = true;
                }
                Err(_) => drop(self.leaving.pages.insert(page)), // A table for scans in order is left.
            }
        }
        Ok(was_any)
    }
}
