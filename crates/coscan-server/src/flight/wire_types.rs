//! Types that all clients can read. Plans have strings and binaries as views. Few clients support views, and they would
//! be sent with all the buffers that they refer to.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;

/// The type in which values of a type are sent.
fn wire_type(data_type: &DataType) -> DataType {
    let plain = |field: &FieldRef| -> FieldRef { Arc::new(wire_field(field)) };
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(field) | DataType::ListView(field) => DataType::List(plain(field)),
        DataType::LargeList(field) | DataType::LargeListView(field) => {
            DataType::LargeList(plain(field))
        }
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(plain(field), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain).collect()),
        DataType::Map(field, is_sorted) => DataType::Map(plain(field), *is_sorted),
        DataType::Dictionary(key, value) => {
            DataType::Dictionary(key.clone(), Box::new(wire_type(value)))
        }
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

/// The rows, cast to the types of a plain schema. Columns that have these types already are not copied.
pub(super) fn plain_batch(
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
        if column.data_type() == field.data_type() {
            Ok(ArrayRef::clone(column))
        } else {
            cast(column, field.data_type())
        }
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// Splits rows into pieces of about `bytes_max` bytes. Only the bytes of the rows count, not the buffers that they
/// share with others.
pub(super) fn pieces(batch: &RecordBatch, bytes_max: usize) -> Vec<RecordBatch> {
    let sizes = batch.columns().iter().map(|column| column.to_data().get_slice_memory_size());
    // A batch with a type of unknown size is not split.
    let bytes: usize = sizes.map(|size| size.unwrap_or_default()).sum();
    let rows = batch.num_rows();
    let rows_max = rows.div_ceil(bytes.div_ceil(bytes_max).max(1)).max(1);
    let starts = (0..rows).step_by(rows_max);
    starts.map(|start| batch.slice(start, rows_max.min(rows - start))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use arrow::array::{AsArray, Int64Array, ListBuilder, StringViewArray, StringViewBuilder};
    use arrow::datatypes::Int64Type;

    use super::*;

    #[test]
    fn views_become_plain_also_within_lists() {
        let text = "longer than the twelve bytes of a view";
        let strings = StringViewArray::from(vec![Some(text), None, Some("short")]);
        let mut lists = ListBuilder::new(StringViewBuilder::new());
        lists.append_value([Some(text), None]);
        lists.append_null();
        lists.append_value([None::<&str>; 0]);
        let columns: [(&str, ArrayRef); 2] =
            [("strings", Arc::new(strings)), ("lists", Arc::new(lists.finish()))];
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.map(|(name, column)| (name, column, true)),
        );
        let batch = batch.unwrap();
        let schema = wire_schema(batch.schema_ref());
        assert_eq!(schema.field(0).data_type(), &DataType::Utf8);
        let plain = plain_batch(&batch.slice(0, 2), &schema).unwrap();
        assert_eq!(plain.schema(), schema);
        assert_eq!(
            plain.column(0).as_string::<i32>().iter().collect::<Vec<_>>(),
            [Some(text), None]
        );
        let list = plain.column(1).as_list::<i32>().value(0);
        assert_eq!(list.as_string::<i32>().value(0), text);
        assert!(plain.column(1).is_null(1));
    }

    #[test]
    fn pieces_have_all_rows_and_about_the_size() {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100_000));
        let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
        let all = pieces(&batch, 100_000);
        assert_eq!(all.len(), 8);
        let rows =
            all.iter().flat_map(|piece| piece.column(0).as_primitive::<Int64Type>().values());
        assert!(rows.copied().eq(0..100_000));
        // The other rows of its buffers do not count.
        assert_eq!(pieces(&batch.slice(5_000, 8_192), 100_000).len(), 1);
        assert_eq!(pieces(&batch.slice(0, 0), 100_000).len(), 0);
        assert_eq!(pieces(&batch, 1).len(), 100_000);
    }
}
