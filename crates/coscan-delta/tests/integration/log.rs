//! Delta tables written by hand: data files, and the JSON of commits.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use roaring::RoaringTreemap;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The first bytes of a deletion vector.
const MAGIC: u32 = 1_681_511_377;

/// A table in a directory that is deleted afterwards.
pub(crate) struct Table {
    directory: TempDir,
    next_version: u64,
    /// The time of the first version, in milliseconds since 1970.
    started: u64,
}

impl Table {
    /// Creates a table with these columns: their fields in Delta's JSON.
    pub(crate) fn new(fields: &Value, partitions: &[&str], configuration: &Value) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("_delta_log")).unwrap();
        let mut table = Self { directory, next_version: 0, started: 0 };
        let protocol = json!({"protocol": {
            "minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": ["columnMapping", "deletionVectors"],
            "writerFeatures": ["columnMapping", "deletionVectors"],
        }});
        table.commit(&[protocol, metadata(fields, partitions, configuration)]);
        table
    }

    /// Deletes the table and creates another one in its place.
    pub(crate) fn make_anew(&mut self, fields: &Value) {
        let other = Self::new(fields, &[], &json!({}));
        fs::remove_dir_all(self.path().join("_delta_log")).unwrap();
        fs::rename(other.path().join("_delta_log"), self.path().join("_delta_log")).unwrap();
        (self.next_version, self.started) = (other.next_version, 500_000);
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes the next version, at a time of as many seconds since 1970.
    pub(crate) fn commit(&mut self, actions: &[Value]) {
        let milliseconds = self.started + self.next_version * 1000;
        let info = json!({"commitInfo": {"timestamp": milliseconds, "operation": "WRITE"}});
        let lines = std::iter::once(&info).chain(actions).map(ToString::to_string);
        let text = lines.collect::<Vec<_>>().join("\n");
        let path = self.log_path();
        fs::write(&path, text).unwrap();
        let modified = std::time::UNIX_EPOCH + std::time::Duration::from_millis(milliseconds);
        File::options().append(true).open(path).unwrap().set_modified(modified).unwrap();
        self.next_version += 1;
    }

    fn log_path(&self) -> PathBuf {
        self.path().join(format!("_delta_log/{:020}.json", self.next_version))
    }

    /// Writes a data file with row groups of two rows.
    pub(crate) fn write(&self, name: &str, columns: &[(&str, ArrayRef)]) -> u64 {
        let columns = columns.iter().map(|(name, array)| (*name, Arc::clone(array), true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        self.write_batch(name, &batch)
    }

    pub(crate) fn write_batch(&self, name: &str, batch: &RecordBatch) -> u64 {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(2)).build();
        let file = File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
        fs::metadata(path).unwrap().len()
    }
}

/// The action that sets the columns of a table.
pub(crate) fn metadata(fields: &Value, partitions: &[&str], configuration: &Value) -> Value {
    let schema = json!({"type": "struct", "fields": fields}).to_string();
    json!({"metaData": {
        "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9", "format": {"provider": "parquet", "options": {}},
        "schemaString": schema, "partitionColumns": partitions, "configuration": configuration,
    }})
}

/// A column in Delta's JSON.
pub(crate) fn field(name: &str, data_type: Value) -> Value {
    json!({"name": name, "type": data_type, "nullable": true, "metadata": {}})
}

/// A column that files have under another name.
pub(crate) fn mapped_field(name: &str, data_type: Value, physical: &str, id: i32) -> Value {
    json!({"name": name, "type": data_type, "nullable": true, "metadata": {
        "delta.columnMapping.id": id, "delta.columnMapping.physicalName": physical,
    }})
}

/// The action that adds a file, without some of its rows.
pub(crate) fn add(name: &str, bytes: u64, partition_values: &Value, deleted: &[u64]) -> Value {
    let mut add = json!({
        "path": name, "size": bytes, "modificationTime": 0, "dataChange": true,
        "partitionValues": partition_values, "stats": "{\"numRecords\":4}",
    });
    if let Some(vector) = deletion_vector(deleted) {
        add["deletionVector"] = vector;
    }
    json!({"add": add})
}

/// The action that removes a file with its deletion vector.
pub(crate) fn remove(name: &str, deleted: &[u64]) -> Value {
    let mut remove = json!({"path": name, "deletionTimestamp": 0, "dataChange": true});
    if let Some(vector) = deletion_vector(deleted) {
        remove["deletionVector"] = vector;
    }
    json!({"remove": remove})
}

/// A deletion vector within the log.
fn deletion_vector(deleted: &[u64]) -> Option<Value> {
    if deleted.is_empty() {
        return None;
    }
    let mut bytes = MAGIC.to_le_bytes().to_vec();
    deleted.iter().collect::<RoaringTreemap>().serialize_into(&mut bytes).unwrap();
    let size = bytes.len();
    bytes.resize(size.next_multiple_of(4), 0);
    Some(json!({
        "storageType": "i", "pathOrInlineDv": z85::encode(&bytes),
        "sizeInBytes": size, "cardinality": deleted.len(),
    }))
}
