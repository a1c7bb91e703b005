//! Rows of a result as messages. The rows of a batch are encoded before any of them is sent, so that a slow client
//! holds bytes, and little memory of the pool.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};
use arrow_pg::datatypes::{PG_OID_ALIAS_KEY, arrow_schema_to_pg_fields};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use pgwire::api::Type;
use pgwire::api::portal::Format;
use pgwire::api::results::FieldInfo;
use pgwire::error::PgWireError;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::RowDescription;

use crate::postgres::encode::{Column, Encoded};
use crate::postgres::row_forms::{CopyForm, RowForm};
use crate::postgres::sqlstate::{LIMIT_EXCEEDED, NOT_SUPPORTED, PgError};
use crate::postgres::wire_types::{wire_batch, wire_schema};
use crate::queries::{ErrorKind, QueryError, QueryId, RunningQuery};
use crate::sql::is_list_of_oids;

/// The maximum number of columns of a result, since it is sent in 16 bits.
const COLUMNS_MAX: usize = 32_767;

/// The maximum number of values that are encoded at once.
const VALUES_MAX: usize = 1 << 16;

/// The columns of a result, as clients see them.
pub(super) fn fields(schema: &Schema, format: &Format) -> Result<Vec<FieldInfo>, PgError> {
    let columns = schema.fields().len();
    if columns > COLUMNS_MAX {
        return Err(PgError::new(
            LIMIT_EXCEEDED,
            format!("a result has at most {COLUMNS_MAX} columns"),
        ));
    }
    if let Format::Individual(formats) = format
        && formats.len() != columns
    {
        let text = format!("{} formats were given for {columns} columns", formats.len());
        return Err(PgError::new(super::sqlstate::PROTOCOL_VIOLATION, text));
    }
    let described =
        Schema::new(wire_schema(schema).fields().iter().map(described_field).collect::<Vec<_>>());
    let mut fields = arrow_schema_to_pg_fields(&described, format, None)
        .map_err(|error| not_supported(&error))?;
    for (field, column) in fields.iter_mut().zip(schema.fields()) {
        if is_list_of_oids(column) {
            let (name, format) = (field.name().to_owned(), field.format());
            let options = field.format_options().clone();
            *field = FieldInfo::new(name, None, None, Type::OID_ARRAY, format)
                .with_format_options(options);
        }
    }
    Ok(fields)
}

/// Converts a field for the description of columns. NUMERIC gets no precision, and a catalog number that is cast to
/// another type is no longer a catalog number.
fn described_field(field: &Arc<Field>) -> Field {
    let mut field = field.as_ref().clone();
    match field.data_type() {
        DataType::Int32 => field,
        DataType::Decimal256(..) => field.with_data_type(DataType::Decimal128(38, 0)),
        _ => {
            field.metadata_mut().remove(PG_OID_ALIAS_KEY);
            field
        }
    }
}

pub(super) fn description(fields: &[FieldInfo]) -> PgWireBackendMessage {
    let fields = fields.iter().map(Into::into).collect();
    PgWireBackendMessage::RowDescription(RowDescription::new(fields))
}

fn not_supported(error: &PgWireError) -> PgError {
    PgError::new(
        NOT_SUPPORTED,
        format!("a column has a type without a form in this protocol: {error}"),
    )
}

/// A result that is being sent.
#[derive(Debug)]
pub(super) struct Rows {
    query: RunningQuery,
    fields: Arc<Vec<FieldInfo>>,
    form: RowForm,
    /// The header that precedes the first row in the same message.
    header: Bytes,
    /// Rows that are not encoded yet.
    batch: Option<RecordBatch>,
    /// The encoded rows, one message each.
    encoded: Bytes,
    /// The lengths of the encoded rows.
    lengths: VecDeque<usize>,
    has_ended: bool,
}

impl Rows {
    pub(super) fn new(query: RunningQuery, format: &Format) -> Result<Self, PgError> {
        let fields = Arc::new(fields(&query.schema, format)?);
        Ok(Self {
            query,
            fields,
            form: RowForm::Message,
            header: Bytes::new(),
            batch: None,
            encoded: Bytes::new(),
            lengths: VecDeque::new(),
            has_ended: false,
        })
    }

    /// Sends the rows in another form, with a header in the message of the first row.
    pub(super) fn copied(self, form: CopyForm, header: Bytes) -> Self {
        Self { form: RowForm::Copied(form), header, ..self }
    }

    /// The header, if there was no row to send it with.
    pub(super) fn into_header(self) -> Bytes {
        self.header
    }

    /// Checks that the rows match their description, since the types of some columns depend on the parameters.
    pub(super) fn check(&self, described: &[FieldInfo]) -> Result<(), PgError> {
        let format = |field: &FieldInfo| field.format().value();
        if !described.iter().map(format).eq(self.fields.iter().map(format)) {
            let text = "the rows of a cursor are fetched all as text or all as binary";
            return Err(PgError::new(NOT_SUPPORTED, text));
        }
        let is_same = |(described, column): (&FieldInfo, &FieldInfo)| {
            let (was, is) = (described.datatype(), column.datatype());
            let is_text =
                column.format().value() == 0 || *was == Type::UNKNOWN && *is == Type::TEXT;
            is_text || was == is
        };
        let other = described.iter().zip(self.fields.iter()).find(|pair| !is_same(*pair));
        other.map_or(Ok(()), |(described, column)| {
            Err(PgError::new(
                NOT_SUPPORTED,
                format!(
                    "column \"{}\" was described as {} and is {}, since its type depends on parameters; cast them, as in $1::{}",
                    column.name(),
                    described.datatype(),
                    column.datatype(),
                    column.datatype(),
                ),
            ))
        })
    }

    /// The number of the query.
    pub(super) fn id(&self) -> Option<QueryId> {
        self.query.id
    }

    /// Waits for rows. Returns whether there are any more.
    pub(super) async fn has_more(&mut self) -> Result<bool, PgError> {
        while self.lengths.is_empty() && !self.has_ended {
            match self.batch.take() {
                Some(batch) => {
                    self.encode_some(batch)?;
                    tokio::task::yield_now().await; // Other connections have this thread, too.
                }
                None => match self.query.next().await {
                    Some(batch) => self.batch = Some(batch?),
                    None => self.has_ended = true,
                },
            }
        }
        Ok(!self.lengths.is_empty())
    }

    /// Takes at most `rows_max` of the available rows. Returns them and their number.
    pub(super) fn take(&mut self, rows_max: usize) -> (Bytes, usize) {
        let rows = rows_max.min(self.lengths.len());
        let bytes = self.lengths.drain(..rows).sum();
        (self.encoded.split_to(bytes), rows)
    }

    /// Encodes some rows of a batch, and keeps the rest.
    fn encode_some(&mut self, batch: RecordBatch) -> Result<(), PgError> {
        let rows = (VALUES_MAX / self.fields.len().max(1)).clamp(1, batch.num_rows().max(1));
        if rows < batch.num_rows() {
            self.batch = Some(batch.slice(rows, batch.num_rows() - rows));
            return self.encode(batch.slice(0, rows));
        }
        self.encode(batch)
    }

    fn encode(&mut self, batch: RecordBatch) -> Result<(), PgError> {
        let (fields, form) = (Arc::clone(&self.fields), self.form.clone());
        // The header is sent with the first row.
        let mut header = match batch.num_rows() {
            0 => Bytes::new(),
            _ => std::mem::take(&mut self.header),
        };
        let encoded = catch_unwind(AssertUnwindSafe(move || -> Result<_, PgWireError> {
            let batch = wire_batch(&batch).map_err(|error| PgWireError::ApiError(error.into()))?;
            let columns = batch.columns().iter().zip(batch.schema_ref().fields()).zip(&*fields);
            let columns =
                columns.map(|((values, field), described)| Column::new(values, field, described));
            let columns: Vec<_> = columns.collect();
            let mut encoded = Encoded(BytesMut::with_capacity(batch.num_rows() * 16));
            let mut lengths = VecDeque::with_capacity(batch.num_rows());
            for row in 0..batch.num_rows() {
                lengths.push_back(encoded.add_row(
                    &columns,
                    row,
                    &form,
                    &std::mem::take(&mut header),
                )?);
            }
            Ok((encoded.0.freeze(), lengths))
        }));
        let internal = || QueryError::new(ErrorKind::Internal, "a row could not be encoded");
        let encoded = encoded.map_err(|_| internal())?;
        (self.encoded, self.lengths) = encoded.map_err(|error| not_supported(&error))?;
        Ok(())
    }
}
