//! Presents the pages of one column of one chunk to parquet's decoder as if they were a file.
//!
//! The decoder asks for bytes by their offset in the file. [`Segments`] answers from the pages in memory, without a
//! copy. Only some data pages of a split row group are in memory. The decoder sees just those, with the dictionary
//! directly before them, because it takes the bytes between the start of a column chunk and its first data page for the
//! dictionary.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::serialized_reader::SerializedPageReader;

use super::file::ParquetFile;
use super::pages::{PageContents, StoredChunk, StoredPage};
use super::prefix::LeafPrefix;
use super::row_ranges::{DataPages, row_count, rows_of_row_groups};
use super::segments::Segments;

/// The pages of one column of one chunk, ready to be decoded.
pub(super) struct ColumnPages {
    metadata: Arc<ParquetMetaData>,
    row_groups: Vec<usize>,
    leaves: Range<usize>,
    /// For each leaf, its pages in each row group.
    leaf_pages: Vec<Vec<LeafPages>>,
    /// The rows of the pages, a range per row group, counted from the first row of the chunk's first row group.
    pub(super) rows: Vec<Range<u64>>,
}

impl ColumnPages {
    /// Takes pages of the chunk's slice, in the slice's order: all of each row group that is not split, or none.
    pub(super) fn new(
        file: &ParquetFile,
        chunk: &StoredChunk,
        column: usize,
        pages: &[(&StoredPage, Bytes)],
    ) -> Result<Self, ParquetError> {
        let leaves = file.leaves(column);
        let mut leaf_pages = vec![Vec::with_capacity(chunk.row_groups.len()); leaves.len()];
        let (mut row_groups, mut rows) = (Vec::new(), Vec::new());
        for (row_group, all_rows) in rows_of_row_groups(&file.metadata, chunk) {
            let in_row_group = || pages.iter().filter(move |(page, _)| page.row_group == row_group);
            let is_run = |(page, _): &&(&StoredPage, Bytes)| {
                matches!(page.contents, PageContents::Run { .. })
            };
            if in_row_group().next().is_none() {
                continue;
            }
            row_groups.push(row_group);
            if in_row_group().any(|page| is_run(&page)) {
                let (run_rows, pages) = LeafPages::of_runs(file, row_group, in_row_group())?;
                rows.push(all_rows.start + run_rows.start..all_rows.start + run_rows.end);
                leaf_pages[0].push(pages);
                continue;
            }
            let segments = Arc::new(Segments::new(
                in_row_group().map(|(page, bytes)| (page.bytes.start, bytes.clone())),
            ));
            rows.push(all_rows);
            for (leaf, pages) in leaves.clone().zip(&mut leaf_pages) {
                let whole = LeafPages::whole(file, row_group, leaf, chunk.is_part, &segments);
                pages.push(whole);
            }
        }
        let metadata = Arc::clone(&file.metadata);
        Ok(Self { metadata, row_groups, leaves, leaf_pages, rows })
    }

    /// Takes the first pages of each leaf in each row group, up to the last wanted row.
    pub(super) fn of_prefixes(
        file: &ParquetFile,
        column: usize,
        prefixes: &[LeafPrefix],
    ) -> Result<Self, ParquetError> {
        let leaves = file.leaves(column);
        let mut leaf_pages = vec![Vec::new(); leaves.len()];
        let (mut row_groups, mut rows) = (Vec::new(), Vec::new());
        for prefixes in prefixes.chunk_by(|a, b| a.row_group == b.row_group) {
            row_groups.push(prefixes[0].row_group);
            rows.push(prefixes[0].rows.clone());
            for prefix in prefixes {
                leaf_pages[prefix.leaf - leaves.start].push(LeafPages::of_prefix(file, prefix)?);
            }
        }
        let metadata = Arc::clone(&file.metadata);
        Ok(Self { metadata, row_groups, leaves, leaf_pages, rows })
    }
}

impl RowGroups for ColumnPages {
    fn num_rows(&self) -> usize {
        let rows = self.rows.iter().map(|rows| rows.end - rows.start).sum::<u64>();
        usize::try_from(rows).unwrap_or(usize::MAX)
    }

    fn column_chunks(&self, leaf: usize) -> Result<Box<dyn PageIterator>, ParquetError> {
        let position = leaf.checked_sub(self.leaves.start);
        let pages = position.and_then(|position| self.leaf_pages.get(position));
        let pages = pages.ok_or(ParquetError::IndexOutOfBound(leaf, self.leaves.end))?;
        Ok(Box::new(LeafPagesIterator(pages.clone().into_iter())))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.row_groups.iter().map(|&row_group| self.metadata.row_group(row_group)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The pages of one leaf in one row group.
#[derive(Clone)]
struct LeafPages {
    column: Arc<ColumnChunkMetaData>,
    segments: Arc<Segments>,
    row_count: usize,
    /// The data pages, if the decoder needs to skip some; else it finds them one after the other.
    locations: Option<Vec<PageLocation>>,
}

impl LeafPages {
    /// All pages of a column chunk.
    fn whole(
        file: &ParquetFile,
        row_group: usize,
        leaf: usize,
        is_part: bool,
        segments: &Arc<Segments>,
    ) -> Self {
        // A part begins in the middle: with locations the decoder skips to it.
        let data_pages = is_part.then(|| DataPages::of(&file.metadata, row_group, leaf)).flatten();
        Self {
            column: Arc::new(file.metadata.row_group(row_group).column(leaf).clone()),
            segments: Arc::clone(segments),
            row_count: usize::try_from(row_count(&file.metadata, row_group)).unwrap_or(usize::MAX),
            locations: data_pages.map(|data_pages| data_pages.locations.to_vec()),
        }
    }

    /// Consecutive runs of data pages of a column chunk, with its dictionary if it has one, and the rows of the runs.
    fn of_runs<'a>(
        file: &ParquetFile,
        row_group: usize,
        pages: impl Iterator<Item = &'a (&'a StoredPage, Bytes)>,
    ) -> Result<(Range<u64>, Self), ParquetError> {
        let mut dictionary = None;
        let mut segments = Vec::new();
        let mut found: Option<(usize, Range<usize>)> = None;
        for (page, bytes) in pages {
            match &page.contents {
                PageContents::Run { leaf, data_pages } => {
                    segments.push((page.bytes.start, bytes.clone()));
                    let start = found.as_ref().map_or(data_pages.start, |(_, found)| found.start);
                    found = Some((*leaf, start..data_pages.end));
                }
                _ => dictionary = Some(bytes.clone()),
            }
        }
        let missing =
            || ParquetError::General("the file's page index has none of its pages".to_owned());
        let (leaf, data_pages) = found.ok_or_else(missing)?;
        let all = DataPages::of(&file.metadata, row_group, leaf).ok_or_else(missing)?;
        let rows = all.rows(data_pages.clone());
        let locations = &all.locations[data_pages];

        let (first_offset, first_row) = (locations[0].offset, locations[0].first_row_index);
        let dictionary_offset = dictionary.as_ref().map(|bytes| first_offset - bytes.len() as i64);
        if let (Some(offset), Some(bytes)) = (dictionary_offset, dictionary) {
            segments.insert(0, (offset.cast_unsigned(), bytes));
        }
        let column = file.metadata.row_group(row_group).column(leaf).clone().into_builder();
        let column =
            column.set_dictionary_page_offset(dictionary_offset).set_data_page_offset(first_offset);
        let relative = |location: &PageLocation| PageLocation {
            first_row_index: location.first_row_index - first_row,
            ..location.clone()
        };
        let pages = Self {
            column: Arc::new(column.build()?),
            segments: Arc::new(Segments::new(segments.into_iter())),
            row_count: usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX),
            locations: Some(locations.iter().map(relative).collect()),
        };
        Ok((rows, pages))
    }

    /// The first pages of a column chunk.
    fn of_prefix(file: &ParquetFile, prefix: &LeafPrefix) -> Result<Self, ParquetError> {
        let (start, bytes) = prefix.pages.pages();
        let column = file.metadata.row_group(prefix.row_group).column(prefix.leaf).clone();
        let column = column.into_builder().set_total_compressed_size(bytes.len() as i64).build()?;
        let locations = prefix.pages.listed().and_then(|listed| {
            DataPages::of(&file.metadata, prefix.row_group, prefix.leaf)?.locations.get(..listed)
        });
        Ok(Self {
            column: Arc::new(column),
            segments: Arc::new(Segments::new(std::iter::once((start, bytes)))),
            row_count: usize::try_from(prefix.row_count()).unwrap_or(usize::MAX),
            locations: locations.map(<[_]>::to_vec),
        })
    }

    fn reader(self) -> Result<Box<dyn PageReader>, ParquetError> {
        let reader =
            SerializedPageReader::new(self.segments, &self.column, self.row_count, self.locations)?;
        Ok(Box::new(reader))
    }
}

struct LeafPagesIterator(std::vec::IntoIter<LeafPages>);

impl Iterator for LeafPagesIterator {
    type Item = Result<Box<dyn PageReader>, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(LeafPages::reader)
    }
}

impl PageIterator for LeafPagesIterator {}
