//! Snapshots of tables: a list of files with one schema.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow_array::{ArrayRef, new_null_array};
use arrow_schema::{DataType, Fields, Schema, SchemaRef};
use coscan_core::{GroupIndex, Index, Layout};
use parquet::file::metadata::ParquetMetaData;

use super::changes::{TableChanges, file_of_inserted_rows};
use super::chunk_statistics::TableStatistics;
use super::schema::{columns_of_files, merge_fields};
use super::starts::Starts;
use super::types::adapt;
use super::{
    ColumnDecoder, ColumnMapping, ConstantColumn, FileOptions, PageLayout, ParquetFile,
    TableColumns, TableError, TableFile,
};

/// A snapshot of a table: an ordered list of files with one schema. It never changes, and shares its files with all
/// other tables that list them.
///
/// Chunks are numbered over all files in the order in which they were given. Share it in an [`Arc`].
pub struct ParquetTable {
    /// What it has in common with tables of the same files and other changes.
    pub(super) base: Arc<TableBase>,
    pub(super) changes: TableChanges,
}

/// A table without changes.
pub(super) struct TableBase {
    schema: SchemaRef,
    page_layout: PageLayout,
    /// The files. The last one is that of inserted rows, if there is room for any.
    files: Vec<Arc<ParquetFile>>,
    /// The number of inserted rows that there is room for.
    inserted_max: u64,
    /// Whether the last column is that of row numbers.
    has_row_numbers: bool,
    pub(super) starts: Starts,
    /// The places of the stored columns in each file. Neighbours with the same columns share the list.
    columns: Vec<Arc<[Option<usize>]>>,
    /// The stored columns as files name them, if they name them otherwise.
    mapping: Option<ColumnMapping>,
    /// The constant columns, which follow the stored ones.
    constants: Vec<ConstantColumn>,
    /// The layout, computed on demand like the statistics.
    pub(super) layout: OnceLock<Arc<Layout>>,
    pub(super) statistics: TableStatistics,
}

impl ParquetTable {
    /// Opens a table of these files, in this order. Reads only footers, some at a time.
    ///
    /// # Errors
    /// If there are no files, a file is listed twice, cannot be read or is not sound Parquet, or a column has no
    /// common type in two files.
    pub async fn open(files: Vec<TableFile>, options: FileOptions) -> Result<Self, TableError> {
        let files = files.into_iter().map(Into::into).collect();
        Self::of_files(ParquetFile::open_all(files, options).await?)
    }

    /// The table of these files, in this order. Nothing is read or copied.
    ///
    /// # Errors
    /// If there are no files, one is listed twice, or a column has no common type in two files.
    ///
    /// # Panics
    /// If the files were opened under different page layouts.
    pub fn of_files(files: Vec<Arc<ParquetFile>>) -> Result<Self, TableError> {
        Self::with_columns(files, TableColumns::default())
    }

    /// As [`Self::of_files`], with declarations of its columns. If they are declared, there may be no files.
    ///
    /// # Errors
    /// As [`Self::of_files`], and if a file is listed twice or cannot be read as the declared columns.
    ///
    /// # Panics
    /// If the files were opened under different page layouts, a constant column does not have one value of its type per
    /// file, or a mapping does not have a field for each declared column.
    pub fn with_columns(
        mut files: Vec<Arc<ParquetFile>>,
        columns: TableColumns,
    ) -> Result<Self, TableError> {
        let first = files.first().map(|file| file.options().layout);
        // Without files only a declaration says which columns there are.
        let none = columns.declared.as_ref().map(|_| PageLayout::default());
        let page_layout = first.or(none).ok_or(TableError::NoFiles)?;
        let is_same = |file: &Arc<ParquetFile>| file.options().layout == page_layout;
        assert!(files.iter().all(is_same), "the files of a table have one page layout");
        let mut listed = HashSet::new();
        let identity = |file: &ParquetFile| Arc::as_ptr(&file.file().store).cast::<()>();
        if let Some(file) =
            files.iter().find(|file| !listed.insert((file.version(), identity(file))))
        {
            return Err(TableError::ListedTwice { file: Arc::clone(&file.name) });
        }
        for ConstantColumn { field, values } in &columns.constants {
            assert_eq!(values.len(), files.len(), "`{}` has a value per file", field.name());
            let has_type = match field.data_type() {
                DataType::Dictionary(_, value) => value.as_ref() == values.data_type(),
                data_type => data_type == values.data_type(),
            };
            assert!(has_type, "`{}` has values of its type", field.name());
        }
        let stored: Fields = match columns.declared {
            Some(declared) => declared.fields().clone(),
            None => merge_fields(&files)?.into(),
        };
        if let Some(mapping) = &columns.mapping {
            assert_eq!(mapping.fields.len(), stored.len(), "each column is mapped");
        }
        let constants = columns.constants.iter().map(|constant| &constant.field);
        let own = constants.chain(&columns.row_numbers);
        let fields: Fields = stored.iter().chain(own).cloned().collect();
        let mut places = columns_of_files(&stored, columns.mapping.as_ref(), &files)?;
        let mut inserted_max = 0;
        if let Some(rows_max) = columns.inserted_rows_max {
            let first = files.first();
            let options = first.map(|file| file.options()).unwrap_or_default();
            let device = first.map(|file| file.device().clone());
            let inserted = file_of_inserted_rows(rows_max, options, device);
            inserted_max = inserted.row_count();
            files.push(inserted);
            places.push(vec![None; stored.len()].into());
        }
        let base = TableBase {
            columns: places,
            mapping: columns.mapping,
            constants: columns.constants,
            starts: Starts::of(&files),
            layout: OnceLock::new(),
            statistics: TableStatistics::new(fields.len()),
            schema: Arc::new(Schema::new(fields)),
            has_row_numbers: columns.row_numbers.is_some(),
            inserted_max,
            page_layout,
            files,
        };
        Ok(Self { base: Arc::new(base), changes: TableChanges::default() })
    }

    /// The stored columns as files name them, if they name them otherwise.
    #[must_use]
    pub fn mapping(&self) -> Option<&ColumnMapping> {
        self.base.mapping.as_ref()
    }

    /// The Arrow schema: the columns of all files, in the order in which they first appear, then the constant ones. A
    /// column is nullable if it is nullable or missing in any file. Metadata is dropped.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.base.schema
    }

    /// The files, in the order in which they were given. The last one [stands for inserted rows](Self::inserted_file), if
    /// there may be any.
    #[must_use]
    pub fn parquet_files(&self) -> &[Arc<ParquetFile>] {
        &self.base.files
    }

    /// The files that exist, in the order in which they were given.
    #[must_use]
    pub fn stored_files(&self) -> &[Arc<ParquetFile>] {
        &self.base.files[..self.base.files.len() - usize::from(self.base.inserted_max > 0)]
    }

    /// The file that stands for rows that no file has, if there may be any: an index into [`Self::parquet_files`].
    #[must_use]
    pub fn inserted_file(&self) -> Option<usize> {
        (self.base.inserted_max > 0).then(|| self.base.files.len() - 1)
    }

    /// The number of inserted rows for which there is room.
    #[must_use]
    pub fn inserted_max(&self) -> u64 {
        self.base.inserted_max
    }

    /// The column with the number of each row, counted from the start of the table, if there is one: the last one.
    #[must_use]
    pub fn row_number_column(&self) -> Option<usize> {
        self.base.has_row_numbers.then(|| self.base.schema.fields().len() - 1)
    }

    /// The place of a column of the table in a file; `None` if the file does not store it. Then all its rows have one
    /// value, and there are no pages.
    ///
    /// # Panics
    /// If there is no such file or column.
    #[must_use]
    pub fn file_column(&self, file: usize, column: usize) -> Option<usize> {
        assert!(column < self.base.schema.fields().len(), "column {column} exists");
        self.base.columns[file].get(column).copied().flatten()
    }

    /// The columns that no file stores, at the end of [`Self::schema`].
    #[must_use]
    pub fn constants(&self) -> &[ConstantColumn] {
        &self.base.constants
    }

    /// The value of all rows of a file in a column that it does not store, as an array of one. It is NULL if other
    /// files have the column, also where [values differ by row](super::TableColumns::row_numbers).
    ///
    /// # Panics
    /// If there is no such file or column.
    #[must_use]
    pub fn repeated_value(&self, file: usize, column: usize) -> ArrayRef {
        let data_type = self.data_type(column);
        let constant = column.checked_sub(self.base.columns[file].len());
        let constant = constant.and_then(|constant| self.base.constants.get(constant));
        let Some(constant) = constant.filter(|_| self.inserted_file() != Some(file)) else {
            return new_null_array(data_type, 1);
        };
        adapt(&constant.values.slice(file, 1), data_type).expect("a value of the column's type")
    }

    /// The footer of a file, with its page index if it has one.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn parquet_metadata(&self, file: usize) -> &Arc<ParquetMetaData> {
        self.base.files[file].metadata()
    }

    /// The column group that stores a column, an index into the fields of [`Self::schema`].
    ///
    /// # Panics
    /// If there is no such column.
    #[must_use]
    pub fn group_of_column(&self, column: usize) -> GroupIndex {
        assert!(column < self.base.schema.fields().len(), "column {column} exists");
        GroupIndex::from_usize(match self.base.page_layout {
            PageLayout::Column => column,
            PageLayout::Row => 0,
        })
    }

    /// The column of a file that a column group stores; `None` if the file lacks it. In a row layout the first column
    /// stands for all.
    ///
    /// # Panics
    /// If there is no such file or column group.
    #[must_use]
    pub fn column_of_group(&self, file: usize, group: GroupIndex) -> Option<usize> {
        if self.inserted_file() == Some(file) {
            return None;
        }
        match self.base.page_layout {
            PageLayout::Column => self.file_column(file, group.as_usize()),
            PageLayout::Row => Some(0),
        }
    }

    pub(super) fn data_type(&self, column: usize) -> &DataType {
        self.base.schema.field(column).data_type()
    }

    /// The type of a column with the names of nested fields in files.
    pub(super) fn stored_type(&self, column: usize) -> &DataType {
        match &self.base.mapping {
            Some(mapping) => mapping.fields[column].data_type(),
            None => self.data_type(column),
        }
    }

    /// The values of a file's column as those of a column of the table.
    pub(super) fn as_column(&self, decoder: ColumnDecoder, column: usize) -> ColumnDecoder {
        let decoder = decoder.with_type(self.stored_type(column).clone());
        decoder.with_names(self.data_type(column).clone())
    }

    /// The number of column groups.
    #[must_use]
    pub fn group_count(&self) -> usize {
        match self.base.page_layout {
            PageLayout::Column => self.base.schema.fields().len(),
            PageLayout::Row => 1,
        }
    }
}

impl fmt::Debug for ParquetTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.base.files.len();
        f.debug_struct("ParquetTable")
            .field("files", &last)
            .field("columns", &self.base.schema.fields().len())
            .field("chunks", &self.base.starts.chunks[last])
            .field("pages", &self.base.starts.pages[last])
            .field("rows", &self.base.starts.rows[last])
            .finish_non_exhaustive()
    }
}
