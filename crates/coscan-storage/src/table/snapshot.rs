//! A table at a moment: a list of files with one schema.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_schema::{Field, SchemaRef};
use coscan_core::{ChunkIndex, GroupIndex, Index, Layout, PageIndex};
use futures::{StreamExt, TryStreamExt, stream};
use parquet::file::metadata::ParquetMetaData;

use super::per_column::PerColumn;
use super::schema::merge_schemas;
use super::{ChunkStatistics, FileOptions, PageLayout, ParquetFile, TableError, TableFile};

/// How many footers are read at the same time: as many as object stores answer at once without slowing down.
const FOOTERS_AT_A_TIME: usize = 32;

/// An ordered list of files with one schema: a table at a moment. It never changes, and shares its files with every
/// other table that lists them.
///
/// Chunks are numbered over all files in the order in which they were given. Share it in an [`Arc`].
pub struct ParquetTable {
    schema: SchemaRef,
    page_layout: PageLayout,
    files: Vec<Arc<ParquetFile>>,
    starts: Starts,
    /// For each file the columns of the table in it. Files with the same columns share the list.
    columns: Vec<Arc<[Option<usize>]>>,
    /// The rest is computed when first asked for.
    layout: OnceLock<Arc<Layout>>,
    statistics: PerColumn<ChunkStatistics>,
    zones: OnceLock<Vec<Range<u64>>>,
    zone_statistics: PerColumn<ChunkStatistics>,
}

/// Where each file begins among the chunks, pages and rows of the table, and where the last one ends.
struct Starts {
    chunks: Vec<usize>,
    pages: Vec<usize>,
    rows: Vec<u64>,
}

impl ParquetTable {
    /// Opens a table over these files, in this order. Reads the footers only, some at a time.
    ///
    /// # Errors
    /// If there are no files, a file cannot be read, is not sound Parquet, or has other columns than the first.
    pub async fn open(files: Vec<TableFile>, options: FileOptions) -> Result<Self, TableError> {
        let opening = stream::iter(files).map(|file| ParquetFile::open(file, options));
        Self::of_files(opening.buffered(FOOTERS_AT_A_TIME).try_collect().await?)
    }

    /// The table of these files, in this order. Nothing is read and nothing of the files is copied.
    ///
    /// # Errors
    /// If there are no files, or one has other columns than the first.
    ///
    /// # Panics
    /// If the files were opened under different page layouts.
    pub fn of_files(files: Vec<Arc<ParquetFile>>) -> Result<Self, TableError> {
        let first = files.first().ok_or(TableError::NoFiles)?;
        let page_layout = first.options().layout;
        let is_same = |file: &Arc<ParquetFile>| file.options().layout == page_layout;
        assert!(files.iter().all(is_same), "the files of a table have one page layout");
        let schema: SchemaRef = Arc::new(merge_schemas(&files)?);
        let column_count = schema.fields().len();
        Ok(Self {
            columns: columns_of_files(&schema, &files),
            starts: Starts::of(&files),
            layout: OnceLock::new(),
            statistics: PerColumn::new(column_count),
            zones: OnceLock::new(),
            zone_statistics: PerColumn::new(column_count),
            schema,
            page_layout,
            files,
        })
    }

    /// The Arrow schema of all files: strings and binaries at the top level are views, as DataFusion reads them; a
    /// column is nullable if it is so in any file; metadata is dropped.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The files, in the order in which they were given.
    #[must_use]
    pub fn parquet_files(&self) -> &[Arc<ParquetFile>] {
        &self.files
    }

    /// A column of the table as a column of a file, or `None` if the file lacks it.
    ///
    /// # Panics
    /// If there is no such file or column.
    #[must_use]
    pub fn file_column(&self, file: usize, column: usize) -> Option<usize> {
        self.columns[file][column]
    }

    /// The file that holds a chunk, an index into [`Self::parquet_files`], and the chunk's number within it.
    ///
    /// # Panics
    /// If there is no such chunk.
    #[must_use]
    pub fn place_of(&self, chunk: ChunkIndex) -> (usize, ChunkIndex) {
        let (file, chunk) = place(&self.starts.chunks, chunk.as_usize());
        (file, ChunkIndex::from_usize(chunk))
    }

    /// Where the rows lie: chunks, column groups and pages.
    #[must_use]
    pub fn layout(&self) -> &Arc<Layout> {
        self.layout.get_or_init(|| Arc::new(self.make_layout()))
    }

    /// The footer of a file, with its page index where it has one.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn parquet_metadata(&self, file: usize) -> &Arc<ParquetMetaData> {
        self.files[file].metadata()
    }

    /// The file that holds a chunk, an index into [`Self::parquet_files`].
    ///
    /// # Panics
    /// If there is no such chunk.
    #[must_use]
    pub fn chunk_file(&self, chunk: ChunkIndex) -> usize {
        self.place_of(chunk).0
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

    /// What the footers say of a column in each chunk. Nothing is read; the answer is kept for the next call. Bounds of
    /// nested columns are unknown.
    ///
    /// # Errors
    /// If the statistics of a file cannot be understood.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn statistics(&self, column: usize) -> Result<ChunkStatistics, TableError> {
        let concat = || self.concat(column, ParquetFile::statistics);
        self.statistics.get_or_try_make(column, concat).cloned()
    }

    /// The zones of the table, as rows from its start: each row group of a chunk that has several, else the chunk. They
    /// ascend, and together they are the table.
    #[must_use]
    pub fn zones(&self) -> &[Range<u64>] {
        self.zones.get_or_init(|| {
            let of_file = |(file, &start): (&Arc<ParquetFile>, &u64)| {
                let zones = file.zones().to_vec().into_iter();
                zones.map(move |rows| start + rows.start..start + rows.end)
            };
            self.files.iter().zip(&self.starts.rows).flat_map(of_file).collect()
        })
    }

    /// As [`Self::statistics`], with an entry a zone in every array.
    ///
    /// # Errors
    /// If the statistics of a file cannot be understood.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn zone_statistics(&self, column: usize) -> Result<ChunkStatistics, TableError> {
        let concat = || self.concat(column, ParquetFile::zone_statistics);
        self.zone_statistics.get_or_try_make(column, concat).cloned()
    }

    fn concat(
        &self,
        column: usize,
        of: fn(&ParquetFile, usize) -> Result<&ChunkStatistics, TableError>,
    ) -> Result<ChunkStatistics, TableError> {
        let of_file = |(file, columns): (&Arc<ParquetFile>, &Arc<[Option<usize>]>)| {
            let column = columns[column].expect("every file has every column");
            of(file, column).cloned()
        };
        let parts =
            self.files.iter().zip(&self.columns).map(of_file).collect::<Result<Vec<_>, _>>()?;
        let data_type = self.schema.field(column).data_type();
        ChunkStatistics::concat(&parts, data_type).map_err(|error| TableError::Unsupported {
            file: Arc::clone(&self.files[0].name),
            reason: format!("the statistics of its chunks cannot be put together ({error})"),
        })
    }

    /// The place of a page: its file and its number within it.
    ///
    /// # Panics
    /// If there is no such page.
    #[must_use]
    pub fn place_of_page(&self, page: PageIndex) -> (usize, PageIndex) {
        let (file, page) = place(&self.starts.pages, page.as_usize());
        (file, PageIndex::from_usize(page))
    }

    /// A page of a file, counted over all files.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn page_of_file(&self, file: usize, page: PageIndex) -> PageIndex {
        PageIndex::from_usize(self.starts.pages[file] + page.as_usize())
    }

    /// A column of a file that is stored in a column group, `None` if the file lacks it; in a row layout the first one
    /// stands for all.
    ///
    /// # Panics
    /// If there is no such file or column group.
    #[must_use]
    pub fn column_of_group(&self, file: usize, group: GroupIndex) -> Option<usize> {
        match self.page_layout {
            PageLayout::Column => self.file_column(file, group.as_usize()),
            PageLayout::Row => Some(0),
        }
    }

    pub(super) fn field(&self, column: usize) -> &Field {
        self.schema.field(column)
    }

    /// The number of column groups.
    #[must_use]
    pub fn group_count(&self) -> usize {
        match self.page_layout {
            PageLayout::Column => self.schema.fields().len(),
            PageLayout::Row => 1,
        }
    }
}

impl fmt::Debug for ParquetTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.files.len();
        f.debug_struct("ParquetTable")
            .field("files", &last)
            .field("columns", &self.schema.fields().len())
            .field("chunks", &self.starts.chunks[last])
            .field("pages", &self.starts.pages[last])
            .field("rows", &self.starts.rows[last])
            .finish_non_exhaustive()
    }
}

impl Starts {
    fn of(files: &[Arc<ParquetFile>]) -> Self {
        let (mut chunks, mut pages, mut rows) = (vec![0], vec![0], vec![0]);
        for (position, file) in files.iter().enumerate() {
            chunks.push(chunks[position] + file.chunk_count());
            pages.push(pages[position] + file.page_count());
            rows.push(rows[position] + file.row_count());
        }
        Self { chunks, pages, rows }
    }
}

/// Which of the ranges that begin at these starts holds an index, and the place of it within.
fn place(starts: &[usize], index: usize) -> (usize, usize) {
    let end = starts.last().copied().unwrap_or_default();
    assert!(index < end, "{index} of {end} exists");
    let range = starts.partition_point(|&start| start <= index) - 1;
    (range, index - starts[range])
}

/// For each file the columns of the table in it.
fn columns_of_files(schema: &SchemaRef, files: &[Arc<ParquetFile>]) -> Vec<Arc<[Option<usize>]>> {
    let mut columns: Vec<Arc<[Option<usize>]>> = Vec::with_capacity(files.len());
    for file in files {
        let in_file = |field: &Arc<Field>| file.fields().find(field.name()).map(|(index, _)| index);
        let found: Vec<_> = schema.fields().iter().map(in_file).collect();
        let last = columns.last().filter(|last| ***last == found[..]);
        columns.push(last.map_or_else(|| found.into(), Arc::clone));
    }
    columns
}
