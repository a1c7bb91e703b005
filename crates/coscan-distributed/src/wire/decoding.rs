//! Decodes the scans of tasks.

use std::ops::Range;
use std::sync::Arc;

use chrono::DateTime;
use coscan_datafusion::{CoscanOptions, ScanTask, SnapshotFile, TableSnapshot, TaskTable};
use coscan_storage::table::{
    ColumnKey, ColumnMapping, ColumnTypes, FileOptions, PageLayout, TableFile,
};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Schema, TimeUnit};
use datafusion::common::{DataFusionError, ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion_proto::protobuf;
use object_store::ObjectMeta;
use object_store::path::Path;
use url::Url;

use super::{
    FileMessage, FileOptionsMessage, MappingMessage, SortMessage, TaskScanMessage, cannot_travel,
};

/// The most partitions of a task, far more than a worker has threads.
const PARTITIONS_MAX: u32 = 4096;

impl TaskScanMessage {
    /// The schema of the table, on which the filters are.
    pub(crate) fn table_schema(&self) -> Result<Schema> {
        parse_schema(self.schema.as_ref())
    }

    /// Decodes the task and its owner. Nothing is read.
    ///
    /// # Errors
    /// If the message is not sound, or names a store that this worker does not have.
    pub(crate) fn to_task(
        &self,
        coscan: &CoscanOptions,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        pushed_filters: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<(ScanTask, Url)> {
        let schema = Arc::new(self.table_schema()?);
        let fields = schema.fields();
        let Some(stored) = fields.len().checked_sub(self.directory_columns as usize) else {
            return malformed();
        };
        let projection: Vec<_> = self.projection.iter().map(|&column| column as usize).collect();
        let sorted = self.top_k.iter().map(|key| key.column as usize);
        let columns = projection.iter().copied().chain(sorted).max();
        let is_known = |filter: &Arc<dyn PhysicalExpr>| {
            collect_columns(filter).iter().all(|column| column.index() < fields.len())
        };
        let are_known = filters.iter().chain(&pushed_filters).all(is_known)
            && columns.is_none_or(|column| column < fields.len());
        if !are_known || !(1..=PARTITIONS_MAX).contains(&self.partitions) {
            return malformed();
        }
        let snapshot = TableSnapshot {
            files: self.decode_files(coscan, fields.len() - stored)?,
            columns: Some(Arc::new(Schema::new(fields[..stored].to_vec()))),
            mapping: self.mapping.as_ref().map(|mapping| mapping.decode(stored)).transpose()?,
            partitions: fields[stored..].to_vec(),
            version: None,
        };
        let table = Arc::new(TaskTable { name: self.table.clone(), schema, snapshot });
        let top_k = self.top_k.iter().map(|key| {
            let SortMessage { column, descending, nulls_first } = *key;
            (column as usize, SortOptions { descending, nulls_first })
        });
        let fetch = self.fetch.map(usize::try_from).transpose().ok();
        let task = ScanTask {
            table,
            rows: self.decode_rows()?,
            projection,
            filters,
            pushed_filters,
            fetch: fetch.flatten(),
            top_k: top_k.collect(),
            partitions: self.partitions as usize,
        };
        let owner = Url::parse(&self.owner).or_else(|_| malformed())?;
        Ok((task, owner))
    }

    fn decode_files(&self, coscan: &CoscanOptions, values: usize) -> Result<Vec<SnapshotFile>> {
        let parse = |url: &String| Url::parse(url).or_else(|_| malformed());
        let stores = self.stores.iter().map(parse).collect::<Result<Vec<_>>>()?;
        let options =
            self.options.iter().map(FileOptionsMessage::decode).collect::<Result<Vec<_>>>()?;
        let file = |file: &FileMessage| {
            let at = |index: u32| usize::try_from(index).unwrap_or(usize::MAX);
            let (Some(store_url), Some(options)) =
                (stores.get(at(file.store)), options.get(at(file.options)))
            else {
                return malformed();
            };
            // By the whole address: a store may be registered for a directory.
            let mut url = store_url.clone();
            url.set_path(&file.path);
            let resolved = coscan.stores().resolve(&url);
            let (root, store) =
                resolved.map_err(|error| DataFusionError::External(Box::new(error)))?;
            if root != *store_url {
                return malformed();
            }
            let time = DateTime::from_timestamp(file.modified_seconds, file.modified_nanoseconds);
            let (Some(last_modified), Ok(location)) = (time, Path::parse(&file.path)) else {
                return malformed();
            };
            if file.directory_values.len() != values {
                return malformed();
            }
            let directory_values = file.directory_values.iter().map(ScalarValue::try_from);
            Ok(SnapshotFile {
                options: Some(*options),
                partition_values: directory_values
                    .collect::<Result<_, _>>()
                    .map_err(cannot_travel)?,
                ..SnapshotFile::from(TableFile {
                    store,
                    store_url: root,
                    meta: ObjectMeta {
                        location,
                        last_modified,
                        size: file.bytes,
                        e_tag: file.entity_tag.clone(),
                        version: file.version.clone(),
                    },
                })
            })
        };
        self.files.iter().map(file).collect()
    }

    fn decode_rows(&self) -> Result<Vec<Range<u64>>> {
        let (ranges, rest) = self.rows.as_chunks::<2>();
        let range = |[start, count]: &[u64; 2]| start.checked_add(*count).map(|end| *start..end);
        let ranges: Option<Vec<_>> = ranges.iter().map(range).collect();
        match ranges {
            Some(ranges) if rest.is_empty() => Ok(ranges),
            _ => malformed(),
        }
    }
}

impl MappingMessage {
    fn decode(&self, stored: usize) -> Result<ColumnMapping> {
        let fields = parse_schema(self.fields.as_ref())?.fields;
        let has_ids = !self.ids.is_empty();
        if fields.len() != stored || (has_ids && self.ids.len() != stored) {
            return malformed();
        }
        let key = if has_ids { ColumnKey::FieldId(self.ids.clone()) } else { ColumnKey::Name };
        Ok(ColumnMapping { fields, key })
    }
}

impl FileOptionsMessage {
    fn decode(&self) -> Result<FileOptions> {
        let int96_unit = match self.int96_unit {
            None => None,
            Some(0) => Some(TimeUnit::Second),
            Some(3) => Some(TimeUnit::Millisecond),
            Some(6) => Some(TimeUnit::Microsecond),
            Some(9) => Some(TimeUnit::Nanosecond),
            Some(_) => return malformed(),
        };
        if self.chunk_rows == 0 {
            return malformed();
        }
        let (views, binary_as_string) = (self.views, self.binary_as_string);
        Ok(FileOptions {
            chunk_rows: self.chunk_rows,
            layout: if self.row_pages { PageLayout::Row } else { PageLayout::Column },
            types: ColumnTypes { views, binary_as_string, int96_unit },
        })
    }
}

fn parse_schema(schema: Option<&protobuf::Schema>) -> Result<Schema> {
    let Some(schema) = schema else { return malformed() };
    Schema::try_from(schema).map_err(cannot_travel)
}

fn malformed<T>() -> Result<T> {
    exec_err!(
        "the scan of a task that this worker received is malformed: start all servers with the same version of coscan"
    )
}
