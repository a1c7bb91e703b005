//! Rows of `COPY … FROM STDIN` in the forms text and CSV, as batches of texts.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringBuilder};
use arrow::datatypes::SchemaRef;

use crate::postgres::row_forms::CopyForm;
use crate::postgres::sqlstate::{BAD_COPY, LIMIT_EXCEEDED, PgError};

/// A batch ends with this row, or when its texts have so many bytes.
const BATCH_ROWS: usize = 8192;
const BATCH_BYTES: usize = 4 << 20;

/// The most bytes of a row.
const ROW_BYTES_MAX: usize = 16 << 20;

/// Reads rows from bytes that come in pieces of any size.
pub(super) struct CopyReader {
    schema: SchemaRef,
    form: Arc<CopyForm>,
    /// Whether the next row is a header, which is left out.
    has_header: bool,
    /// What was received after the last row.
    received: Vec<u8>,
    /// How many of these bytes belong to no row that has ended, and whether they end within quotes.
    searched: usize,
    is_quoted: bool,
    /// Whether the end of the rows was marked.
    has_ended: bool,
    columns: Vec<StringBuilder>,
    rows: usize,
    bytes: usize,
    /// The number of rows so far, for errors.
    row: u64,
    batches: VecDeque<RecordBatch>,
}

impl CopyReader {
    pub(super) fn new(schema: SchemaRef, form: CopyForm, has_header: bool) -> Self {
        let columns = schema.fields().iter().map(|_| StringBuilder::new()).collect();
        Self {
            schema,
            form: Arc::new(form),
            has_header,
            received: Vec::new(),
            searched: 0,
            is_quoted: false,
            has_ended: false,
            columns,
            rows: 0,
            bytes: 0,
            row: 0,
            batches: VecDeque::new(),
        }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// If a row is not in the form of the copy, or too long.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<(), PgError> {
        self.received.extend_from_slice(bytes);
        let received = std::mem::take(&mut self.received);
        let mut start = 0;
        while let Some(end) = self.end_of_row(&received[start..]) {
            let line = &received[start..start + end];
            self.add_line(line.strip_suffix(b"\r").unwrap_or(line))?;
            start += end + 1;
            (self.searched, self.is_quoted) = (0, false);
        }
        self.received = received;
        self.received.drain(..start);
        if self.received.len() > ROW_BYTES_MAX {
            let text = format!("row {} of COPY has more than {ROW_BYTES_MAX} bytes", self.row + 1);
            return Err(PgError::new(LIMIT_EXCEEDED, text));
        }
        Ok(())
    }

    /// Takes the last row, which may lack its end.
    ///
    /// # Errors
    /// As of [`Self::read`].
    pub(super) fn finish(&mut self) -> Result<(), PgError> {
        if self.is_quoted {
            self.row += 1;
            return Err(self.wrong("ends within quotes"));
        }
        let line = std::mem::take(&mut self.received);
        if line.is_empty() {
            return Ok(());
        }
        self.add_line(line.strip_suffix(b"\r").unwrap_or(&line))
    }

    /// The next batch, if there is a full one; the last one, too, at the end.
    pub(super) fn next_batch(&mut self, is_last: bool) -> Result<Option<RecordBatch>, PgError> {
        if self.batches.is_empty() && is_last && self.rows > 0 {
            self.end_batch()?;
        }
        Ok(self.batches.pop_front())
    }

    /// The position of the line feed that ends a row.
    fn end_of_row(&mut self, bytes: &[u8]) -> Option<usize> {
        let quote = match &*self.form {
            CopyForm::Csv { quote, .. } => Some(*quote),
            CopyForm::Text { .. } | CopyForm::Binary => None,
        };
        for (position, byte) in bytes.iter().enumerate().skip(self.searched) {
            if Some(*byte) == quote {
                self.is_quoted = !self.is_quoted;
            } else if *byte == b'\n' && !self.is_quoted {
                return Some(position);
            }
        }
        self.searched = bytes.len();
        None
    }

    fn add_line(&mut self, line: &[u8]) -> Result<(), PgError> {
        if std::mem::take(&mut self.has_header) || self.has_ended {
            return Ok(());
        }
        if line == b"\\." {
            self.has_ended = true;
            return Ok(());
        }
        self.row += 1;
        let form = Arc::clone(&self.form);
        match &*form {
            CopyForm::Csv { delimiter, null, quote } => {
                self.add_csv(line, *delimiter, null.as_bytes(), *quote)?;
            }
            CopyForm::Text { delimiter, null } => {
                self.add_text(line, *delimiter, null.as_bytes())?;
            }
            CopyForm::Binary => {}
        }
        self.rows += 1;
        self.bytes += line.len();
        if self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            self.end_batch()?;
        }
        Ok(())
    }

    fn add_text(&mut self, line: &[u8], delimiter: u8, null: &[u8]) -> Result<(), PgError> {
        let (mut column, mut start) = (0, 0);
        let mut value = Vec::new();
        let mut at = 0;
        loop {
            match line.get(at) {
                Some(byte) if *byte != delimiter => {
                    if *byte == b'\\' && at + 1 < line.len() {
                        at += 1;
                        at += unescaped(&line[at..], &mut value);
                    } else {
                        value.push(*byte);
                        at += 1;
                    }
                }
                ended => {
                    let is_null = &line[start..at] == null;
                    self.add_value(column, (!is_null).then_some(&value))?;
                    value.clear();
                    column += 1;
                    at += 1;
                    start = at;
                    if ended.is_none() {
                        break;
                    }
                }
            }
        }
        self.check_columns(column)
    }

    fn add_csv(
        &mut self,
        line: &[u8],
        delimiter: u8,
        null: &[u8],
        quote: u8,
    ) -> Result<(), PgError> {
        let (mut column, mut is_quoted, mut was_quoted) = (0, false, false);
        let mut value = Vec::new();
        let mut bytes = line.iter().copied().peekable();
        loop {
            match bytes.next() {
                Some(byte) if byte == quote && is_quoted && bytes.peek() == Some(&quote) => {
                    bytes.next();
                    value.push(quote);
                }
                Some(byte) if byte == quote => {
                    is_quoted = !is_quoted;
                    was_quoted = true;
                }
                Some(byte) if byte != delimiter || is_quoted => value.push(byte),
                ended => {
                    let is_null = !was_quoted && value == null;
                    self.add_value(column, (!is_null).then_some(&value))?;
                    value.clear();
                    column += 1;
                    was_quoted = false;
                    if ended.is_none() {
                        break;
                    }
                }
            }
        }
        self.check_columns(column)
    }

    fn add_value(&mut self, column: usize, value: Option<&Vec<u8>>) -> Result<(), PgError> {
        if column >= self.columns.len() {
            return Err(self.wrong(&format!("has more than {} columns", self.columns.len())));
        }
        match value {
            None => self.columns[column].append_null(),
            Some(value) => match std::str::from_utf8(value) {
                Ok(text) => self.columns[column].append_value(text),
                Err(_) => return Err(self.wrong("is not UTF-8")),
            },
        }
        Ok(())
    }

    fn check_columns(&self, columns: usize) -> Result<(), PgError> {
        if columns < self.columns.len() {
            let expected = self.columns.len();
            return Err(self.wrong(&format!("has {columns} of {expected} columns")));
        }
        Ok(())
    }

    fn wrong(&self, what: &str) -> PgError {
        PgError::new(BAD_COPY, format!("row {} of COPY {what}", self.row))
    }

    fn end_batch(&mut self) -> Result<(), PgError> {
        let columns = self.columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef);
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns.collect());
        let batch = batch.map_err(|error| PgError::new(BAD_COPY, error.to_string()))?;
        (self.rows, self.bytes) = (0, 0);
        self.batches.push_back(batch);
        Ok(())
    }
}

/// Adds the character after a backslash, with the meaning that the text form gives it. Returns how many bytes it takes.
fn unescaped(after: &[u8], value: &mut Vec<u8>) -> usize {
    let digits = |bytes: &[u8], radix: u32, max: usize| {
        let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
        let count = bytes.iter().take(max).take_while(is_digit).count();
        let text = std::str::from_utf8(&bytes[..count]).unwrap_or_default();
        (u32::from_str_radix(text, radix).ok().map(|code| code as u8), count)
    };
    let byte = after[0];
    match byte {
        b'b' => value.push(0x08),
        b'f' => value.push(0x0c),
        b'n' => value.push(b'\n'),
        b'r' => value.push(b'\r'),
        b't' => value.push(b'\t'),
        b'v' => value.push(0x0b),
        b'0'..=b'7' => {
            let (code, count) = digits(after, 8, 3);
            value.extend(code);
            return count;
        }
        b'x' => {
            if let (Some(code), count) = digits(&after[1..], 16, 2) {
                value.push(code);
                return 1 + count;
            }
            value.push(b'x');
        }
        other => value.push(other),
    }
    1
}

#[cfg(test)]
mod tests;
