//! The parts that a scan reads of each chunk that it is handed: its columns of one chunk of a table, or parts of chunks
//! of several tables that are scanned together.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use bytes::Bytes;
use coscan_core::{ChunkIndex, GroupIndex, PageId, PageIndex};
use coscan_storage::table::{ChunkChanges, ColumnDecoder, DecodeError};

use crate::chunks::batch::{distinct, schema_of};
use crate::chunks::decode_cache::SliceKey;
use crate::error::ScanError;
use crate::scans::selection::PartialChunks;
use crate::tables::joint_layout::JointLayout;
use crate::tables::registry::FileId;
use crate::tables::snapshot::Snapshot;

/// The columns that a scan reads of one table.
#[derive(Debug)]
pub(crate) struct ScanColumns {
    pub(crate) snapshot: Arc<Snapshot>,
    /// The schema of its record batches.
    pub(crate) schema: SchemaRef,
    /// The distinct columns, sorted.
    pub(crate) columns: Vec<usize>,
    /// The position among the distinct columns of each field of the batches.
    pub(crate) fields: Vec<usize>,
}

/// The parts that a scan reads, chunk by chunk. Plain data: it keeps nothing registered.
#[derive(Debug)]
pub(crate) struct ScanParts {
    tables: Vec<ScanColumns>,
    chunks: Chunks,
}

#[derive(Debug)]
enum Chunks {
    /// The chunks of one table.
    OfTable(PartialChunks),
    Joint(Arc<JointLayout>),
}

/// A page of a table: the position of the table among those of the scan, and the page.
pub(crate) type TablePage = (usize, PageIndex);

/// Rows of a chunk of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    of: &'a ScanColumns,
    /// The position of the table among those of the scan.
    pub(crate) table: usize,
    /// A chunk of that table.
    chunk: ChunkIndex,
    /// The rows that are read, counted from the start of the chunk; `None` if all.
    selection: Option<&'a [Range<u64>]>,
}

impl ScanColumns {
    /// Columns of a table, in the order of the fields of the batches.
    ///
    /// # Errors
    /// If the table has no such column.
    pub(crate) fn new(snapshot: &Arc<Snapshot>, columns: &[usize]) -> Result<Self, ScanError> {
        let schema = schema_of(&snapshot.table, columns)?;
        let (columns, fields) = distinct(columns);
        Ok(Self { snapshot: Arc::clone(snapshot), schema, columns, fields })
    }

    /// The column groups of the table that hold the columns, ascending.
    pub(crate) fn groups(&self) -> Vec<GroupIndex> {
        let columns = self.columns.iter();
        let mut groups: Vec<_> =
            columns.map(|&column| self.snapshot.table.group_of_column(column)).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}

impl ScanParts {
    /// Chunks of a table, some of them only in part.
    pub(crate) fn of_table(columns: ScanColumns, partial: PartialChunks) -> Self {
        Self { tables: vec![columns], chunks: Chunks::OfTable(partial) }
    }

    /// Reads of joint chunks of these tables.
    pub(crate) fn joint(tables: Vec<ScanColumns>, joint: Arc<JointLayout>) -> Self {
        Self { tables, chunks: Chunks::Joint(joint) }
    }

    /// The columns that are read of a table, by the table's position among those of the scan.
    pub(crate) fn columns_of(&self, table: usize) -> &ScanColumns {
        &self.tables[table]
    }

    /// The names of all columns, table by table, as they come in the batches.
    pub(crate) fn column_names(&self) -> Arc<[String]> {
        let fields = self.tables.iter().flat_map(|table| table.schema.fields());
        fields.map(|field| field.name().clone()).collect()
    }

    /// The parts of a chunk of core: table by table, in the order of rows.
    pub(crate) fn of_chunk(&self, chunk: ChunkIndex) -> impl Iterator<Item = Part<'_>> {
        let (whole, joint) = match &self.chunks {
            Chunks::OfTable(partial) => {
                let of = &self.tables[0];
                let chunk = of.snapshot.to_table(chunk);
                let selection = partial.get(&chunk).map(Vec::as_slice);
                (Some(Part { of, table: 0, chunk, selection }), None)
            }
            Chunks::Joint(joint) => (None, Some(joint.parts(chunk))),
        };
        let joint = joint.into_iter().flatten().map(|part| Part {
            of: &self.tables[part.table],
            table: part.table,
            chunk: part.chunk,
            selection: part.rows.as_ref().map(std::slice::from_ref),
        });
        whole.into_iter().chain(joint)
    }

    /// The pages of tables for some pages of core in this chunk of core, table by table.
    pub(crate) fn pages(&self, chunk: ChunkIndex, pages: &[PageId]) -> Vec<TablePage> {
        match &self.chunks {
            Chunks::OfTable(_) => {
                let snapshot = &self.tables[0].snapshot;
                let chunk = snapshot.to_table(chunk);
                pages.iter().map(|&page| (0, snapshot.page_of(chunk, page))).collect()
            }
            Chunks::Joint(joint) => {
                let page = |&page| {
                    let (table, file, page) = joint.place_of_page(page);
                    (table, self.tables[table].snapshot.table.page_of_file(file, page))
                };
                let mut pages: Vec<_> = pages.iter().map(page).collect();
                pages.sort_unstable();
                pages
            }
        }
    }

    /// The columns of a chunk of core that are taken decoded whole if other scans need them, too.
    pub(crate) fn shared(&self, chunk: ChunkIndex) -> Vec<SliceKey> {
        let parts = self.of_chunk(chunk);
        let keys = parts
            .flat_map(|part| part.columns().iter().filter_map(move |&column| part.key(column)));
        keys.collect()
    }
}

impl<'a> Part<'a> {
    /// The distinct columns, sorted.
    pub(crate) fn columns(&self) -> &'a [usize] {
        &self.of.columns
    }

    /// The file that holds its chunk, and the rows of the chunk in the file.
    pub(crate) fn place(&self) -> (FileId, Range<u64>) {
        let layout = self.of.snapshot.table.layout();
        let (file, in_file) = self.of.snapshot.place_of(self.chunk);
        let file_start = layout.rows(ChunkIndex(self.chunk.0 - in_file.0)).start;
        let Range { start, end } = layout.rows(self.chunk);
        (file, start - file_start..end - file_start)
    }

    /// Its columns as columns of the file that holds its chunk.
    pub(crate) fn file_columns(&self) -> Vec<u32> {
        let table = &self.of.snapshot.table;
        let file = table.chunk_file(self.chunk);
        let columns = self.columns().iter().filter_map(|&column| table.file_column(file, column));
        columns.map(|column| column as u32).collect()
    }

    /// The number of rows that are read.
    pub(crate) fn rows(&self) -> u64 {
        let selection = self.selection.map(|selection| {
            let lengths = selection.iter().map(|rows| rows.end - rows.start);
            lengths.sum()
        });
        selection.unwrap_or_else(|| self.chunk_rows())
    }

    /// The changes of the rows that are read; `None` if there are none.
    pub(crate) fn changes(&self) -> Option<ChunkChanges> {
        self.of.snapshot.table.chunk_changes(self.chunk, self.selection)
    }

    fn chunk_rows(&self) -> u64 {
        let rows = self.of.snapshot.table.layout().rows(self.chunk);
        rows.end - rows.start
    }

    /// The key of a column that may be decoded once for all scans that need it; `None` unless all rows are read, and as
    /// the file has them.
    pub(crate) fn key(&self, column: usize) -> Option<SliceKey> {
        if self.selection.is_some() {
            return None;
        }
        let column = self.of.snapshot.shared_column(self.chunk, column)?;
        let (file, chunk) = self.of.snapshot.place_of(self.chunk);
        Some(SliceKey { file, chunk, column })
    }

    /// The bytes of the stored pages that hold the rows of some columns.
    pub(crate) fn stored_bytes(&self, columns: &[usize]) -> u64 {
        let table = &self.of.snapshot.table;
        let slice = |&column: &usize| {
            let group = table.group_of_column(column);
            match self.selection {
                Some(rows) => table.pages_of_rows(self.chunk, group, rows),
                None => table.layout().slice(self.chunk, group).to_vec(),
            }
        };
        let mut pages: Vec<_> = columns.iter().flat_map(slice).collect();
        pages.sort_unstable();
        pages.dedup();
        pages.into_iter().map(|page| table.layout().bytes_of(page)).sum()
    }

    /// The estimated decoded bytes of all rows of the chunk in a column.
    pub(crate) fn decoded_bytes(&self, column: usize) -> u64 {
        self.of.snapshot.table.decoded_bytes_estimate(self.chunk, column)
    }

    /// The estimated bytes of some rows of a column, in proportion to all.
    pub(crate) fn decoded_bytes_of(&self, column: usize, rows: u64) -> u64 {
        self.decoded_bytes(column).saturating_mul(rows).div_ceil(self.chunk_rows().max(1))
    }

    /// Whether the values of a column have a fixed width.
    pub(crate) fn is_fixed(&self, column: usize) -> bool {
        self.of.snapshot.table.schema().field(column).data_type().is_primitive()
    }

    /// Decodes a column. `page` gives the stored bytes of a page.
    pub(crate) fn decode(
        &self,
        column: usize,
        page: impl Fn(PageId) -> Bytes,
        batch_rows: u64,
    ) -> Result<ColumnDecoder, DecodeError> {
        let Snapshot { table, .. } = &*self.of.snapshot;
        let page = |index| page(self.of.snapshot.page_id(index));
        let batch_rows = usize::try_from(batch_rows).unwrap_or(usize::MAX);
        table.decode(self.chunk, column, &page, self.selection, batch_rows)
    }
}
