//! Tables of Parquet files: where their pages lie, how to read them and how to decode one column of one chunk.
//!
//! In call order:
//! - [`ParquetTable::open`] reads the footers (`open`, `footer`), brings the schemas together (`schema`) and lays out
//!   chunks (`chunks`) and pages (`layout`, `pages`);
//! - [`ParquetTable::statistics`] says what a chunk may hold without reading it (`statistics`, `bounds`),
//!   [`ParquetTable::zone_statistics`] what its row groups may (`zones`);
//! - [`ParquetTable::requests`] says how to fetch pages as they are stored, [`ParquetTable::read`] does (`read`, `body`);
//! - [`ParquetTable::pages_for`] says which pages hold some rows (`rows`);
//! - [`ParquetTable::decode`] turns the pages of one column of one chunk into Arrow arrays (`decode`, `column_pages`).
//!
//! Invariants:
//! - a table never changes: a file that does is reported, never read ([`ReadError::Changed`]);
//! - a chunk never spans two files;
//! - a decoder yields exactly the rows it was asked for, or an error.

mod body;
mod bounds;
mod chunks;
mod column_pages;
mod decode;
mod error;
mod estimate;
mod footer;
mod layout;
mod locations;
mod open;
mod pages;
mod panics;
mod read;
mod rows;
mod schema;
mod statistics;
mod zones;

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow_schema::SchemaRef;
use coscan_core::{ChunkIndex, GroupIndex, Index, Layout};
use object_store::{ObjectMeta, ObjectStore};
use parquet::file::metadata::ParquetMetaData;
use url::Url;

pub use decode::ColumnDecoder;
pub use error::{DecodeError, ReadError, TableError};
pub use locations::LocationError;
pub use read::{PageRequest, put_together};
pub use statistics::ChunkStatistics;

use open::OpenFile;
use pages::{StoredChunk, StoredPage};
use zones::Zones;

/// Which columns are stored together in a page [CS07 §6].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PageLayout {
    /// A column group per top-level column: only the columns that a query needs are read (DSM).
    #[default]
    Column,
    /// All columns in one group: a page is a whole row group, read in one request (NSM, PAX).
    Row,
}

/// How to lay a table out in chunks and pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// The least number of rows of a chunk. Only the last chunk of a file, or one before a huge row group, may have
    /// fewer. Row groups with at least twice as many are split.
    pub chunk_rows: u64,
    /// Which columns are stored together.
    pub layout: PageLayout,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self { chunk_rows: 131_072, layout: PageLayout::Column }
    }
}

/// One Parquet file of a table, as it was when it was listed.
#[derive(Clone, Debug)]
pub struct TableFile {
    /// The store that holds the file.
    pub store: Arc<dyn ObjectStore>,
    /// The store's address, such as `file:///` or `s3://bucket`; it names the file in errors.
    pub store_url: Url,
    /// Path, size and identity (entity tag, time of modification) of the file.
    pub meta: ObjectMeta,
}

impl TableFile {
    /// The file's full address.
    #[must_use]
    pub fn name(&self) -> String {
        let store = self.store_url.as_str();
        let slash = if store.ends_with('/') { "" } else { "/" };
        format!("{store}{slash}{}", self.meta.location)
    }
}

/// An immutable table of Parquet files with one schema.
///
/// Chunks are numbered over all files in the order in which they were given. Share it in an [`Arc`].
pub struct ParquetTable {
    schema: SchemaRef,
    page_layout: PageLayout,
    layout: Arc<Layout>,
    table_files: Vec<TableFile>,
    files: Vec<OpenFile>,
    /// In the order of the layout's chunks.
    chunks: Vec<StoredChunk>,
    /// In the order of the layout's pages.
    pages: Vec<StoredPage>,
    /// By column, computed when first asked for.
    statistics: Vec<OnceLock<Result<ChunkStatistics, TableError>>>,
    zones: Zones,
}

impl ParquetTable {
    /// The Arrow schema of all files: strings and binaries at the top level are views, as DataFusion reads them; a
    /// column is nullable if it is so in any file; metadata is dropped.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Where the rows lie: chunks, column groups and pages.
    #[must_use]
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// The files, in the order in which they were given.
    #[must_use]
    pub fn files(&self) -> &[TableFile] {
        &self.table_files
    }

    /// The footer of a file, with its page index where it has one.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn parquet_metadata(&self, file: usize) -> &Arc<ParquetMetaData> {
        &self.files[file].metadata
    }

    /// The file that holds a chunk, an index into [`Self::files`].
    ///
    /// # Panics
    /// If there is no such chunk.
    #[must_use]
    pub fn chunk_file(&self, chunk: ChunkIndex) -> usize {
        self.chunks[chunk.as_usize()].file
    }

    /// The column group that stores a column, an index into the fields of [`Self::schema`].
    ///
    /// # Panics
    /// If there is no such column.
    #[must_use]
    pub fn group_of_column(&self, column: usize) -> GroupIndex {
        assert!(column < self.schema.fields().len(), "column {column} exists");
        GroupIndex::from_usize(match self.page_layout {
            PageLayout::Column => column,
            PageLayout::Row => 0,
        })
    }
}

impl fmt::Debug for ParquetTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetTable")
            .field("files", &self.files.len())
            .field("columns", &self.schema.fields().len())
            .field("chunks", &self.chunks.len())
            .field("pages", &self.pages.len())
            .field("rows", &self.layout.row_count())
            .finish()
    }
}
