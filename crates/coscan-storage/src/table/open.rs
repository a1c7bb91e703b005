//! Opens a table: reads all footers, brings the schemas together, lays out chunks and pages.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_schema::{Fields, SchemaRef};
use futures::{StreamExt, TryStreamExt, stream};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::{
    FieldLevels, ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use super::layout::plan;
use super::panics::caught;
use super::schema::{merge_schemas, with_view_types};
use super::zones::Zones;
use super::{ParquetTable, TableError, TableFile, TableOptions, footer};

/// How many footers are read at the same time.
const FOOTERS_AT_A_TIME: usize = 8;

/// What is known of a file once its footer has been read.
pub(super) struct OpenFile {
    /// Its full address, for errors.
    pub(super) name: Arc<str>,
    pub(super) metadata: Arc<ParquetMetaData>,
    /// Its own Arrow fields with view types. They may differ from the table's in nullability and metadata.
    pub(super) fields: Fields,
    /// The leaves of each top-level column.
    pub(super) leaves_of_column: Vec<Range<usize>>,
    /// How to decode each top-level column; made when first needed.
    levels: Vec<OnceLock<FieldLevels>>,
}

impl ParquetTable {
    /// Opens a table over these files, which must have the same columns. Reads the footers only, eight at a time.
    ///
    /// # Errors
    /// If there are no files, a file cannot be read, is not sound Parquet, or has other columns than the first.
    pub async fn open(files: Vec<TableFile>, options: TableOptions) -> Result<Self, TableError> {
        if files.is_empty() {
            return Err(TableError::NoFiles);
        }
        // Collected before streaming: a closure over borrowed files is not general enough for callers that spawn.
        let opening: Vec<_> = files.iter().map(|file| OpenFile::open(file.clone())).collect();
        let open_files: Vec<_> =
            stream::iter(opening).buffered(FOOTERS_AT_A_TIME).try_collect().await?;
        let schema = Arc::new(merge_schemas(&open_files)?);
        let column_count = schema.fields().len();
        let plan = plan(&open_files, column_count, &options);
        let zones = Zones::new(&open_files, &plan.chunks, &plan.layout, column_count);
        Ok(Self {
            schema,
            page_layout: options.layout,
            layout: Arc::new(plan.layout),
            table_files: files,
            files: open_files,
            chunks: plan.chunks,
            pages: plan.pages,
            statistics: (0..column_count).map(|_| OnceLock::new()).collect(),
            zones,
        })
    }
}

impl OpenFile {
    async fn open(file: TableFile) -> Result<Self, TableError> {
        let name: Arc<str> = file.name().into();
        let metadata = Arc::new(footer::read(&file, &name).await?);
        let schema = caught(|| read_schema(&metadata)).map_err(|reason| TableError::Corrupt {
            file: Arc::clone(&name),
            reason: format!("its schema cannot be read ({reason})"),
        })?;
        let descriptor = metadata.file_metadata().schema_descr();
        let root_count = descriptor.root_schema().get_fields().len();
        if schema.fields().len() != root_count {
            let reason = "it has a column that holds no values".to_owned();
            return Err(TableError::Unsupported { file: Arc::clone(&name), reason });
        }
        let mut leaves_of_column = vec![0..0; root_count];
        for leaf in 0..descriptor.num_columns() {
            let leaves = &mut leaves_of_column[descriptor.get_column_root_idx(leaf)];
            let start = if leaves.end == 0 { leaf } else { leaves.start };
            *leaves = start..leaf + 1;
        }
        Ok(Self {
            levels: (0..root_count).map(|_| OnceLock::new()).collect(),
            fields: schema.fields().clone(),
            leaves_of_column,
            metadata,
            name,
        })
    }

    pub(super) fn leaf_count(&self) -> usize {
        self.metadata.file_metadata().schema_descr().num_columns()
    }

    /// The only leaf of a column in which every row has exactly one value or null, so that its data pages can be
    /// read on their own.
    pub(super) fn flat_leaf(&self, column: usize) -> Option<usize> {
        let leaves = self.leaves_of_column[column].clone();
        let descriptor = self.metadata.file_metadata().schema_descr();
        let is_flat = leaves.len() == 1 && descriptor.column(leaves.start).max_rep_level() == 0;
        is_flat.then_some(leaves.start)
    }

    /// How to decode a top-level column.
    pub(super) fn levels(&self, column: usize) -> Result<&FieldLevels, ParquetError> {
        if let Some(levels) = self.levels[column].get() {
            return Ok(levels);
        }
        let descriptor = self.metadata.file_metadata().schema_descr();
        let mask = ProjectionMask::roots(descriptor, [column]);
        let levels = parquet_to_arrow_field_levels(descriptor, mask, Some(&self.fields))?;
        Ok(self.levels[column].get_or_init(|| levels))
    }
}

/// The file's own Arrow schema with view types.
fn read_schema(metadata: &Arc<ParquetMetaData>) -> Result<SchemaRef, ParquetError> {
    let file_metadata = metadata.file_metadata();
    let (descriptor, hint) = (file_metadata.schema_descr(), file_metadata.key_value_metadata());
    let schema = Arc::new(with_view_types(&parquet_to_arrow_schema(descriptor, hint)?));
    // Fails now rather than at the first decode if the file cannot be read as these types.
    let options = ArrowReaderOptions::new().with_schema(Arc::clone(&schema));
    ArrowReaderMetadata::try_new(Arc::clone(metadata), options)?;
    Ok(schema)
}
