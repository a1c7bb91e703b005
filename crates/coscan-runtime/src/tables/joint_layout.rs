//! The rows of tables that the chunks of a joint table hold.

use std::ops::Range;
use std::sync::Arc;

use coscan_core::{ChunkIndex, ChunkSpec, GroupIndex, Index, PageId, PageIndex};

use crate::tables::registry::FileId;
use crate::tables::snapshot::{Snapshot, SnapshotFile};

/// The parts of all joint chunks, and the places of their pages. Core has the joint chunks that have rows, in their
/// order. Plain data: it keeps nothing registered.
#[derive(Debug)]
pub(crate) struct JointLayout {
    /// The number of joint chunks, those without rows among them.
    joint_chunks: usize,
    /// For each chunk of core, the joint chunk that it is and the end of its parts.
    chunks: Vec<(usize, usize)>,
    parts: Vec<JointPart>,
    /// The files of all tables, by their first page.
    files: Vec<JointFile>,
}

/// Rows of a chunk of one of the tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct JointPart {
    /// The position of the table.
    pub(crate) table: usize,
    pub(crate) chunk: ChunkIndex,
    /// The rows, counted from the start of the chunk; `None` if all.
    pub(crate) rows: Option<Range<u64>>,
}

#[derive(Clone, Copy, Debug)]
struct JointFile {
    first_page: PageId,
    table: usize,
    /// The position of the file among those of the table.
    file: usize,
}

impl JointLayout {
    /// The layout of these chunks. `chunks[u][t]` are the rows of table `t` in joint chunk `u`. They ascend with `u`,
    /// do not overlap and exist.
    pub(crate) fn new(tables: &[Arc<Snapshot>], chunks: &[Vec<Range<u64>>]) -> Self {
        let mut layout = Self {
            joint_chunks: chunks.len(),
            chunks: Vec::new(),
            parts: Vec::new(),
            files: Vec::new(),
        };
        for (joint, rows) in chunks.iter().enumerate() {
            let before = layout.parts.len();
            for (table, (snapshot, rows)) in tables.iter().zip(rows).enumerate() {
                layout.parts.extend(parts_of(table, snapshot, rows));
            }
            if layout.parts.len() > before {
                layout.chunks.push((joint, layout.parts.len()));
            }
        }
        for (table, snapshot) in tables.iter().enumerate() {
            let files = snapshot.table.parquet_files().iter().zip(snapshot.files()).enumerate();
            // A file without pages begins where another does.
            let with_pages = files.filter(|(_, (parquet, _))| parquet.page_count() > 0);
            let file = |(file, (_, listed)): (_, (_, &SnapshotFile))| JointFile {
                first_page: listed.first_page,
                table,
                file,
            };
            layout.files.extend(with_pages.map(file));
        }
        layout.files.sort_by_key(|file| file.first_page);
        layout
    }

    /// Its size in memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let lists =
            size_of_val(&*self.chunks) + size_of_val(&*self.parts) + size_of_val(&*self.files);
        lists as u64
    }

    /// The number of joint chunks.
    pub(crate) fn joint_chunks(&self) -> usize {
        self.joint_chunks
    }

    /// The number of chunks of core.
    pub(crate) fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// The parts of a chunk of core: table by table, in the order of rows.
    pub(crate) fn parts(&self, chunk: ChunkIndex) -> &[JointPart] {
        let chunk = chunk.as_usize();
        let start = chunk.checked_sub(1).map_or(0, |before| self.chunks[before].1);
        &self.parts[start..self.chunks[chunk].1]
    }

    /// The joint chunk for a chunk of core.
    pub(crate) fn joint_chunk(&self, chunk: ChunkIndex) -> usize {
        self.chunks[chunk.as_usize()].0
    }

    /// The chunk of core for a joint chunk; `None` if it has no rows.
    pub(crate) fn core_chunk(&self, joint: usize) -> Option<ChunkIndex> {
        let position = self.chunks.binary_search_by_key(&joint, |(joint, _)| *joint);
        position.ok().map(ChunkIndex::from_usize)
    }

    /// The table of a page of core, the file among the table's files, and the page of that file.
    pub(crate) fn place_of_page(&self, page: PageId) -> (usize, usize, PageIndex) {
        let next = self.files.partition_point(|file| file.first_page <= page);
        let file = self.files[next - 1];
        (file.table, file.file, PageIndex(page.0 - file.first_page.0))
    }

    /// The chunks as core registers them.
    pub(crate) fn specs(&self, tables: &[Arc<Snapshot>], chunks: Range<usize>) -> Vec<ChunkSpec> {
        chunks.map(|chunk| self.spec(tables, ChunkIndex::from_usize(chunk))).collect()
    }

    fn spec(&self, tables: &[Arc<Snapshot>], chunk: ChunkIndex) -> ChunkSpec {
        let parts = self.parts(chunk);
        let rows = parts.iter().map(|part| part.rows(&tables[part.table])).sum();
        let mut slices = Vec::new();
        for (table, snapshot) in tables.iter().enumerate() {
            for group in (0..snapshot.table.group_count()).map(GroupIndex::from_usize) {
                let parts = parts.iter().filter(|part| part.table == table);
                let mut pages: Vec<_> =
                    parts.flat_map(|part| part.pages(snapshot, group)).collect();
                // Two parts of a row group share its dictionary.
                pages.sort_unstable();
                pages.dedup();
                slices.push(pages);
            }
        }
        ChunkSpec { rows, slices }
    }

    /// For each chunk of a file that a joint chunk holds whole: the file, the chunk of the file, and the chunk of core.
    pub(crate) fn whole_chunks<'a>(
        &'a self,
        tables: &'a [Arc<Snapshot>],
    ) -> impl Iterator<Item = (FileId, ChunkIndex, ChunkIndex)> + 'a {
        let chunks = (0..self.chunks.len()).map(ChunkIndex::from_usize);
        let of_chunk = move |chunk| {
            let whole = self.parts(chunk).iter().filter(|part| part.rows.is_none());
            whole.map(move |part| {
                let (file, in_file) = tables[part.table].place_of(part.chunk);
                (file, in_file, chunk)
            })
        };
        chunks.flat_map(of_chunk)
    }

    /// The bytes of some columns of the largest chunk.
    pub(crate) fn bytes_max(&self, tables: &[Arc<Snapshot>], groups: &[Vec<GroupIndex>]) -> u64 {
        let bytes = |chunk| {
            let parts = self.parts(ChunkIndex::from_usize(chunk)).iter();
            let mut pages: Vec<_> = parts
                .flat_map(|part| {
                    let snapshot = &tables[part.table];
                    let groups = groups[part.table].iter();
                    groups
                        .flat_map(|&group| part.page_indexes(snapshot, group))
                        .map(|page| (part.table, page))
                })
                .collect();
            pages.sort_unstable();
            pages.dedup();
            let bytes =
                pages.into_iter().map(|(table, page)| tables[table].table.layout().bytes_of(page));
            bytes.sum()
        };
        (0..self.chunks.len()).map(bytes).max().unwrap_or(0)
    }
}

impl JointPart {
    fn rows(&self, snapshot: &Snapshot) -> u64 {
        let all = snapshot.table.layout().rows(self.chunk);
        self.rows.as_ref().map_or(all.end - all.start, |rows| rows.end - rows.start)
    }

    /// The pages of the table that hold its rows of a column group.
    fn page_indexes(&self, snapshot: &Snapshot, group: GroupIndex) -> Vec<PageIndex> {
        let table = &snapshot.table;
        match &self.rows {
            None => table.layout().slice(self.chunk, group).to_vec(),
            Some(rows) => table.pages_of_rows(self.chunk, group, std::slice::from_ref(rows)),
        }
    }

    fn pages(&self, snapshot: &Snapshot, group: GroupIndex) -> Vec<PageId> {
        let pages = self.page_indexes(snapshot, group).into_iter();
        pages.map(|page| snapshot.page_id(page)).collect()
    }
}

/// The chunks of a table that hold these rows, each with those rows.
fn parts_of<'a>(
    table: usize,
    snapshot: &'a Snapshot,
    rows: &'a Range<u64>,
) -> impl Iterator<Item = JointPart> + 'a {
    let layout = snapshot.table.layout();
    layout.chunks_in(rows.clone()).map(move |chunk| {
        let all = layout.rows(chunk);
        let held = rows.start.max(all.start) - all.start..rows.end.min(all.end) - all.start;
        let is_whole = held == (0..all.end - all.start);
        JointPart { table, chunk, rows: (!is_whole).then_some(held) }
    })
}
