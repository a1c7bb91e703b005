//! The Arrow types that the columns of a file are read as.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::parquet_to_arrow_schema;
use parquet::basic::Type as PhysicalType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::SchemaDescriptor;

use super::ColumnTypes;

impl ColumnTypes {
    /// The schema of a file with these types.
    pub(super) fn apply(self, schema: &Schema, descriptor: &SchemaDescriptor) -> Schema {
        let mut fields = schema.fields().clone();
        if let Some(unit) = self.int96_unit {
            let physical = descriptor.columns().iter().map(|column| column.physical_type());
            fields = with_int96_unit(&fields, unit, &mut physical.into_iter());
        }
        let top_level = |field: &FieldRef| {
            let data_type = self.top_level(field.data_type());
            match data_type == *field.data_type() {
                true => Arc::clone(field),
                false => Arc::new(field.as_ref().clone().with_data_type(data_type)),
            }
        };
        let fields: Fields = fields.iter().map(top_level).collect();
        Schema::new_with_metadata(fields, schema.metadata().clone())
    }

    fn top_level(self, data_type: &DataType) -> DataType {
        let data_type = match data_type {
            DataType::Binary if self.binary_as_string => DataType::Utf8,
            DataType::LargeBinary if self.binary_as_string => DataType::LargeUtf8,
            DataType::BinaryView if self.binary_as_string => DataType::Utf8View,
            data_type => data_type.clone(),
        };
        match data_type {
            DataType::Utf8 | DataType::LargeUtf8 if self.views => DataType::Utf8View,
            DataType::Binary | DataType::LargeBinary if self.views => DataType::BinaryView,
            data_type => data_type,
        }
    }
}

/// The fields with INT96 timestamps in this unit. `physical` are the types of the leaves, which Arrow and Parquet
/// have in the same order.
fn with_int96_unit(
    fields: &Fields,
    unit: TimeUnit,
    physical: &mut dyn Iterator<Item = PhysicalType>,
) -> Fields {
    let in_unit = |field: &FieldRef| {
        let data_type = in_int96_unit(field.data_type(), unit, physical);
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    };
    fields.iter().map(in_unit).collect()
}

fn in_int96_unit(
    data_type: &DataType,
    unit: TimeUnit,
    physical: &mut dyn Iterator<Item = PhysicalType>,
) -> DataType {
    let mut convert = |field: &FieldRef| {
        let data_type = in_int96_unit(field.data_type(), unit, physical);
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    };
    match data_type {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(convert).collect()),
        DataType::List(field) => DataType::List(convert(field)),
        DataType::LargeList(field) => DataType::LargeList(convert(field)),
        DataType::ListView(field) => DataType::ListView(convert(field)),
        DataType::LargeListView(field) => DataType::LargeListView(convert(field)),
        DataType::FixedSizeList(field, length) => DataType::FixedSizeList(convert(field), *length),
        DataType::Map(field, sorted) => DataType::Map(convert(field), *sorted),
        leaf => match (physical.next(), leaf) {
            (Some(PhysicalType::INT96), DataType::Timestamp(TimeUnit::Nanosecond, zone)) => {
                DataType::Timestamp(unit, zone.clone())
            }
            _ => leaf.clone(),
        },
    }
}

/// The file's own Arrow schema with these types.
pub(super) fn read_schema(
    metadata: &Arc<ParquetMetaData>,
    types: ColumnTypes,
) -> Result<SchemaRef, ParquetError> {
    let file_metadata = metadata.file_metadata();
    let (descriptor, hint) = (file_metadata.schema_descr(), file_metadata.key_value_metadata());
    let schema = Arc::new(types.apply(&parquet_to_arrow_schema(descriptor, hint)?, descriptor));
    // Fails now rather than at the first decode if the file cannot be read as these types.
    let options = ArrowReaderOptions::new().with_schema(Arc::clone(&schema));
    ArrowReaderMetadata::try_new(Arc::clone(metadata), options)?;
    Ok(schema)
}
