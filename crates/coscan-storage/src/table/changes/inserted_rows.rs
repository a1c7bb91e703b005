//! Rows that no file has, as a file without pages.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use arrow_array::{ArrayRef, UInt64Array};
use arrow_schema::ArrowError;
use coscan_core::ChunkIndex;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};
use parquet::basic::Repetition;
use parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataBuilder, RowGroupMetaData,
};
use parquet::schema::types::{SchemaDescriptor, Type};
use url::Url;

use super::arrays::array_of;
use super::value::Value;
use crate::stores::Device;
use crate::table::metadata_reader::DirectReader;
use crate::table::{FileOptions, ParquetFile, ParquetTable, TableFile};

/// The fewest rows for which there is room.
const ROWS_MIN: u64 = 1_024;

/// The store of files that are nowhere. It is empty.
static NOWHERE: LazyLock<Arc<dyn ObjectStore>> = LazyLock::new(|| Arc::new(InMemory::new()));

/// A file without columns and pages whose chunks have room for at least `rows_max` rows: a power of two, so that few
/// tables differ in it. Chunks without rows cost scans nothing, since these need not read them.
pub(in crate::table) fn file_of_inserted_rows(
    rows_max: u64,
    options: FileOptions,
    device: Option<Device>,
) -> Arc<ParquetFile> {
    let rows = rows_max.max(ROWS_MIN).next_power_of_two();
    let metadata = Arc::new(metadata(rows, options.chunk_rows));
    let meta = ObjectMeta {
        location: Path::from("inserted rows"),
        last_modified: Default::default(),
        size: rows,
        e_tag: None,
        version: None,
    };
    let store_url = Url::parse("coscan://memory").expect("a URL");
    let file = TableFile { store: Arc::clone(&NOWHERE), store_url, meta };
    let device = device.unwrap_or_else(|| Device::Store(file.store_url.clone()));
    let file = ParquetFile::of_footer(file, device, metadata, options, Arc::new(DirectReader));
    file.expect("a footer without columns is sound")
}

/// A footer of rows without columns, in row groups of the size of chunks.
fn metadata(rows: u64, chunk_rows: u64) -> ParquetMetaData {
    let root = Type::group_type_builder("schema").with_repetition(Repetition::REQUIRED).build();
    let root = Arc::new(root.expect("a schema without columns"));
    let schema = Arc::new(SchemaDescriptor::new(root));
    let file = FileMetaData::new(2, rows.cast_signed(), None, None, Arc::clone(&schema), None);
    let chunk_rows = chunk_rows.max(1).min(rows);
    let starts = (0..rows).step_by(usize::try_from(chunk_rows).unwrap_or(usize::MAX));
    let row_groups = starts.map(|start| {
        let rows = chunk_rows.min(rows - start).cast_signed();
        let row_group = RowGroupMetaData::builder(Arc::clone(&schema)).set_num_rows(rows);
        row_group.set_column_metadata(Vec::new()).build().expect("a row group without columns")
    });
    ParquetMetaDataBuilder::new(file).set_row_groups(row_groups.collect()).build()
}

impl ParquetTable {
    /// The values of a column of a chunk that its file does not store and that differ by row: numbers of rows, and values
    /// of inserted rows. `None` for other columns.
    pub(in crate::table) fn computed_values(
        &self,
        chunk: ChunkIndex,
        column: usize,
        selection: Option<&[Range<u64>]>,
    ) -> Option<Result<ArrayRef, ArrowError>> {
        if !self.is_computed(self.chunk_file(chunk), column) {
            return None;
        }
        let all = self.layout().rows(chunk);
        let everything = 0..all.end - all.start;
        let selected = selection.unwrap_or(std::slice::from_ref(&everything));
        let rows = selected.iter().map(|rows| all.start + rows.start..all.start + rows.end);
        if self.row_number_column() == Some(column) {
            return Some(Ok(Arc::new(UInt64Array::from_iter_values(rows.flatten()))));
        }
        let first = self.first_row(self.chunk_file(chunk));
        let rows = rows.map(|rows| rows.start - first..rows.end - first);
        Some(array_of(self.data_type(column), self.inserted_values(column, rows)))
    }

    /// The values of inserted rows in a column; NULL for rows that are not inserted yet.
    fn inserted_values(
        &self,
        column: usize,
        rows: impl Iterator<Item = Range<u64>>,
    ) -> impl Iterator<Item = &Value> {
        rows.flat_map(move |rows| {
            let inserted = self.changes().inserted.iter();
            let values = inserted.flat_map(move |inserted| inserted.tail_from(rows.start));
            let values = values.map(move |insert| insert.row().get(column).unwrap_or(&Value::Null));
            let count = usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX);
            values.chain(std::iter::repeat(&Value::Null)).take(count)
        })
    }
}
