//! Parameters of statements: their types, and their values from untrusted bytes.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow_flight::FlightData;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::read_record_batch;
use arrow_ipc::{MessageHeader, root_as_message};
use datafusion::common::{ScalarValue, exec_err};
use futures::{Stream, TryStreamExt};
use tonic::Status;

use crate::flight::status::malformed;
use crate::flight::wire_types::wire_schema;
use crate::queries::{ErrorKind, QueryError};
use crate::sql::Planned;

/// The types of a statement's parameters, starting with `$1`, with `Utf8` for types that the plan does not determine.
/// Points in time are in milliseconds, since the JDBC driver always sends them in this unit. Other units are accepted.
pub(super) fn schema(planned: &Planned) -> Schema {
    let field = |(index, field): (usize, &Option<Arc<Field>>)| {
        let data_type = match field.as_ref().map(|field| field.data_type()) {
            Some(DataType::Dictionary(_, value)) => value.as_ref().clone(),
            Some(DataType::Timestamp(_, zone)) => {
                DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
            }
            Some(other) => other.clone(),
            None => DataType::Utf8,
        };
        Field::new(format!("${}", index + 1), data_type, true)
    };
    let fields: Vec<_> = planned.parameters.iter().enumerate().map(field).collect();
    wire_schema(&Schema::new(fields)).as_ref().clone()
}

/// The values that a client sends for the parameters of a statement, as one row.
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
    let fitted = values.into_iter().zip(types).map(|(value, field)| match field {
        Some(field) => fit(value, field.data_type()),
        None => Ok(value),
    });
    fitted.collect()
}

/// Casts a value to the type of its parameter. A number or a time that the type cannot represent (1.5 is not an
/// integer) stays unchanged, and is compared as in a statement without parameters.
fn fit(value: ScalarValue, data_type: &DataType) -> Result<ScalarValue, Status> {
    let own_type = value.data_type();
    let is_exact = own_type.is_numeric() && data_type.is_numeric()
        || own_type.is_temporal() && data_type.is_temporal();
    let cast = catch_unwind(AssertUnwindSafe(|| match value.cast_to(data_type) {
        Ok(cast) if is_exact => Ok(if is_same(&cast, &value) { cast } else { value }),
        Ok(cast) if is_list_of_numbers(&own_type) && !is_same(&cast, &value) => {
            exec_err!("it holds values that are not of that type")
        }
        Err(_) if is_exact => Ok(value),
        cast => cast,
    }));
    let cast = cast.map_err(|_| malformed("a value of a parameter cannot be converted"))?;
    cast.map_err(|error| {
        let text = format!("a parameter is no {data_type}: {error}");
        QueryError::new(ErrorKind::InvalidValue, text).into()
    })
}

/// Whether a cast has kept the value exactly.
fn is_same(cast: &ScalarValue, value: &ScalarValue) -> bool {
    cast.cast_to(&value.data_type()).is_ok_and(|back| back == *value)
}

fn is_list_of_numbers(data_type: &DataType) -> bool {
    let (DataType::List(of) | DataType::LargeList(of)) = data_type else { return false };
    of.data_type().is_numeric() || of.data_type().is_temporal()
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
            let schema = fb_to_schema(schema);
            match schema.fields().iter().find(|field| !is_readable(field.data_type())) {
                Some(field) => Err(unreadable(field.data_type())),
                None => Ok(Decoded::Schema(Arc::new(schema))),
            }
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
                // The sizes that a compressed message states would have to be trusted.
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

/// Whether values of a type are read. These are single values, and lists of values that take bytes in the message. The
/// length of other lists is only stated by the client.
fn is_readable(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(of) | DataType::LargeList(of) => match of.data_type() {
            DataType::Null | DataType::FixedSizeBinary(0) => false,
            // Each view may refer to the whole message.
            DataType::Utf8View | DataType::BinaryView => false,
            of => is_single(of),
        },
        data_type => is_single(data_type),
    }
}

fn is_single(data_type: &DataType) -> bool {
    let is_encoded = matches!(data_type, DataType::Dictionary(..) | DataType::RunEndEncoded(..));
    !data_type.is_nested() && !is_encoded
}

fn unreadable(data_type: &DataType) -> Status {
    let text = format!("parameters are single values or lists of them, not {data_type}");
    QueryError::new(ErrorKind::NotSupported, text).into()
}

fn values(row: &RecordBatch) -> Result<Vec<ScalarValue>, Status> {
    let columns = row.columns().iter();
    columns.map(|column| ScalarValue::try_from_array(column, 0).map_err(malformed)).collect()
}

fn too_many_rows() -> Status {
    let text = "a statement is run with one row of parameters at a time; bind each row by itself";
    QueryError::new(ErrorKind::NotSupported, text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_whose_length_takes_no_bytes_are_refused() {
        let item = |of: DataType| Arc::new(Field::new_list_field(of, true));
        for of in [DataType::Int64, DataType::Utf8, DataType::Boolean] {
            assert!(is_readable(&of));
            assert!(is_readable(&DataType::List(item(of.clone()))));
            assert!(is_readable(&DataType::LargeList(item(of.clone()))));
            assert!(!is_readable(&DataType::ListView(item(of.clone()))));
            assert!(!is_readable(&DataType::LargeListView(item(of.clone()))));
            assert!(!is_readable(&DataType::FixedSizeList(item(of.clone()), 1 << 30)));
            assert!(!is_readable(&DataType::List(item(DataType::List(item(of))))));
        }
        assert!(is_readable(&DataType::Null) && is_readable(&DataType::Utf8View));
        assert!(!is_readable(&DataType::List(item(DataType::Utf8View))));
        assert!(!is_readable(&DataType::LargeList(item(DataType::Null))));
        assert!(!is_readable(&DataType::List(item(DataType::FixedSizeBinary(0)))));
        let run_ends = item(DataType::Int32);
        assert!(!is_readable(&DataType::RunEndEncoded(run_ends, item(DataType::Null))));
    }
}
