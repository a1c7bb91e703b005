//! Results in forms for people and programs.

use std::io::{self, Write};
use std::sync::Arc;

use arrow::array::{ArrayRef, LargeStringArray, RecordBatch, RecordBatchOptions};
use arrow::csv::WriterBuilder;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::ArrayWriter;
use arrow::json::writer::{JsonArray, WriterBuilder as JsonWriterBuilder};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow::util::pretty::pretty_format_batches;
use clap::ValueEnum;

use crate::Failure;

/// The format of printed results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Boxes with a header, the first rows only
    Table,
    /// Comma-separated values with a header, all rows
    Csv,
    /// One JSON array of objects, all rows
    Json,
}

/// Prints one result, batch by batch.
pub(super) struct Printer<W: Write> {
    schema: SchemaRef,
    rows: usize,
    style: Style<W>,
}

enum Style<W: Write> {
    /// `kept` has the values as text. The values themselves count in the memory budget as long as they are kept.
    Table {
        out: W,
        rows_max: Option<usize>,
        kept: Vec<RecordBatch>,
    },
    Csv(Box<arrow::csv::Writer<W>>),
    Json(ArrayWriter<W>),
}

impl<W: Write> Printer<W> {
    /// Creates a printer for rows of this schema. A table shows at most `rows_max` rows.
    pub(super) fn new(out: W, format: Format, rows_max: Option<usize>, schema: SchemaRef) -> Self {
        let style = match format {
            Format::Table => Style::Table { out, rows_max, kept: Vec::new() },
            Format::Csv => Style::Csv(Box::new(WriterBuilder::new().with_header(true).build(out))),
            // If fields were left out, they could not be distinguished from fields that the query
            // does not have.
            Format::Json => Style::Json(
                JsonWriterBuilder::new().with_explicit_nulls(true).build::<_, JsonArray>(out),
            ),
        };
        Self { schema, rows: 0, style }
    }

    /// Prints a batch, or keeps it until all widths are known.
    pub(super) fn print(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        match &mut self.style {
            Style::Table { rows_max, kept, .. } => {
                let room = rows_max.map_or(usize::MAX, |max| max.saturating_sub(self.rows));
                if room > 0 {
                    kept.push(as_text(&batch.slice(0, batch.num_rows().min(room)))?);
                }
            }
            Style::Csv(writer) => writer.write(batch)?,
            Style::Json(writer) => writer.write(batch)?,
        }
        self.rows += batch.num_rows();
        Ok(())
    }

    /// Ends the result. Returns its number of rows.
    pub(super) fn finish(mut self) -> Result<usize, Failure> {
        match &mut self.style {
            Style::Table { out, rows_max, kept } => {
                if kept.is_empty() {
                    kept.push(RecordBatch::new_empty(self.schema));
                }
                writeln!(out, "{}", pretty_format_batches(kept)?)?;
                if let Some(max) = rows_max.filter(|&max| self.rows > max) {
                    writeln!(
                        out,
                        "the first {max} of {} rows; --max-rows 0 or --format csv shows all",
                        self.rows
                    )?;
                }
            }
            Style::Csv(writer) => {
                if self.rows == 0 {
                    writer.write(&RecordBatch::new_empty(self.schema))?;
                }
            }
            Style::Json(writer) => writer.finish()?,
        }
        if let Style::Json(writer) = self.style {
            writeln!(writer.into_inner())?;
        }
        Ok(self.rows)
    }
}

/// Converts the values of a batch to text.
fn as_text(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let options = FormatOptions::default().with_null("NULL");
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let values = ArrayFormatter::try_new(column, &options)?;
        let texts = (0..batch.num_rows()).map(|row| values.value(row).try_to_string());
        // Offsets have 64 bits, since the text of a batch has no limit.
        columns.push(Arc::new(texts.collect::<Result<Vec<_>, _>>().map(LargeStringArray::from)?));
        fields.push(Field::new(field.name(), DataType::LargeUtf8, false));
    }
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &rows)
}

/// Whether an error means that the reader of the output has closed it, as with `| head`.
pub(super) fn is_broken_pipe(error: &Failure) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error.as_ref());
    while let Some(error) = cause {
        if error
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringArray};

    use super::*;

    fn printed(format: Format, rows_max: Option<usize>, rows: usize) -> String {
        let ids = Int64Array::from_iter((0..rows).map(|id| (id != 1).then_some(id as i64)));
        let names = StringArray::from_iter_values((0..rows).map(|id| format!("n{id}")));
        let batch = RecordBatch::try_from_iter([
            ("id", Arc::new(ids) as _),
            ("name", Arc::new(names) as _),
        ])
        .unwrap();
        let mut out = Vec::new();
        let mut printer = Printer::new(&mut out, format, rows_max, batch.schema());
        if rows > 0 {
            printer.print(&batch).unwrap();
        }
        assert_eq!(printer.finish().unwrap(), rows);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tables_show_nulls_and_say_when_they_are_cut() {
        let table = printed(Format::Table, Some(2), 3);
        assert!(table.contains("| NULL | n1   |") && !table.contains("n2"), "{table}");
        assert!(table.contains("the first 2 of 3 rows"), "{table}");
        assert!(printed(Format::Table, None, 0).contains("| id | name |"));
    }

    #[test]
    fn csv_and_json_have_all_rows() {
        assert_eq!(printed(Format::Csv, Some(1), 2), "id,name\n0,n0\n,n1\n");
        assert_eq!(printed(Format::Csv, None, 0), "id,name\n");
        assert_eq!(
            printed(Format::Json, Some(1), 2),
            "[{\"id\":0,\"name\":\"n0\"},{\"id\":null,\"name\":\"n1\"}]\n"
        );
        assert_eq!(printed(Format::Json, None, 0), "[]\n");
    }
}
