//! A snapshot of a table in core: those of core's chunks and pages that belong to it.

use std::ops::Range;
use std::sync::Arc;

use coscan_core::{ChunkIndex, Index, PageId, PageIndex, TableId};
use coscan_storage::table::ParquetTable;

use crate::memory::MemoryBudget;
use crate::tables::metadata_reservation::MetadataReservation;
use crate::tables::registry::keys::FileId;

/// A snapshot of a table, and the chunks and pages of core that it has. Plain data: it keeps nothing registered.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) id: TableId,
    pub(crate) table: Arc<ParquetTable>,
    places: Arc<SnapshotPlaces>,
}

/// The places in core of the files and chunks of a table, whatever changes it has.
#[derive(Debug)]
struct SnapshotPlaces {
    files: Vec<SnapshotFile>,
    /// The chunk of core of each chunk of the table.
    chunks: Vec<ChunkIndex>,
    /// The inverse of `chunks`: chunks of core with those of the table, sorted.
    of_core: Vec<(ChunkIndex, ChunkIndex)>,
    /// The memory of these lists, and of the changes that the table was registered with.
    _memory: MetadataReservation,
}

/// A file that a table lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotFile {
    pub(crate) id: FileId,
    /// The first of its pages, whose ids are consecutive.
    pub(crate) first_page: PageId,
}

impl Snapshot {
    pub(crate) fn new(
        memory: &Arc<MemoryBudget>,
        id: TableId,
        table: Arc<ParquetTable>,
        files: Vec<SnapshotFile>,
        chunks: Vec<ChunkIndex>,
    ) -> Self {
        let mut of_core: Vec<_> = chunks.iter().copied().zip((0..).map(ChunkIndex)).collect();
        of_core.sort_unstable();
        let lists = size_of_val(&*files) + size_of_val(&*chunks) + size_of_val(&*of_core);
        let bytes = lists as u64 + table.changes().memory_bytes();
        let memory = MetadataReservation::of_held(memory, bytes);
        let places = SnapshotPlaces { files, chunks, of_core, _memory: memory };
        Self { id, table, places: Arc::new(places) }
    }

    /// The snapshot of a table with the same files and other changes, whose memory the caller counts.
    pub(crate) fn with_changes(&self, table: Arc<ParquetTable>) -> Self {
        Self { id: self.id, table, places: Arc::clone(&self.places) }
    }

    /// The files of the table, in its order.
    pub(crate) fn files(&self) -> &[SnapshotFile] {
        &self.places.files
    }

    /// Whether core has the chunks in the table's order: only then can it hand them out in that order.
    pub(crate) fn is_in_order(&self) -> bool {
        self.places.chunks.is_sorted()
    }

    /// The chunk of core for a chunk of the table.
    pub(crate) fn to_core(&self, chunk: ChunkIndex) -> ChunkIndex {
        self.places.chunks[chunk.as_usize()]
    }

    /// The chunks of core that hold any of these rows, as ascending runs of neighbours.
    pub(crate) fn to_core_runs(&self, rows: &[Range<u64>]) -> Vec<Range<ChunkIndex>> {
        let layout = self.table.layout();
        let held = rows.iter().flat_map(|rows| layout.chunks_in(rows.clone()));
        self.core_runs_of(&held.collect::<Vec<_>>())
    }

    /// The chunks of core for some chunks of the table, as ascending runs of neighbours.
    pub(crate) fn core_runs_of(&self, chunks: &[ChunkIndex]) -> Vec<Range<ChunkIndex>> {
        let mut chunks: Vec<_> = chunks.iter().map(|&chunk| self.to_core(chunk)).collect();
        chunks.sort_unstable();
        runs(chunks)
    }

    /// The chunk of the table for a chunk of core.
    ///
    /// # Panics
    /// If the chunk does not belong to this snapshot.
    pub(crate) fn to_table(&self, chunk: ChunkIndex) -> ChunkIndex {
        let position = self.places.of_core.binary_search_by_key(&chunk, |(core, _)| *core);
        self.places.of_core[position.expect("a scan is handed chunks of its snapshot")].1
    }

    /// The file that holds a chunk of the table, and the chunk of that file.
    pub(crate) fn place_of(&self, chunk: ChunkIndex) -> (FileId, ChunkIndex) {
        let (file, chunk) = self.table.place_of(chunk);
        (self.places.files[file].id, chunk)
    }

    /// A column of the table as the column of the file that holds a chunk, if it is decoded as that file has it, so
    /// that all tables that list the file can use it.
    pub(crate) fn shared_column(&self, chunk: ChunkIndex, column: usize) -> Option<usize> {
        let file = self.table.chunk_file(chunk);
        let in_file = self.table.file_column(file, column)?;
        let fields = self.table.parquet_files()[file].fields();
        let data_type = self.table.schema().field(column).data_type();
        let is_same = fields[in_file].data_type() == data_type;
        (is_same && !self.table.has_renamed_fields(column)).then_some(in_file)
    }

    /// The page of core for a page of the table.
    pub(crate) fn page_id(&self, page: PageIndex) -> PageId {
        let (file, page) = self.table.place_of_page(page);
        PageId(self.places.files[file].first_page.0 + page.0)
    }

    /// The page of the table for a page of core, in the file that holds a chunk of the table.
    pub(crate) fn page_of(&self, chunk: ChunkIndex, id: PageId) -> PageIndex {
        let file = self.table.chunk_file(chunk);
        let page = PageIndex(id.0 - self.places.files[file].first_page.0);
        self.table.page_of_file(file, page)
    }
}

/// Ascending chunks as runs of neighbours.
pub(crate) fn runs(chunks: impl IntoIterator<Item = ChunkIndex>) -> Vec<Range<ChunkIndex>> {
    let mut runs: Vec<Range<ChunkIndex>> = Vec::new();
    for chunk in chunks {
        let after = ChunkIndex(chunk.0 + 1);
        match runs.last_mut() {
            Some(last) if last.end == chunk => last.end = after,
            Some(last) if last.end == after => {}
            _ => runs.push(chunk..after),
        }
    }
    runs
}
