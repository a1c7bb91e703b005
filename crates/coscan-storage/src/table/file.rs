//! One version of a file, opened: its footer, its chunks and its pages.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_schema::{Field, Fields};
use coscan_core::{ChunkIndex, Index, PageIndex};
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use super::column_types::read_schema;
use super::layout::{FileLayout, plan};
use super::leaves::leaves_of_columns;
use super::observed::Observed;
use super::pages::{StoredChunk, StoredPage};
use super::panics::caught;
use super::per_column::PerColumn;
use super::schema::repeated_name;
use super::zones::Zones;
use super::{
    ChunkStatistics, FileOptions, FileVersion, MetadataReader, PageLayout, TableError, TableFile,
};
use crate::stores::Device;

/// One version of a Parquet file, opened under [`FileOptions`] and shared by all tables that list it.
///
/// Its columns, chunks and pages are numbered within the file, from 0 and in ascending order. It never changes: reads
/// of a changed file fail ([`ReadError::Changed`](super::ReadError::Changed)).
pub struct ParquetFile {
    pub(super) file: TableFile,
    version: FileVersion,
    pub(super) device: Device,
    pub(super) reader: Arc<dyn MetadataReader>,
    /// A callback for memory that is taken after opening.
    pub(super) growth: OnceLock<Box<dyn Fn(u64) + Send + Sync>>,
    /// The file's full address, for errors.
    pub(super) name: Arc<str>,
    options: FileOptions,
    pub(super) metadata: Arc<ParquetMetaData>,
    fields: Fields,
    /// The leaves of each column.
    leaves_of_column: Vec<Range<usize>>,
    /// The Arrow and Parquet levels of each column, made on demand.
    levels: PerColumn<FieldLevels>,
    pub(super) layout: FileLayout,
    /// The statistics of each column, computed on demand.
    pub(super) statistics: PerColumn<ChunkStatistics>,
    pub(super) zones: Zones,
    pub(super) observed: Arc<Observed>,
}

impl ParquetFile {
    /// A file with this footer, which was checked. Nothing is read.
    pub(super) fn of_footer(
        file: TableFile,
        device: Device,
        metadata: Arc<ParquetMetaData>,
        options: FileOptions,
        reader: Arc<dyn MetadataReader>,
    ) -> Result<Arc<Self>, TableError> {
        let version = file.version();
        let name: Arc<str> = version.to_string().into();
        let schema = caught(|| read_schema(&metadata, options.types)).map_err(|reason| {
            TableError::Corrupt {
                file: Arc::clone(&name),
                reason: format!("its schema cannot be read ({reason})"),
            }
        })?;
        let leaves_of_column = leaves_of_columns(&metadata);
        let column_count = leaves_of_column.len();
        if schema.fields().len() != column_count {
            let reason = "it has a column that holds no values".to_owned();
            return Err(TableError::Unsupported { file: name, reason });
        }
        if let Some(repeated) = repeated_name(schema.fields()) {
            let reason = format!("it has several columns named `{repeated}`");
            return Err(TableError::Unsupported { file: Arc::clone(&name), reason });
        }
        let layout =
            || Ok::<_, String>(plan(&metadata, schema.fields(), &leaves_of_column, &options));
        let layout = caught(layout).map_err(|reason| TableError::Corrupt {
            file: Arc::clone(&name),
            reason: format!("its pages cannot be laid out ({reason})"),
        })?;
        Ok(Arc::new(Self {
            zones: Zones::new(&metadata, &layout.chunks, column_count),
            levels: PerColumn::new(column_count),
            statistics: PerColumn::new(column_count),
            observed: Arc::new(Observed::new(column_count, layout.chunks.len())),
            fields: schema.fields().clone(),
            leaves_of_column,
            layout,
            metadata,
            file,
            options,
            version,
            device,
            reader,
            growth: OnceLock::new(),
            name,
        }))
    }

    /// The identity of the file and its version.
    #[must_use]
    pub fn version(&self) -> &FileVersion {
        &self.version
    }

    /// The device that it is read from.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The file and its store, as listed.
    #[must_use]
    pub fn file(&self) -> &TableFile {
        &self.file
    }

    /// The options under which it was opened.
    #[must_use]
    pub fn options(&self) -> FileOptions {
        self.options
    }

    /// The footer, with its page index if it has one.
    #[must_use]
    pub fn metadata(&self) -> &Arc<ParquetMetaData> {
        &self.metadata
    }

    /// Its columns, with the types that [`FileOptions::types`] asks for.
    #[must_use]
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The number of rows.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.layout.chunks.iter().map(StoredChunk::row_count).sum()
    }

    /// The number of chunks. A file without rows has none.
    #[must_use]
    pub fn chunk_count(&self) -> usize {
        self.layout.chunks.len()
    }

    /// The number of rows of a chunk.
    ///
    /// # Panics
    /// If there is no such chunk.
    #[must_use]
    pub fn chunk_rows(&self, chunk: ChunkIndex) -> u64 {
        self.chunk(chunk).row_count()
    }

    /// The row group that holds the first row of a chunk.
    ///
    /// # Panics
    /// If there is no such chunk.
    #[must_use]
    pub fn first_row_group(&self, chunk: ChunkIndex) -> usize {
        self.chunk(chunk).row_groups[0]
    }

    /// The number of pages.
    #[must_use]
    pub fn page_count(&self) -> usize {
        self.layout.pages.len()
    }

    /// The size of a page as stored, in bytes.
    ///
    /// # Panics
    /// If there is no such page.
    #[must_use]
    pub fn page_bytes(&self, page: PageIndex) -> u64 {
        self.page(page).byte_count()
    }

    /// The range of bytes of a page in the file.
    ///
    /// # Panics
    /// If there is no such page.
    #[must_use]
    pub fn page_range(&self, page: PageIndex) -> Range<u64> {
        self.page(page).bytes.clone()
    }

    /// The pages that a column of a chunk needs, in ascending order. In a row layout they are the same for all columns.
    ///
    /// # Panics
    /// If there is no such chunk or column.
    #[must_use]
    pub fn slice(&self, chunk: ChunkIndex, column: usize) -> &[PageIndex] {
        assert!(column < self.fields.len(), "column {column} exists");
        let group = match self.options.layout {
            PageLayout::Column => column,
            PageLayout::Row => 0,
        };
        self.layout.slices.of(chunk, group)
    }

    /// Its approximate size in memory, in bytes: footer, page index, layout, statistics, and observations.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let fixed_bytes = size_of::<Self>()
            + self.name.len()
            + self.fields.iter().map(|field| field.size()).sum::<usize>()
            + size_of_val(self.leaves_of_column.as_slice())
            + self.levels.memory_bytes(|_| 0);
        let made_bytes = self.layout.memory_bytes()
            + self.zones.memory_bytes()
            + self.observed.memory_bytes()
            + self.statistics.memory_bytes(ChunkStatistics::memory_bytes)
            + self.metadata.memory_size();
        (fixed_bytes + made_bytes) as u64
    }

    pub(super) fn field(&self, column: usize) -> &Field {
        &self.fields[column]
    }

    pub(super) fn chunk(&self, chunk: ChunkIndex) -> &StoredChunk {
        &self.layout.chunks[chunk.as_usize()]
    }

    pub(super) fn page(&self, page: PageIndex) -> &StoredPage {
        &self.layout.pages[page.as_usize()]
    }

    /// The leaves of a column.
    pub(super) fn leaves(&self, column: usize) -> Range<usize> {
        self.leaves_of_column[column].clone()
    }

    /// The Arrow and Parquet levels of a column.
    pub(super) fn levels(&self, column: usize) -> Result<&FieldLevels, ParquetError> {
        self.made(
            &self.levels,
            column,
            |_| 0,
            || {
                let descriptor = self.metadata.file_metadata().schema_descr();
                let mask = ProjectionMask::roots(descriptor, [column]);
                parquet_to_arrow_field_levels(descriptor, mask, Some(&self.fields))
            },
        )
    }
}

impl fmt::Debug for ParquetFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetFile")
            .field("name", &self.name)
            .field("columns", &self.fields.len())
            .field("chunks", &self.chunk_count())
            .field("pages", &self.page_count())
            .field("rows", &self.row_count())
            .finish_non_exhaustive()
    }
}
