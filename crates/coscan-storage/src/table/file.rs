//! One version of a file, opened: its footer, its chunks and its pages.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{Field, Fields, SchemaRef};
use coscan_core::{ChunkIndex, Index, PageIndex};
use futures::{StreamExt, TryStreamExt, stream};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::{
    FieldLevels, ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use super::layout::{FileLayout, plan};
use super::leaves::leaves_of_columns;
use super::pages::{StoredChunk, StoredPage};
use super::panics::caught;
use super::per_column::PerColumn;
use super::zones::Zones;
use super::{
    ChunkStatistics, ColumnTypes, FileOptions, FileToOpen, FileVersion, PageLayout, TableError,
    TableFile, footer,
};

/// How many footers are read at the same time: as many as object stores answer at once without slowing down.
const FOOTERS_AT_A_TIME: usize = 32;

/// One version of a Parquet file, opened under [`FileOptions`]: what every table that lists it shares.
///
/// Its columns, chunks and pages are numbered within the file, from 0 and in ascending order. It never changes; a file
/// that does is reported, never read ([`ReadError::Changed`](super::ReadError::Changed)).
pub struct ParquetFile {
    pub(super) file: TableFile,
    version: FileVersion,
    /// Its full address, for errors.
    pub(super) name: Arc<str>,
    options: FileOptions,
    pub(super) metadata: Arc<ParquetMetaData>,
    fields: Fields,
    /// The leaves of each column.
    leaves_of_column: Vec<Range<usize>>,
    /// How to decode each column; made when first needed.
    levels: PerColumn<FieldLevels>,
    pub(super) layout: FileLayout,
    /// Computed when first asked for.
    pub(super) statistics: PerColumn<ChunkStatistics>,
    pub(super) zones: Zones,
}

impl ParquetFile {
    /// Opens a file. Reads just the footer, with its page index, if that is not given.
    ///
    /// # Errors
    /// If the file cannot be read, is not sound Parquet, or uses what coscan does not know.
    pub async fn open(
        file: impl Into<FileToOpen>,
        options: FileOptions,
    ) -> Result<Arc<Self>, TableError> {
        let FileToOpen { file, footer } = file.into();
        let version = file.version();
        let name: Arc<str> = version.to_string().into();
        let metadata = match footer.filter(|footer| footer::is_whole(footer)) {
            Some(footer) => footer,
            None => footer::read(&file, &name).await?,
        };
        let metadata = footer::checked(metadata, &name, file.meta.size)?;
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
        let layout = plan(&metadata, schema.fields(), &leaves_of_column, &options);
        Ok(Arc::new(Self {
            zones: Zones::new(&metadata, &layout.chunks, column_count),
            levels: PerColumn::new(column_count),
            statistics: PerColumn::new(column_count),
            fields: schema.fields().clone(),
            leaves_of_column,
            layout,
            metadata,
            file,
            options,
            version,
            name,
        }))
    }

    /// Opens files, some at a time, and gives them in this order.
    ///
    /// # Errors
    /// As [`Self::open`], of the first that fails.
    pub async fn open_all(
        files: Vec<FileToOpen>,
        options: FileOptions,
    ) -> Result<Vec<Arc<Self>>, TableError> {
        let opening = stream::iter(files).map(|file| Self::open(file, options));
        opening.buffered(FOOTERS_AT_A_TIME).try_collect().await
    }

    /// Which file it is, and which version of it.
    #[must_use]
    pub fn version(&self) -> &FileVersion {
        &self.version
    }

    /// The file and its store, as listed.
    #[must_use]
    pub fn file(&self) -> &TableFile {
        &self.file
    }

    /// How it was opened.
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

    /// All its rows.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.layout.chunks.iter().map(StoredChunk::row_count).sum()
    }

    /// The number of chunks. A file without rows has none.
    #[must_use]
    pub fn chunk_count(&self) -> usize {
        self.layout.chunks.len()
    }

    /// The rows that a chunk has.
    ///
    /// # Panics
    /// If there is no such chunk.
    #[must_use]
    pub fn chunk_rows(&self, chunk: ChunkIndex) -> u64 {
        self.chunk(chunk).row_count()
    }

    /// The number of pages.
    #[must_use]
    pub fn page_count(&self) -> usize {
        self.layout.pages.len()
    }

    /// The bytes of a page as stored.
    ///
    /// # Panics
    /// If there is no such page.
    #[must_use]
    pub fn page_bytes(&self, page: PageIndex) -> u64 {
        self.page(page).byte_count()
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

    /// About how many bytes it takes in memory: the footer, the page index and what is made of them.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let own = size_of::<Self>()
            + self.name.len()
            + self.fields.iter().map(|field| field.size()).sum::<usize>()
            + size_of_val(self.leaves_of_column.as_slice())
            + self.levels.memory_bytes(|_| 0);
        let rest = self.layout.memory_bytes()
            + self.zones.memory_bytes()
            + self.statistics.memory_bytes(ChunkStatistics::memory_bytes)
            + self.metadata.memory_size();
        (own + rest) as u64
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

    /// How to decode a column.
    pub(super) fn levels(&self, column: usize) -> Result<&FieldLevels, ParquetError> {
        self.levels.get_or_try_make(column, || {
            let descriptor = self.metadata.file_metadata().schema_descr();
            let mask = ProjectionMask::roots(descriptor, [column]);
            parquet_to_arrow_field_levels(descriptor, mask, Some(&self.fields))
        })
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

/// A name that several columns have: columns are found by name.
fn repeated_name(fields: &Fields) -> Option<&str> {
    let mut names = HashSet::new();
    fields.iter().map(|field| field.name().as_str()).find(|&name| !names.insert(name))
}

/// The file's own Arrow schema with these types.
fn read_schema(
    metadata: &Arc<ParquetMetaData>,
    types: ColumnTypes,
) -> Result<SchemaRef, ParquetError> {
    let file_metadata = metadata.file_metadata();
    let (descriptor, hint) = (file_metadata.schema_descr(), file_metadata.key_value_metadata());
    let schema = Arc::new(types.apply(&parquet_to_arrow_schema(descriptor, hint)?, descriptor));
    // Fails now rather than at the first decode if the file cannot be read as these types.
    let options = ArrowReaderOptions::new().with_schema(Arc::clone(&schema));
    ArrowReaderMetadata::try_new(Arc::clone(metadata), options)?;
    Ok(schema)
}
