//! The names of tables, chunks and pages in the buffer manager. The simulator numbers all that ever exist, as the workload
//! does; the manager gives the ids of what was removed to what comes later.

use std::collections::BTreeMap;
use std::ops::Range;

use coscan_core::{Action, ChunkIndex, Index, PageId, State, TableId};

/// The names of all that the manager has. For tables that never change they are the same on both sides.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdMap {
    tables: BTreeMap<TableId, TableNames>,
    /// The manager's id of each page that it has, by its number.
    ids: BTreeMap<PageId, PageId>,
    /// The number of the page that had each id of the manager last: pages that were removed are still evicted.
    pages_by_id: Vec<PageId>,
}

/// The names of the chunks in a table of the manager.
#[derive(Clone, Debug)]
struct TableNames {
    /// The table of the workload.
    table: TableId,
    /// The chunk that had each index last.
    chunks: Vec<ChunkIndex>,
    /// The index of each chunk that the table has.
    indexes: BTreeMap<ChunkIndex, ChunkIndex>,
}

impl IdMap {
    /// Enters a table of the manager that has chunks of this table of the workload.
    pub(super) fn add_table(&mut self, id: TableId, table: TableId) {
        let names = TableNames { table, chunks: Vec::new(), indexes: BTreeMap::new() };
        self.tables.insert(id, names);
    }

    pub(super) fn remove_table(&mut self, id: TableId) {
        self.tables.remove(&id);
    }

    /// Enters pages that the manager has from now on, the first of them under this id, and the others behind it.
    pub(super) fn add_pages(&mut self, first: PageId, pages: &[PageId]) {
        for (id, &page) in (first.0..).map(PageId).zip(pages) {
            self.ids.insert(page, id);
            if self.pages_by_id.len() <= id.as_usize() {
                self.pages_by_id.resize(id.as_usize() + 1, PageId(u32::MAX));
            }
            self.pages_by_id[id.as_usize()] = page;
        }
    }

    pub(super) fn remove_page(&mut self, page: PageId) {
        self.ids.remove(&page);
    }

    pub(super) fn add_chunk(&mut self, id: TableId, chunk: ChunkIndex, index: ChunkIndex) {
        let names = self.tables.get_mut(&id).expect("a table that was added");
        names.indexes.insert(chunk, index);
        if names.chunks.len() <= index.as_usize() {
            names.chunks.resize(index.as_usize() + 1, ChunkIndex(u32::MAX));
        }
        names.chunks[index.as_usize()] = chunk;
    }

    pub(super) fn remove_chunk(&mut self, id: TableId, chunk: ChunkIndex) {
        self.tables.get_mut(&id).expect("a table that was added").indexes.remove(&chunk);
    }

    /// The manager's id of a page, if it has it.
    pub(crate) fn id(&self, page: PageId) -> Option<PageId> {
        self.ids.get(&page).copied()
    }

    /// The manager's index of a chunk in one of its tables, if that has it.
    pub(crate) fn index(&self, id: TableId, chunk: ChunkIndex) -> Option<ChunkIndex> {
        self.tables[&id].indexes.get(&chunk).copied()
    }

    /// The manager's indexes of chunks that one of its tables has, as runs of neighbours.
    pub(super) fn runs(&self, id: TableId, chunks: &[ChunkIndex]) -> Vec<Range<ChunkIndex>> {
        let index = |&chunk: &ChunkIndex| self.index(id, chunk).expect("a chunk of the table");
        runs(chunks.iter().map(index))
    }

    /// The chunk at an index of one of the manager's tables.
    pub(crate) fn chunk(&self, id: TableId, index: ChunkIndex) -> ChunkIndex {
        self.tables[&id].chunks[index.as_usize()]
    }

    /// An action with the names of the workload.
    pub(super) fn translated(&self, action: Action, state: &State) -> Action {
        let number = |id: PageId| self.pages_by_id[id.as_usize()];
        match action {
            Action::Load { load, scan, table, chunk, pages, urgent } => {
                let chunk = self.chunk(table, chunk);
                let pages = pages.into_iter().map(number).collect();
                Action::Load { load, scan, table: self.tables[&table].table, chunk, pages, urgent }
            }
            Action::Evict { page } => Action::Evict { page: number(page) },
            Action::Deliver { scan, worker, chunk } => {
                let table = state.scan(scan).expect("only running scans are answered").table();
                Action::Deliver { scan, worker, chunk: self.chunk(table, chunk) }
            }
            Action::Fail { scan, page } => Action::Fail { scan, page: number(page) },
            other => other,
        }
    }
}

/// Chunks as runs of neighbours.
pub(super) fn runs(chunks: impl IntoIterator<Item = ChunkIndex>) -> Vec<Range<ChunkIndex>> {
    let mut runs: Vec<Range<ChunkIndex>> = Vec::new();
    for chunk in chunks {
        let after = ChunkIndex(chunk.0 + 1);
        match runs.last_mut() {
            Some(last) if last.end == chunk => last.end = after,
            _ => runs.push(chunk..after),
        }
    }
    runs
}
