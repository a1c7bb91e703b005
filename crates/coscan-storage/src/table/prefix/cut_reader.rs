//! Cut pages as parquet's decoder reads them.

use std::collections::VecDeque;

use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;

/// Hands out pages one after the other.
pub(in crate::table) struct CutReader(VecDeque<Page>);

impl CutReader {
    pub(in crate::table) fn new(pages: Vec<Page>) -> Self {
        Self(pages.into())
    }
}

impl PageReader for CutReader {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        Ok(self.0.pop_front())
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        let metadata = |page: &Page| {
            let is_dict = page.is_dictionary_page();
            // Each value of a flat column is a row.
            let values = (!is_dict).then_some(page.num_values() as usize);
            PageMetadata { num_rows: values, num_levels: values, is_dict }
        };
        Ok(self.0.front().map(metadata))
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.0.pop_front();
        Ok(())
    }
}

impl Iterator for CutReader {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.pop_front().map(Ok)
    }
}
