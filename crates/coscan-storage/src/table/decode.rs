//! Decodes one column of one chunk, batch by batch.
//!
//! It uses public API of parquet only: parquet's reader over [`ColumnPages`], which implements
//! [`RowGroups`](parquet::arrow::arrow_reader::RowGroups) over pages in memory. Checksums of pages are verified where
//! the file has them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, new_null_array};
use arrow_schema::{ArrowError, DataType};
use bytes::Bytes;
use coscan_core::{ChunkIndex, PageIndex};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::errors::ParquetError;

use super::array_source::Source;
use super::column_pages::ColumnPages;
use super::observed::NanWatch;
use super::page_selection::row_selection;
use super::panics::caught;
use super::prefix::LeafPrefix;
use super::types::{adapt, rename};
use super::{DecodeError, ParquetFile};

impl ParquetFile {
    /// Decodes one top-level column of a chunk.
    ///
    /// `selection` lists the wanted rows as ascending ranges without overlap, counted from the first row of the
    /// chunk; `None` is all rows. `pages` gives the stored bytes of the pages that hold them
    /// ([`Self::pages_of_rows`]). The arrays have the type of the column in [`Self::fields`], and at most
    /// `batch_rows` rows each (at least one). Strings and binaries may refer to the bytes of the pages and keep them
    /// in memory.
    ///
    /// # Errors
    /// If the selection is not such a list, or the bytes contradict the footer. The iterator may yield more errors.
    ///
    /// # Panics
    /// If there is no such chunk or column.
    pub fn decode(
        &self,
        chunk: ChunkIndex,
        column: usize,
        pages: &dyn Fn(PageIndex) -> Bytes,
        selection: Option<&[Range<u64>]>,
        batch_rows: usize,
    ) -> Result<ColumnDecoder, DecodeError> {
        let stored = self.chunk(chunk);
        let everything = 0..stored.row_count();
        let selected = selection.unwrap_or(std::slice::from_ref(&everything));
        let mut decoder = self.decoder(chunk, column, self.count_selected(chunk, selection)?);
        if decoder.rows_left == 0 {
            return Ok(decoder);
        }
        if decoder.rows_left == everything.end {
            decoder.nan_watch = NanWatch::new(self, chunk, column);
        }
        let mut slice = Vec::new();
        for page in self.pages_of_rows(chunk, column, selected) {
            let (page, bytes) = (self.page(page), pages(page));
            if bytes.len() as u64 != page.byte_count() {
                let (found, expected) = (bytes.len(), page.byte_count());
                return Err(
                    decoder.corrupt(format!("a page has {found} bytes instead of {expected}"))
                );
            }
            slice.push((page, bytes));
        }
        let make_reader = || -> Result<_, ParquetError> {
            let column_pages = ColumnPages::new(self, stored, column, &slice)?;
            let selection = row_selection(stored.rows.start, selected, &column_pages.rows);
            let levels = self.levels(column)?;
            ParquetRecordBatchReader::try_new_with_row_groups(
                levels,
                &column_pages,
                batch_rows.max(1),
                selection,
            )
        };
        let reader = caught(make_reader).map_err(|reason| decoder.corrupt(reason))?;
        decoder.source = Some(Source::Pages(Box::new(reader)));
        Ok(decoder)
    }

    /// Decodes the first `rows` rows of a chunk from prefixes that hold them, into one array. See [`Self::decode`].
    pub(super) fn decode_prefixes(
        &self,
        chunk: ChunkIndex,
        column: usize,
        rows: u64,
        prefixes: &[LeafPrefix],
    ) -> Result<ColumnDecoder, DecodeError> {
        let mut decoder = self.decoder(chunk, column, rows);
        if rows == 0 {
            return Ok(decoder);
        }
        let make_reader = || -> Result<_, ParquetError> {
            let pages = ColumnPages::of_prefixes(self, column, prefixes)?;
            let batch_rows = usize::try_from(rows)?;
            let levels = self.levels(column)?;
            ParquetRecordBatchReader::try_new_with_row_groups(levels, &pages, batch_rows, None)
        };
        let reader = caught(make_reader).map_err(|reason| decoder.corrupt(reason))?;
        decoder.source = Some(Source::Pages(Box::new(reader)));
        Ok(decoder)
    }

    /// A decoder without a source.
    fn decoder(&self, chunk: ChunkIndex, column: usize, rows_left: u64) -> ColumnDecoder {
        let field = self.field(column);
        ColumnDecoder {
            source: None,
            nan_watch: None,
            rows_left,
            data_type: field.data_type().clone(),
            renamed_type: None,
            file: Arc::clone(&self.name),
            column: field.name().clone(),
            chunk,
        }
    }

    /// As [`Self::decode`], for a column that the file does not store: `value`, an array of one, in every row.
    pub(super) fn repeat(
        &self,
        chunk: ChunkIndex,
        column: &str,
        value: ArrayRef,
        selection: Option<&[Range<u64>]>,
        batch_rows: usize,
    ) -> Result<ColumnDecoder, DecodeError> {
        Ok(ColumnDecoder {
            rows_left: self.count_selected(chunk, selection)?,
            data_type: value.data_type().clone(),
            renamed_type: None,
            source: Some(Source::Value { value, batch_rows: batch_rows.max(1) }),
            nan_watch: None,
            file: Arc::clone(&self.name),
            column: column.to_owned(),
            chunk,
        }
        .ended_if_empty())
    }

    /// As [`Self::decode`], for a column that the file does not store: these values, one for each selected row.
    pub(super) fn give(
        &self,
        chunk: ChunkIndex,
        column: &str,
        values: Result<ArrayRef, ArrowError>,
        selection: Option<&[Range<u64>]>,
        batch_rows: usize,
    ) -> Result<ColumnDecoder, DecodeError> {
        let value = new_null_array(&DataType::Null, 1);
        let decoder = self.repeat(chunk, column, value, selection, batch_rows)?;
        let values = values.map_err(|error| decoder.corrupt(error.to_string()))?;
        let data_type = values.data_type().clone();
        let source = Some(Source::Values { values, batch_rows: batch_rows.max(1) });
        Ok(ColumnDecoder { data_type, source, ..decoder }.ended_if_empty())
    }

    /// The number of selected rows, if they ascend without overlap within the chunk.
    fn count_selected(
        &self,
        chunk: ChunkIndex,
        selection: Option<&[Range<u64>]>,
    ) -> Result<u64, DecodeError> {
        let chunk_rows = self.chunk_rows(chunk);
        let Some(selection) = selection else { return Ok(chunk_rows) };
        let mut end = 0;
        for rows in selection {
            if rows.start < end || rows.end < rows.start || rows.end > chunk_rows {
                let (start, end) = (rows.start, rows.end);
                return Err(DecodeError::InvalidSelection { chunk, rows: chunk_rows, start, end });
            }
            end = rows.end;
        }
        Ok(selection.iter().map(|rows| rows.end - rows.start).sum())
    }
}

/// The arrays of one column of one chunk, decoded one at a time. They have exactly the selected rows, or an error at
/// the end.
pub struct ColumnDecoder {
    /// The source of arrays; `None` after the end.
    source: Option<Source>,
    /// The watch for NaN, as long as all rows of the chunk are decoded and none was NaN so far.
    nan_watch: Option<NanWatch>,
    rows_left: u64,
    data_type: DataType,
    /// The same type with other names of nested fields, if the table names them otherwise.
    renamed_type: Option<DataType>,
    file: Arc<str>,
    column: String,
    chunk: ChunkIndex,
}

impl ColumnDecoder {
    /// The values as another type, to which this one casts.
    pub(super) fn with_type(self, data_type: DataType) -> Self {
        Self { data_type, ..self }
    }

    /// The values with the names of nested fields of another type.
    pub(super) fn with_names(self, renamed: DataType) -> Self {
        let renamed_type = Some(renamed).filter(|renamed| *renamed != self.data_type);
        Self { renamed_type, ..self }
    }

    /// The number of rows that are not decoded yet.
    #[must_use]
    pub fn rows_left(&self) -> u64 {
        self.rows_left
    }

    fn corrupt(&self, reason: String) -> DecodeError {
        let (file, column) = (Arc::clone(&self.file), self.column.clone());
        DecodeError::Corrupt { file, column, chunk: self.chunk, reason }
    }

    fn ended_if_empty(self) -> Self {
        let source = self.source.filter(|_| self.rows_left > 0);
        Self { source, ..self }
    }

    fn next_array(&mut self, source: &mut Source) -> Result<ArrayRef, DecodeError> {
        let array =
            caught(|| source.next(self.rows_left)).map_err(|reason| self.corrupt(reason))?;
        let array =
            array.ok_or_else(|| self.corrupt(format!("{} rows are missing", self.rows_left)))?;
        let Some(rows_left) = self.rows_left.checked_sub(array.len() as u64) else {
            return Err(
                self.corrupt(format!("there are more rows than the {} left", self.rows_left))
            );
        };
        self.nan_watch = self.nan_watch.take().and_then(|watch| watch.after(&array));
        let array = adapt(&array, &self.data_type).map_err(|error| DecodeError::Cast {
            file: Arc::clone(&self.file),
            column: self.column.clone(),
            table_type: self.data_type.to_string(),
            reason: error.to_string(),
        })?;
        self.rows_left = rows_left;
        if rows_left == 0 {
            self.nan_watch.take().into_iter().for_each(NanWatch::end);
        }
        let array = match &self.renamed_type {
            Some(renamed) => rename(&array, renamed),
            None => array,
        };
        Ok(array)
    }
}

impl Iterator for ColumnDecoder {
    type Item = Result<ArrayRef, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut source = self.source.take()?;
        let array = self.next_array(&mut source);
        if array.is_ok() && self.rows_left > 0 {
            self.source = Some(source);
        }
        Some(array)
    }
}

impl fmt::Debug for ColumnDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColumnDecoder")
            .field("file", &self.file)
            .field("column", &self.column)
            .field("chunk", &self.chunk)
            .field("rows_left", &self.rows_left)
            .finish_non_exhaustive()
    }
}
