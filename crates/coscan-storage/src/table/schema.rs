//! One schema for all files of a table.
//!
//! Names, order and types must agree. Nullability may differ, at any depth: what is nullable in one file is so in the
//! table. Metadata at the top level is dropped and nested metadata taken from the first file, as DataFusion does with
//! its defaults (`skip_metadata`, `schema_force_view_types`).

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};

use super::{ParquetFile, TableError};

/// The schema with strings and binaries at the top level as views, which need no copy of the values to filter or take.
pub(super) fn with_view_types(schema: &Schema) -> Schema {
    let as_view = |field: &FieldRef| {
        let view = match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
            DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
            _ => return Arc::clone(field),
        };
        Arc::new(field.as_ref().clone().with_data_type(view))
    };
    let fields: Fields = schema.fields().iter().map(as_view).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// The table's schema.
pub(super) fn merge_schemas(files: &[Arc<ParquetFile>]) -> Result<Schema, TableError> {
    let (first, others) = files.split_first().ok_or(TableError::NoFiles)?;
    let mut merged: Vec<Field> = first
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_metadata(Default::default()))
        .collect();
    for other in others {
        let mismatch = |column: &str, first_type: String, second_type: String| {
            Err(TableError::SchemaMismatch {
                first_file: Arc::clone(&first.name),
                second_file: Arc::clone(&other.name),
                column: column.to_owned(),
                first_type,
                second_type,
            })
        };
        for (position, field) in merged.iter_mut().enumerate() {
            let Some(other_field) = other.fields().get(position) else {
                return mismatch(field.name(), field.data_type().to_string(), "absent".to_owned());
            };
            if field.name() != other_field.name() {
                let instead = format!("not in its place, where `{}` is", other_field.name());
                return mismatch(field.name(), field.data_type().to_string(), instead);
            }
            let Some(data_type) = merge_types(field.data_type(), other_field.data_type()) else {
                let types = (field.data_type().to_string(), other_field.data_type().to_string());
                return mismatch(field.name(), types.0, types.1);
            };
            let is_nullable = field.is_nullable() || other_field.is_nullable();
            *field = field.clone().with_data_type(data_type).with_nullable(is_nullable);
        }
        if let Some(extra) = other.fields().get(merged.len()) {
            return mismatch(extra.name(), "absent".to_owned(), extra.data_type().to_string());
        }
    }
    Ok(Schema::new(merged))
}

/// A type that holds the values of both, if they differ in nothing but nested nullability and metadata.
fn merge_types(a: &DataType, b: &DataType) -> Option<DataType> {
    if a == b {
        return Some(a.clone());
    }
    Some(match (a, b) {
        (DataType::List(a), DataType::List(b)) => DataType::List(merge_fields(a, b)?),
        (DataType::LargeList(a), DataType::LargeList(b)) => {
            DataType::LargeList(merge_fields(a, b)?)
        }
        (DataType::FixedSizeList(a, length), DataType::FixedSizeList(b, other))
            if length == other =>
        {
            DataType::FixedSizeList(merge_fields(a, b)?, *length)
        }
        (DataType::Map(a, sorted), DataType::Map(b, other)) if sorted == other => {
            DataType::Map(merge_fields(a, b)?, *sorted)
        }
        (DataType::Struct(a), DataType::Struct(b)) if a.len() == b.len() => {
            let fields: Option<Vec<_>> = a.iter().zip(b).map(|(a, b)| merge_fields(a, b)).collect();
            DataType::Struct(fields?.into())
        }
        _ => return None,
    })
}

fn merge_fields(a: &FieldRef, b: &FieldRef) -> Option<FieldRef> {
    if a.name() != b.name() {
        return None;
    }
    let data_type = merge_types(a.data_type(), b.data_type())?;
    let is_nullable = a.is_nullable() || b.is_nullable();
    Some(Arc::new(a.as_ref().clone().with_data_type(data_type).with_nullable(is_nullable)))
}
