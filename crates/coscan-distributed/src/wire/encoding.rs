//! Encodes the scans of tasks.

use std::collections::BTreeMap;

use coscan_datafusion::{ScanTask, SnapshotFile, TaskTable};
use coscan_storage::table::{ColumnKey, ColumnTypes, FileOptions, PageLayout};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Schema, TimeUnit};
use datafusion::common::{DataFusionError, exec_err};
use datafusion::error::Result;
use datafusion_proto::protobuf;
use url::Url;

use super::{
    FileMessage, FileOptionsMessage, MappingMessage, SortMessage, TaskScanMessage, cannot_travel,
};

/// Encodes a task, whose filters are encoded already.
pub(crate) fn encode(
    task: &ScanTask,
    owner: &Url,
    filters: Vec<protobuf::PhysicalExprNode>,
    pushed_filters: Vec<protobuf::PhysicalExprNode>,
) -> Result<TaskScanMessage> {
    let TaskTable { name, schema, snapshot } = task.table.as_ref();
    let mut stores = Positions::default();
    let mut options = Positions::default();
    let mut files = Vec::with_capacity(snapshot.files.len());
    for SnapshotFile { file, partition_values, options: of_file, changes } in &snapshot.files {
        if changes.is_some() {
            return exec_err!("table {name} has changed rows, which cannot be sent to workers");
        }
        let values = partition_values.iter().map(protobuf::ScalarValue::try_from);
        files.push(FileMessage {
            store: stores.of(file.store_url.to_string()),
            path: file.meta.location.to_string(),
            bytes: file.meta.size,
            modified_seconds: file.meta.last_modified.timestamp(),
            modified_nanoseconds: file.meta.last_modified.timestamp_subsec_nanos(),
            entity_tag: file.meta.e_tag.clone(),
            version: file.meta.version.clone(),
            directory_values: values.collect::<Result<_, _>>().map_err(cannot_travel)?,
            options: options.of(of_file.unwrap_or_default()),
        });
    }
    let mapping = snapshot.mapping.as_ref().map(|mapping| {
        let fields = Schema::new(mapping.fields.clone());
        let ids = match &mapping.key {
            ColumnKey::Name => Vec::new(),
            ColumnKey::FieldId(ids) => ids.clone(),
        };
        Ok::<_, DataFusionError>(MappingMessage { fields: Some(schema_message(&fields)?), ids })
    });
    Ok(TaskScanMessage {
        owner: owner.to_string(),
        table: name.clone(),
        schema: Some(schema_message(schema)?),
        directory_columns: index(snapshot.partitions.len()),
        mapping: mapping.transpose()?,
        stores: stores.values,
        options: options.values.into_iter().map(FileOptionsMessage::from).collect(),
        files,
        rows: task.rows.iter().flat_map(|rows| [rows.start, rows.end - rows.start]).collect(),
        projection: task.projection.iter().map(|&column| index(column)).collect(),
        filters,
        pushed_filters,
        fetch: task.fetch.map(|fetch| fetch as u64),
        top_k: task.top_k.iter().map(SortMessage::from).collect(),
        partitions: index(task.partitions),
    })
}

impl From<FileOptions> for FileOptionsMessage {
    fn from(options: FileOptions) -> Self {
        let ColumnTypes { views, binary_as_string, int96_unit } = options.types;
        let power = |unit| match unit {
            TimeUnit::Second => 0,
            TimeUnit::Millisecond => 3,
            TimeUnit::Microsecond => 6,
            TimeUnit::Nanosecond => 9,
        };
        Self {
            chunk_rows: options.chunk_rows,
            row_pages: options.layout == PageLayout::Row,
            views,
            binary_as_string,
            int96_unit: int96_unit.map(power),
        }
    }
}

impl From<&(usize, SortOptions)> for SortMessage {
    fn from((column, options): &(usize, SortOptions)) -> Self {
        let SortOptions { descending, nulls_first } = *options;
        Self { column: index(*column), descending, nulls_first }
    }
}

/// Distinct values, which are few, by their positions.
struct Positions<T> {
    values: Vec<T>,
    positions: BTreeMap<T, u32>,
}

impl<T> Default for Positions<T> {
    fn default() -> Self {
        Self { values: Vec::new(), positions: BTreeMap::new() }
    }
}

impl<T: Clone + Ord> Positions<T> {
    fn of(&mut self, value: T) -> u32 {
        if let Some(&known) = self.positions.get(&value) {
            return known;
        }
        let position = index(self.values.len());
        self.values.push(value.clone());
        self.positions.insert(value, position);
        position
    }
}

fn index(index: usize) -> u32 {
    u32::try_from(index).expect("columns, files and partitions are fewer than four billion")
}

fn schema_message(schema: &Schema) -> Result<protobuf::Schema> {
    protobuf::Schema::try_from(schema).map_err(cannot_travel)
}
