//! The columns of a version: stored columns, with their names in files, and partition columns.

use std::collections::HashMap;
use std::sync::Arc;

use coscan_storage::table::{ColumnKey, ColumnMapping, ColumnTypes};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use delta_kernel::engine::arrow_conversion::TryIntoArrow;
use delta_kernel::schema::{StructField, StructType};
use delta_kernel::table_features::ColumnMappingMode;

/// The columns of a version.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    /// Columns that files store.
    pub(crate) stored: SchemaRef,
    /// The stored columns as files name them, if columns are mapped.
    pub(crate) mapping: Option<ColumnMapping>,
    /// Columns that no file stores. They follow the stored ones.
    pub(crate) partitions: Vec<FieldRef>,
    /// The names of partition columns in the log.
    pub(crate) partition_keys: Vec<String>,
}

impl Columns {
    /// The columns of a table. `logical` has all of them with their names in SQL, `physical` the stored ones with their
    /// names in files.
    ///
    /// # Errors
    /// If Arrow lacks the type of a column, or a column has no id although the table maps columns by id.
    pub(crate) fn new(
        logical: &StructType,
        physical: &StructType,
        mode: ColumnMappingMode,
        types: ColumnTypes,
    ) -> Result<Self, ArrowError> {
        // The kernel ignores the mode unless the protocol of the table has it.
        let is_mapped = |stored: &StructField| {
            logical.fields().any(|field| *name_in_files(field, mode) == stored.name)
        };
        let mode = match physical.fields().all(is_mapped) {
            true => mode,
            false => ColumnMappingMode::None,
        };
        let is_stored = |field: &&StructField| physical.field(name_in_files(field, mode)).is_some();
        let (stored, partitions): (Vec<_>, Vec<_>) = logical.fields().partition(is_stored);
        let arrow = |fields: &[&StructField]| {
            let fields = fields.iter().map(|field| arrow_field(field, types));
            fields.collect::<Result<Vec<_>, _>>()
        };
        let mapping = match mode {
            ColumnMappingMode::None => None,
            ColumnMappingMode::Name | ColumnMappingMode::Id => {
                let in_files =
                    stored.iter().filter_map(|field| physical.field(name_in_files(field, mode)));
                let in_files: Vec<_> = in_files.collect();
                let key = match mode {
                    ColumnMappingMode::Id => ColumnKey::FieldId(ids(&stored)?),
                    _ => ColumnKey::Name,
                };
                Some(ColumnMapping { fields: arrow(&in_files)?.into(), key })
            }
        };
        Ok(Self {
            stored: Arc::new(Schema::new(arrow(&stored)?)),
            mapping,
            partition_keys: partitions
                .iter()
                .map(|field| name_in_files(field, mode).clone())
                .collect(),
            partitions: arrow(&partitions)?,
        })
    }
}

/// The name of a column in files and in the log.
fn name_in_files(field: &StructField, mode: ColumnMappingMode) -> &String {
    use delta_kernel::schema::{ColumnMetadataKey, MetadataValue};
    let mapped = field.get_config_value(&ColumnMetadataKey::ColumnMappingPhysicalName);
    match (mode, mapped) {
        (ColumnMappingMode::Name | ColumnMappingMode::Id, Some(MetadataValue::String(name))) => {
            name
        }
        _ => &field.name,
    }
}

/// The ids of columns, by which files number them.
fn ids(fields: &[&StructField]) -> Result<Vec<i32>, ArrowError> {
    let id = |field: &&StructField| {
        let id = field.column_mapping_id().and_then(|id| i32::try_from(id).ok());
        let missing =
            || format!("column {} has no id in a table that maps columns by id", field.name);
        id.ok_or_else(|| ArrowError::SchemaError(missing()))
    };
    fields.iter().map(id).collect()
}

fn arrow_field(field: &StructField, types: ColumnTypes) -> Result<FieldRef, ArrowError> {
    let field: Field = field.try_into_arrow()?;
    let data_type = match field.data_type() {
        DataType::Utf8 if types.views => DataType::Utf8View,
        DataType::Binary if types.views => DataType::BinaryView,
        data_type => without_metadata(data_type),
    };
    Ok(Arc::new(field.with_data_type(data_type).with_metadata(HashMap::new())))
}

/// The type without the ids of nested fields.
fn without_metadata(data_type: &DataType) -> DataType {
    let plain = |field: &FieldRef| {
        let data_type = without_metadata(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(data_type).with_metadata(HashMap::new()))
    };
    match data_type {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain).collect::<Fields>()),
        DataType::List(field) => DataType::List(plain(field)),
        DataType::Map(field, is_sorted) => DataType::Map(plain(field), *is_sorted),
        other => other.clone(),
    }
}
