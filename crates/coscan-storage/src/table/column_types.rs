//! The Arrow types that the columns of a file are read as.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Fields, Schema, TimeUnit};
use parquet::basic::Type as PhysicalType;
use parquet::schema::types::SchemaDescriptor;

use super::ColumnTypes;

impl ColumnTypes {
    /// The schema of a file with the types that are wished for.
    pub(super) fn apply(self, schema: &Schema, descriptor: &SchemaDescriptor) -> Schema {
        let mut fields = schema.fields().clone();
        if let Some(unit) = self.int96_unit {
            let physical = descriptor.columns().iter().map(|column| column.physical_type());
            fields = with_int96_unit(&fields, unit, &mut physical.into_iter());
        }
        let at_the_top = |field: &FieldRef| {
            let data_type = self.at_the_top(field.data_type());
            match data_type == *field.data_type() {
                true => Arc::clone(field),
                false => Arc::new(field.as_ref().clone().with_data_type(data_type)),
            }
        };
        let fields: Fields = fields.iter().map(at_the_top).collect();
        Schema::new_with_metadata(fields, schema.metadata().clone())
    }

    fn at_the_top(self, data_type: &DataType) -> DataType {
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

/// The fields with INT96 timestamps in this unit. `physical` are the types of the leaves, which Arrow and Parquet have in
/// the same order.
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
    let mut of = |field: &FieldRef| {
        let data_type = in_int96_unit(field.data_type(), unit, physical);
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    };
    match data_type {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(of).collect()),
        DataType::List(field) => DataType::List(of(field)),
        DataType::LargeList(field) => DataType::LargeList(of(field)),
        DataType::ListView(field) => DataType::ListView(of(field)),
        DataType::LargeListView(field) => DataType::LargeListView(of(field)),
        DataType::FixedSizeList(field, length) => DataType::FixedSizeList(of(field), *length),
        DataType::Map(field, sorted) => DataType::Map(of(field), *sorted),
        leaf => match (physical.next(), leaf) {
            (Some(PhysicalType::INT96), DataType::Timestamp(TimeUnit::Nanosecond, zone)) => {
                DataType::Timestamp(unit, zone.clone())
            }
            _ => leaf.clone(),
        },
    }
}
