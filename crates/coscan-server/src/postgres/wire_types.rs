//! Types that the protocol supports. Columns of other types are sent as the nearest one: small integers and floats as
//! wider ones, lists of lists and maps as text.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// The type in which values of a type are sent.
fn wire_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Null => DataType::Utf8, // As in PostgreSQL: `SELECT NULL` is text.
        DataType::Int8 => DataType::Int16,
        DataType::Float16 => DataType::Float32,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Dictionary(_, value) => wire_type(value),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _) => match wire_type(field.data_type()) {
            DataType::List(_) | DataType::Struct(_) | DataType::Decimal256(..) => DataType::Utf8,
            _ => DataType::List(Arc::new(wire_field(field))),
        },
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(wire_field).collect()),
        DataType::Map(..) | DataType::Union(..) | DataType::RunEndEncoded(..) => DataType::Utf8,
        other => other.clone(),
    }
}

fn wire_field(field: &FieldRef) -> Field {
    field.as_ref().clone().with_data_type(wire_type(field.data_type()))
}

/// The schema in which rows of a schema are sent.
pub(super) fn wire_schema(schema: &Schema) -> SchemaRef {
    let fields: Vec<_> = schema.fields().iter().map(wire_field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Converts rows to types of the protocol.
pub(super) fn wire_batch(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = wire_schema(batch.schema_ref());
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
        match (column.data_type(), field.data_type()) {
            (is, sent) if is == sent => Ok(ArrayRef::clone(column)),
            (DataType::Dictionary(..), sent) => cast(column, sent),
            (_, DataType::Utf8) => texts(column),
            (_, sent) => cast(column, sent),
        }
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema, columns, &rows)
}

/// Converts values to text.
fn texts(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let options = FormatOptions::new().with_null("NULL");
    let values = ArrayFormatter::try_new(column.as_ref(), &options)?;
    // A column of NULLs only has no null bitmap.
    let nulls = column.logical_nulls();
    let is_null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let texts = (0..column.len()).map(|row| match is_null(row) {
        true => Ok(None),
        false => values.value(row).try_to_string().map(Some),
    });
    Ok(Arc::new(texts.collect::<Result<StringArray, _>>()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use arrow::array::{AsArray, Int8Array, ListArray};
    use arrow::datatypes::{Int8Type, Int16Type};

    use super::*;

    #[test]
    fn columns_without_a_form_become_the_nearest_that_has_one() {
        let lists =
            ListArray::from_iter_primitive::<Int8Type, _, _>([Some(vec![Some(1), None]), None]);
        let nested = ListArray::new(
            Arc::new(Field::new_list_field(lists.data_type().clone(), true)),
            arrow::buffer::OffsetBuffer::from_lengths([1, 1]),
            Arc::new(lists.clone()),
            None,
        );
        let columns: [(&str, ArrayRef); 3] = [
            ("small", Arc::new(Int8Array::from(vec![Some(-7), None]))),
            ("lists", Arc::new(lists)),
            ("nested", Arc::new(nested)),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.map(|(name, column)| (name, column, true)),
        );
        let sent = wire_batch(&batch.unwrap()).unwrap();
        assert_eq!(sent.column(0).as_primitive::<Int16Type>().value(0), -7);
        assert!(sent.column(0).is_null(1) && sent.column(1).is_null(1));
        assert_eq!(
            sent.column(1).as_list::<i32>().value(0).as_primitive::<Int16Type>().value(0),
            1
        );
        assert_eq!(sent.column(2).as_string::<i32>().value(0), "[[1, NULL]]");
    }
}
