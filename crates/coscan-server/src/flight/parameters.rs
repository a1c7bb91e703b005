//! Parameters of statements: their types, and their values from untrusted bytes.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field, Schema};
use arrow_flight::FlightData;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::read_record_batch;
use arrow_ipc::{MessageHeader, root_as_message};
use datafusion::common::ScalarValue;
use futures::{Stream, TryStreamExt};
use tonic::Status;

use crate::engine::Planned;
use crate::flight::status::malformed;
use crate::flight::wire_types::wire_schema;
use crate::queries::{ErrorKind, QueryError};

/// The types of a statement's parameters, `$1` first; `Utf8` where the plan leaves the type open.
pub(super) fn schema(planned: &Planned) -> Schema {
    let field = |(index, field): (usize, &Option<Arc<Field>>)| {
        let data_type = match field.as_ref().map(|field| field.data_type()) {
            Some(DataType::Dictionary(_, value)) => value.as_ref().clone(),
            Some(other) => other.clone(),
            None => DataType::Utf8,
        };
        Field::new(format!("${}", index + 1), data_type, true)
    };
    let fields: Vec<_> = planned.parameters.iter().enumerate().map(field).collect();
    wire_schema(&Schema::new(fields)).as_ref().clone()
}

/// The values that a client sends for the parameters of a statement: one row.
///
/// # Errors
/// If they cannot be read, there is more than one row, or a value does not fit its parameter.
pub(super) async fn read(
    planned: &Planned,
    mut messages: impl Stream<Item = Result<FlightData, Status>> + Unpin,
) -> Result<Vec<ScalarValue>, Status> {
    let (mut schema, mut values) = (None, None);
    while let Some(message) = messages.try_next().await? {
        if message.data_header.is_empty() {
            continue;
        }
        let decoded = catch_unwind(AssertUnwindSafe(|| decode(&message, schema.as_ref())));
        match decoded.map_err(|_| malformed("its Arrow data is damaged"))?? {
            Decoded::Schema(read) => schema = Some(read),
            Decoded::Row(row) if values.is_none() => values = Some(row),
            Decoded::Row(_) => return Err(too_many_rows()),
            Decoded::NoRow => {}
        }
    }
    let values = values.unwrap_or_default();
    let types = planned.parameters.iter().map(Option::as_ref);
    let types = types.chain(std::iter::repeat(None)); // How many there are is checked when they are bound.
    let fit = |(value, field): (ScalarValue, Option<&Arc<Field>>)| match field {
        Some(field) => {
            let cast = catch_unwind(AssertUnwindSafe(|| value.cast_to(field.data_type())));
            cast.map_err(|_| malformed("a value of a parameter cannot be converted"))?.map_err(
                |error| {
                    let text = format!("a parameter is no {}: {error}", field.data_type());
                    QueryError::new(ErrorKind::InvalidValue, text).into()
                },
            )
        }
        None => Ok(value),
    };
    values.into_iter().zip(types).map(fit).collect()
}

enum Decoded {
    Schema(Arc<Schema>),
    Row(Vec<ScalarValue>),
    NoRow,
}

fn decode(data: &FlightData, schema: Option<&Arc<Schema>>) -> Result<Decoded, Status> {
    let message = root_as_message(&data.data_header).map_err(malformed)?;
    match message.header_type() {
        MessageHeader::Schema => {
            let schema = message.header_as_schema().ok_or_else(|| malformed("no schema"))?;
            Ok(Decoded::Schema(Arc::new(fb_to_schema(schema))))
        }
        MessageHeader::RecordBatch => {
            let batch = message.header_as_record_batch().ok_or_else(|| malformed("no rows"))?;
            let schema = schema.ok_or_else(|| malformed("rows come before their schema"))?;
            match batch.length() {
                0 => return Ok(Decoded::NoRow),
                1 => {}
                _ => return Err(too_many_rows()),
            }
            if batch.compression().is_some() {
                // The sizes that it states would have to be trusted.
                return Err(malformed("parameters must not be compressed"));
            }
            let body = Buffer::from(data.data_body.as_ref());
            let (none, version) = (HashMap::new(), message.version());
            let row = read_record_batch(&body, batch, Arc::clone(schema), &none, None, &version);
            Ok(Decoded::Row(values(&row.map_err(malformed)?)?))
        }
        _ => Err(malformed("parameters are sent as a schema and one row, without dictionaries")),
    }
}

fn values(row: &RecordBatch) -> Result<Vec<ScalarValue>, Status> {
    let columns = row.columns().iter();
    columns.map(|column| ScalarValue::try_from_array(column, 0).map_err(malformed)).collect()
}

fn too_many_rows() -> Status {
    let text = "a statement is run with one row of parameters at a time; bind each row by itself";
    QueryError::new(ErrorKind::NotSupported, text).into()
}
