//! The tables of a recorded run, each with all chunks that it ever had.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use coscan_core::{ChunkIndex, ChunkSpec, GroupIndex, Index, Layout, PageId, PageIndex};

/// A page of the run, numbered in the order in which pages were added, since ids are reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct PastPage(usize);

/// All pages and tables.
#[derive(Debug, Default)]
pub(super) struct PastTables {
    bytes: Vec<u64>,
    /// The current page of each id.
    current: BTreeMap<PageId, PastPage>,
    tables: Vec<PastTable>,
}

#[derive(Debug, Default)]
struct PastTable {
    groups: usize,
    /// The rows of each chunk, and its slices.
    chunks: Vec<(u64, Vec<Vec<PastPage>>)>,
    /// The current chunk of each index.
    current: BTreeMap<ChunkIndex, usize>,
}

impl PastTables {
    pub(super) fn add_pages(&mut self, first: PageId, bytes: &[u64]) {
        for (id, &bytes) in (first.0..).map(PageId).zip(bytes) {
            self.current.insert(id, PastPage(self.bytes.len()));
            self.bytes.push(bytes);
        }
    }

    pub(super) fn add_table(&mut self, groups: usize) {
        self.tables.push(PastTable { groups, ..PastTable::default() });
    }

    pub(super) fn add_chunks(&mut self, table: usize, specs: &[ChunkSpec], indexes: &[ChunkIndex]) {
        for (spec, &index) in specs.iter().zip(indexes) {
            let slice = |pages: &Vec<PageId>| pages.iter().map(|&id| self.current[&id]).collect();
            let slices = spec.slices.iter().map(slice).collect();
            let table = &mut self.tables[table];
            table.current.insert(index, table.chunks.len());
            table.chunks.push((spec.rows, slices));
        }
    }

    /// The current page of an id.
    pub(super) fn page(&self, id: PageId) -> PastPage {
        self.current[&id]
    }

    pub(super) fn bytes_of(&self, id: PageId) -> u64 {
        self.bytes[self.page(id).0]
    }

    /// The current chunk of an index, counted among all that the table ever had.
    pub(super) fn chunk(&self, table: usize, chunk: ChunkIndex) -> ChunkIndex {
        ChunkIndex::from_usize(self.tables[table].current[&chunk])
    }

    pub(super) fn chunks(
        &self,
        table: usize,
        chunks: &[Range<ChunkIndex>],
    ) -> impl Iterator<Item = ChunkIndex> {
        let indexes = chunks.iter().flat_map(|run| (run.start.0..run.end.0).map(ChunkIndex));
        indexes.map(move |chunk| self.chunk(table, chunk))
    }

    pub(super) fn rows(&self, table: usize, chunk: ChunkIndex) -> u64 {
        self.tables[table].chunks[chunk.as_usize()].0
    }

    /// Each table with all chunks that it ever had, and the position of each page in its layout.
    pub(super) fn layouts(&self) -> Vec<(Arc<Layout>, BTreeMap<PastPage, PageIndex>)> {
        self.tables.iter().map(|table| self.layout(table)).collect()
    }

    fn layout(&self, table: &PastTable) -> (Arc<Layout>, BTreeMap<PastPage, PageIndex>) {
        let mut groups = BTreeMap::new();
        for (_, slices) in &table.chunks {
            for (group, slice) in slices.iter().enumerate() {
                groups.extend(slice.iter().map(|&page| (page, GroupIndex::from_usize(group))));
            }
        }
        let mut layout = Layout::builder(table.groups);
        let add = |(page, group): (PastPage, GroupIndex)| {
            (page, layout.add_page(group, self.bytes[page.0]))
        };
        let numbers: BTreeMap<_, _> = groups.into_iter().map(add).collect();
        for (rows, slices) in &table.chunks {
            let slice = |slice: &Vec<PastPage>| slice.iter().map(|page| numbers[page]).collect();
            layout.add_chunk(*rows, slices.iter().map(slice).collect());
        }
        (Arc::new(layout.build()), numbers)
    }
}
