//! Encodes values of results for rows and arrays: the length, -1 for NULL, and the value in text or binary form, as
//! PostgreSQL writes `floats`, `times`, arrays and `records`. A `column` has the forms of its values.

mod column;
mod floats;
mod records;
mod times;

use std::error::Error;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Float32Type, Float64Type};
use arrow_pg::encoder::{Encoder, encode_value};
use bytes::{BufMut, BytesMut};
use pgwire::api::results::{FieldFormat, FieldInfo};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::types::ToSqlText;
use postgres_types::{IsNull, ToSql};

use crate::postgres::row_forms::{CopyForm, RowForm};
use crate::postgres::{arrays, numeric};
pub(super) use column::Column;
use column::ColumnKind;
use floats::{text_of_f32, text_of_f64};
use records::add_quoted;
use times::Time;

const LENGTH_BYTES: usize = 4;

/// Encoded values.
#[derive(Debug, Default)]
pub(super) struct Encoded(pub(super) BytesMut);

impl Encoded {
    /// Adds a row as a message, after the header of copied rows. Returns its length.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub(super) fn add_row(
        &mut self,
        columns: &[Column<'_>],
        row: usize,
        form: &RowForm,
        header: &[u8],
    ) -> PgWireResult<usize> {
        let kind = self.0.len();
        self.0.put_u8(if *form == RowForm::Message { b'D' } else { b'd' });
        let start = self.begin();
        self.0.put_slice(header);
        match form {
            RowForm::Message | RowForm::Copied(CopyForm::Binary) => {
                self.0.put_i16(i16::try_from(columns.len()).unwrap_or(i16::MAX));
                columns.iter().try_for_each(|column| self.add(column, row))?;
            }
            RowForm::Copied(form) => self.add_line(columns, row, form)?,
        }
        // The length of a message includes itself.
        self.end(start, LENGTH_BYTES)?;
        Ok(self.0.len() - kind)
    }

    /// Adds a row as a line of text.
    fn add_line(
        &mut self,
        columns: &[Column<'_>],
        row: usize,
        form: &CopyForm,
    ) -> PgWireResult<()> {
        let mut value = Self::default();
        for (index, column) in columns.iter().enumerate() {
            if let (Some(delimiter), true) = (form.delimiter(), index > 0) {
                self.0.put_u8(delimiter);
            }
            value.0.clear();
            value.add(column, row)?;
            let is_valid = !column.values.is_null(row);
            form.add(&mut self.0, is_valid.then(|| &value.0[LENGTH_BYTES..]));
        }
        self.0.put_u8(b'\n');
        Ok(())
    }

    /// Adds a value.
    ///
    /// # Errors
    /// If the protocol does not support its type, or the value is out of range.
    pub(super) fn add(&mut self, column: &Column<'_>, row: usize) -> PgWireResult<()> {
        if column.values.is_null(row) {
            self.0.put_i32(-1);
            return Ok(());
        }
        let (values, format) = (column.values, column.described.format());
        match &column.kind {
            ColumnKind::Plain(plain) => {
                let start = self.begin();
                plain.add(row, format, &mut self.0);
                return self.end(start, 0);
            }
            ColumnKind::Times => {
                let time = Time::of(values, row).map_err(out_of_range)?;
                return self.add_time(time, column);
            }
            ColumnKind::Others => {}
        }
        match (values.data_type(), format, &column.parts[..]) {
            (DataType::Float32, FieldFormat::Text, _) => {
                let value = values.as_primitive::<Float32Type>().value(row);
                self.add_bytes(text_of_f32(value).as_bytes())
            }
            (DataType::Float64, FieldFormat::Text, _) => {
                let value = values.as_primitive::<Float64Type>().value(row);
                self.add_bytes(text_of_f64(value).as_bytes())
            }
            (DataType::Decimal128(..), format, _) => {
                let number = values.as_primitive::<Decimal128Type>().value_as_string(row);
                self.add_number(&number, format)
            }
            (DataType::Decimal256(..), format, _) => {
                let number = values.as_primitive::<Decimal256Type>().value_as_string(row);
                self.add_number(&number, format)
            }
            (DataType::List(field), _, [described]) => {
                let elements = values.as_list::<i32>().value(row);
                self.add_array(&Column::new(&elements, field, described))
            }
            (DataType::Struct(fields), _, described) if fields.len() == described.len() => {
                let values = values.as_struct().columns();
                let columns = values.iter().zip(fields).zip(described);
                let columns =
                    columns.map(|((values, field), part)| Column::new(values, field, part));
                self.add_record(&columns.collect::<Vec<_>>(), row, format)
            }
            _ => {
                let start = self.0.len();
                encode_value(self, values, row, column.field, column.described)?;
                // The value is not NULL, but nothing was written for it.
                match self.0.get(start..start + LENGTH_BYTES) {
                    None | Some([0xff, 0xff, 0xff, 0xff]) => {
                        Err(api_error("a value is out of range"))
                    }
                    Some(_) => Ok(()),
                }
            }
        }
    }

    fn add_time(&mut self, time: Time, column: &Column<'_>) -> PgWireResult<()> {
        match column.described.format() {
            FieldFormat::Binary => self.add_bytes(&time.to_binary().map_err(out_of_range)?),
            FieldFormat::Text => {
                let start = self.begin();
                time.write(&mut self.0, column.zone).map_err(out_of_range)?;
                self.end(start, 0)
            }
        }
    }

    /// Adds a record with these columns.
    fn add_record(
        &mut self,
        columns: &[Column<'_>],
        row: usize,
        format: FieldFormat,
    ) -> PgWireResult<()> {
        let start = self.begin();
        match format {
            FieldFormat::Binary => {
                self.0.put_i32(i32::try_from(columns.len()).unwrap_or(i32::MAX));
                for column in columns {
                    self.0.put_u32(column.described.datatype().oid());
                    self.add(column, row)?;
                }
            }
            FieldFormat::Text => {
                let mut value = Self::default();
                self.0.put_u8(b'(');
                for (index, column) in columns.iter().enumerate() {
                    if index > 0 {
                        self.0.put_u8(b',');
                    }
                    value.0.clear();
                    value.add(column, row)?;
                    if !column.values.is_null(row) {
                        add_quoted(&mut self.0, &value.0[LENGTH_BYTES..]);
                    }
                }
                self.0.put_u8(b')');
            }
        }
        self.end(start, 0)
    }

    fn add_number(&mut self, number: &str, format: FieldFormat) -> PgWireResult<()> {
        match format {
            FieldFormat::Binary => self.add_bytes(&numeric::to_binary(number)),
            FieldFormat::Text => self.add_bytes(number.as_bytes()),
        }
    }

    fn add_bytes(&mut self, bytes: &[u8]) -> PgWireResult<()> {
        let start = self.begin();
        self.0.put_slice(bytes);
        self.end(start, 0)
    }

    fn add_array(&mut self, elements: &Column<'_>) -> PgWireResult<()> {
        let (start, count) = (self.begin(), elements.values.len());
        match elements.described.format() {
            FieldFormat::Binary => {
                let has_null = elements.values.null_count() > 0;
                let of = elements.described.datatype();
                arrays::add_binary_header(&mut self.0, of, count, has_null);
                (0..count).try_for_each(|row| self.add(elements, row))?;
            }
            FieldFormat::Text => {
                let mut element = Self::default();
                self.0.put_u8(b'{');
                for row in 0..count {
                    if row > 0 {
                        self.0.put_u8(b',');
                    }
                    if elements.values.is_null(row) {
                        self.0.put_slice(b"NULL");
                        continue;
                    }
                    element.0.clear();
                    element.add(elements, row)?;
                    arrays::add_text(&mut self.0, &element.0[LENGTH_BYTES..]);
                }
                self.0.put_u8(b'}');
            }
        }
        self.end(start, 0)
    }

    /// Reserves space for a length, which is that of NULL until it is set.
    fn begin(&mut self) -> usize {
        self.0.put_i32(-1);
        self.0.len()
    }

    /// Sets the length of the bytes from `start`, plus `more`.
    fn end(&mut self, start: usize, more: usize) -> PgWireResult<()> {
        let length = i32::try_from(self.0.len() - start + more);
        let length = length.map_err(|_| api_error("a row takes more than 2 GiB"))?;
        self.0[start - LENGTH_BYTES..start].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}

impl Encoder for Encoded {
    type Item = BytesMut;

    fn encode_field<T>(&mut self, value: &T, field: &FieldInfo) -> PgWireResult<()>
    where
        T: ToSql + ToSqlText + Sized,
    {
        let start = self.begin();
        let (of, options) = (field.datatype(), field.format_options());
        let is_null = match field.format() {
            FieldFormat::Text => value.to_sql_text(of, &mut self.0, options),
            FieldFormat::Binary => value.to_sql(of, &mut self.0),
        };
        match is_null.map_err(PgWireError::ApiError)? {
            IsNull::Yes => Ok(()),
            IsNull::No => self.end(start, 0),
        }
    }

    fn take_row(&mut self) -> BytesMut {
        self.0.split()
    }
}

fn out_of_range(_: std::fmt::Error) -> PgWireError {
    api_error("a date or time is out of range")
}

fn api_error(text: &'static str) -> PgWireError {
    PgWireError::ApiError(Box::<dyn Error + Send + Sync>::from(text))
}
