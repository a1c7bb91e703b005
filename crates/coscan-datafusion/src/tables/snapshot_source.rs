//! Sources of the snapshots of a table.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use coscan_storage::table::{
    ColumnKey, ColumnMapping, ConstantColumn, FileChanges, FileOptions, ParquetFile, ParquetTable,
    TableColumns, TableFile,
};
use datafusion::arrow::array::new_empty_array;
use datafusion::arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::{ScalarValue, not_impl_err, plan_datafusion_err};
use datafusion::error::Result;

use crate::tables::replica::{fields_of, stored_fields};
use crate::tables::statistics::stored_columns;

/// A source of the snapshots of a table: files that are listed again and again, or the log of a table format.
#[async_trait]
pub trait SnapshotSource: Debug + Send + Sync {
    /// The newest snapshot, or `None` if that is `known`, the last one that this source gave.
    ///
    /// # Errors
    /// If the files or the log cannot be read.
    async fn newest(&self, known: Option<&TableSnapshot>) -> Result<Option<TableSnapshot>>;

    /// An earlier snapshot.
    ///
    /// # Errors
    /// If there is none, it cannot be read any more, or the source keeps no earlier snapshots, which is the default.
    async fn at(&self, moment: SnapshotTime) -> Result<TableSnapshot> {
        not_impl_err!(
            "only tables with a log of versions, such as Delta tables, can be read {moment}"
        )
    }

    /// Whether later snapshots may have other columns. If not, all are read with the columns of the first. `false` by
    /// default.
    fn may_change_columns(&self) -> bool {
        false
    }
}

/// The moment of an earlier snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SnapshotTime {
    /// The snapshot with this number: `VERSION AS OF`.
    Version(u64),
    /// The last snapshot at this time, in milliseconds since 1970 in UTC: `TIMESTAMP AS OF`.
    Timestamp(i64),
}

impl std::fmt::Display for SnapshotTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Version(version) => write!(f, "VERSION AS OF {version}"),
            Self::Timestamp(milliseconds) => {
                let time = ScalarValue::TimestampMillisecond(Some(*milliseconds), None);
                let text = time.cast_to(&DataType::Utf8).map_err(|_| std::fmt::Error)?;
                write!(f, "TIMESTAMP AS OF '{text}'")
            }
        }
    }
}

/// A table at one moment: an ordered list of files, with the changes of their rows until that moment.
#[derive(Clone, Debug, Default)]
pub struct TableSnapshot {
    /// The files, each once.
    pub files: Vec<SnapshotFile>,
    /// The columns that files store; `None` for all columns of all files.
    pub columns: Option<SchemaRef>,
    /// The same columns as files name them, if they name them otherwise.
    pub mapping: Option<ColumnMapping>,
    /// The columns that no file stores, which follow the stored ones.
    pub partitions: Vec<FieldRef>,
    /// The number of the snapshot, if its source counts them.
    pub version: Option<u64>,
}

/// A file of a snapshot.
#[derive(Clone, Debug)]
pub struct SnapshotFile {
    /// The file.
    pub file: TableFile,
    /// Its value of each partition column, of the column's type or, if that is a dictionary, of the type of its values.
    pub partition_values: Vec<ScalarValue>,
    /// The changes of its rows in this snapshot.
    pub changes: Option<Arc<FileChanges>>,
    /// The options with which the file is opened, if they are not those of its table.
    pub options: Option<FileOptions>,
}

impl From<TableFile> for SnapshotFile {
    /// A file without partition values, all rows of which belong to the snapshot.
    fn from(file: TableFile) -> Self {
        Self { file, partition_values: Vec::new(), changes: None, options: None }
    }
}

impl TableSnapshot {
    /// The snapshot of an open table.
    pub(crate) fn of_table(table: &ParquetTable) -> Result<Self> {
        let value =
            |constant: &ConstantColumn, file| ScalarValue::try_from_array(&constant.values, file);
        let file = |(index, file): (usize, &Arc<ParquetFile>)| {
            let values = table.constants().iter().map(|constant| value(constant, index));
            Ok(SnapshotFile {
                file: file.file().clone(),
                partition_values: values.collect::<Result<_>>()?,
                changes: table.file_changes(index).cloned(),
                options: Some(file.options()),
            })
        };
        Ok(Self {
            files: table.stored_files().iter().enumerate().map(file).collect::<Result<_>>()?,
            columns: Some(stored_columns(table)),
            mapping: table.mapping().cloned(),
            partitions: table
                .constants()
                .iter()
                .map(|constant| Arc::clone(&constant.field))
                .collect(),
            version: None,
        })
    }

    /// The declarations of the columns of a table of its files.
    pub(crate) fn table_columns(&self) -> Result<TableColumns> {
        let constant = |(index, field): (usize, &FieldRef)| {
            let values = self.files.iter().map(|file| file.partition_values[index].clone());
            let values = match self.files.is_empty() {
                true => new_empty_array(value_type(field)), // An empty list of values has no type.
                false => ScalarValue::iter_to_array(values)?,
            };
            Ok(ConstantColumn { field: Arc::clone(field), values })
        };
        let partitions = self.partitions.iter().enumerate();
        Ok(TableColumns {
            declared: self.columns.clone(),
            mapping: self.mapping.clone(),
            constants: partitions.map(constant).collect::<Result<_>>()?,
            ..TableColumns::default()
        })
    }

    /// The same snapshot with the columns of a table: in its order, partition values in its types.
    ///
    /// # Errors
    /// If a partition value is not a value of the column's type in that table.
    pub(crate) fn read_as(mut self, table: &Schema) -> Result<Self> {
        let partitions = fields_of(table, &self.partitions);
        for (index, field) in partitions.iter().enumerate() {
            let data_type = value_type(field);
            for SnapshotFile { file, partition_values, .. } in &mut self.files {
                let value = &partition_values[index];
                if value.data_type() != *data_type {
                    partition_values[index] = value.cast_to(data_type).map_err(|error| {
                        plan_datafusion_err!(
                            "{} of {} is '{value}', which is not a value of type {data_type}: {error}",
                            field.name(),
                            file.name()
                        )
                    })?;
                }
            }
        }
        let columns = stored_fields(table, &partitions);
        if let (Some(mapping), Some(before)) = (&mut self.mapping, &self.columns) {
            let places = columns.fields().iter().map(|field| before.index_of(field.name()));
            let places = places.collect::<Result<Vec<_>, _>>()?;
            *mapping = reordered(mapping, &places);
        }
        Ok(Self { columns: Some(Arc::new(columns)), partitions, ..self })
    }
}

/// The type of the values of a partition column.
pub(crate) fn value_type(field: &FieldRef) -> &DataType {
    match field.data_type() {
        DataType::Dictionary(_, value) => value,
        data_type => data_type,
    }
}

/// The mapping of the columns at these places.
fn reordered(mapping: &ColumnMapping, places: &[usize]) -> ColumnMapping {
    let fields: Fields = places.iter().map(|&place| Arc::clone(&mapping.fields[place])).collect();
    let key = match &mapping.key {
        ColumnKey::Name => ColumnKey::Name,
        ColumnKey::FieldId(ids) => {
            ColumnKey::FieldId(places.iter().map(|&place| ids[place]).collect())
        }
    };
    ColumnMapping { fields, key }
}
