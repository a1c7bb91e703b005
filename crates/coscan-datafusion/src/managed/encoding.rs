//! Columns and values as bytes in the log.

use std::io::Cursor;
use std::panic::catch_unwind;
use std::sync::Arc;

use arrow_ipc::convert::{IpcSchemaEncoder, fb_to_schema};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::root_as_schema;
use arrow_ipc::writer::StreamWriter;
use coscan_database::{Reader, ValueFormat, put_bytes};
use coscan_storage::table::Value;
use datafusion::arrow::array::{ArrayRef, RecordBatch, new_null_array};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;

/// The first byte of a value.
mod kind {
    pub(super) const NULL: u8 = 0;
    pub(super) const FIXED: u8 = 1;
    pub(super) const BYTES: u8 = 2;
    pub(super) const OTHER: u8 = 3;
}

/// The format of values.
pub(crate) const VALUES: ValueFormat<Value> = ValueFormat { encode, decode };

fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(kind::NULL),
        Value::Fixed(bytes) => {
            out.push(kind::FIXED);
            let length = bytes.iter().rposition(|&byte| byte > 0).map_or(0, |last| last + 1);
            put_bytes(out, &bytes[..length]);
        }
        Value::Bytes(bytes) => {
            out.push(kind::BYTES);
            put_bytes(out, bytes);
        }
        Value::Other(array) => {
            out.push(kind::OTHER);
            put_bytes(out, &array_bytes(array).expect("the type was checked with the table"));
        }
    }
}

fn decode(reader: &mut Reader<'_>) -> Option<Value> {
    match reader.byte()? {
        kind::NULL => Some(Value::Null),
        kind::FIXED => {
            let stored = reader.bytes()?;
            let mut bytes = [0; 16];
            bytes.get_mut(..stored.len())?.copy_from_slice(stored);
            Some(Value::Fixed(bytes))
        }
        kind::BYTES => Some(Value::Bytes(reader.bytes()?.into())),
        kind::OTHER => {
            let bytes = reader.bytes()?;
            // The reader panics where some lengths are damaged.
            let array = catch_unwind(|| array_of(bytes)).ok().flatten()?;
            Some(Value::Other(array))
        }
        _ => None,
    }
}

/// Checks that values of a column can be written to the log.
///
/// # Errors
/// If their type cannot.
pub(crate) fn check_type(field: &Field) -> Result<()> {
    match array_bytes(&new_null_array(field.data_type(), 1)) {
        Ok(_) => Ok(()),
        Err(error) => plan_err!(
            "column {} has type {}, which a database cannot keep ({error}): cast it",
            field.name(),
            field.data_type()
        ),
    }
}

/// An array as a stream of Arrow's format for files and streams.
fn array_bytes(array: &ArrayRef) -> Result<Vec<u8>> {
    let batch = RecordBatch::try_from_iter_with_nullable([("", Arc::clone(array), true)])?;
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(&batch)?;
    Ok(writer.into_inner()?)
}

/// The array in these bytes.
fn array_of(bytes: &[u8]) -> Option<ArrayRef> {
    let mut batches = StreamReader::try_new(Cursor::new(bytes), None).ok()?;
    batches.next()?.ok()?.columns().first().cloned()
}

/// The columns of a table.
pub(crate) fn schema_bytes(schema: &Schema) -> Vec<u8> {
    IpcSchemaEncoder::new().schema_to_fb(schema).finished_data().to_vec()
}

/// The columns in these bytes.
///
/// # Errors
/// If they are not a schema.
pub(crate) fn schema_of(bytes: &[u8]) -> Result<Schema> {
    // The conversion panics at types that it does not know.
    let schema = catch_unwind(|| root_as_schema(bytes).ok().map(fb_to_schema));
    match schema.ok().flatten() {
        Some(schema) => Ok(schema),
        None => exec_err!(
            "the columns of a table of the database cannot be read: open it with the version of coscan that wrote it"
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use datafusion::arrow::array::{Int32Array, ListArray};
    use datafusion::arrow::datatypes::{DataType, Int32Type};

    use super::*;

    #[test]
    fn values_are_read_as_they_were_written() {
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None])]);
        let mut one = [0; 16];
        one[0] = 1;
        let values = [
            Value::Null,
            Value::Fixed([0; 16]),
            Value::Fixed(one),
            Value::Fixed([255; 16]),
            Value::Bytes((*b"").into()),
            Value::Bytes((*b"text").into()),
            Value::Other(Arc::new(list)),
            Value::Other(Arc::new(Int32Array::from(vec![None]))),
        ];
        let mut out = Vec::new();
        values.iter().for_each(|value| (VALUES.encode)(value, &mut out));
        let mut reader = Reader::new(&out);
        for value in values {
            assert_eq!((VALUES.decode)(&mut reader), Some(value));
        }
        assert!(reader.is_empty());
    }

    #[test]
    fn columns_are_read_as_they_were_written() {
        let fields = [
            Field::new("id", DataType::Int64, false),
            Field::new("text", DataType::Utf8View, true),
            Field::new_list("list", Field::new_list_field(DataType::Int32, true), true),
        ];
        let schema = Schema::new(fields.to_vec());
        assert_eq!(schema_of(&schema_bytes(&schema)).unwrap(), schema);
        assert!(schema_of(b"no schema").is_err());
    }
}
