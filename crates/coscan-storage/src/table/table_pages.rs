//! Chunks and pages numbered over all files of a table. Each file does the work on its own.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coscan_core::{ChunkIndex, GroupIndex, Index, Layout, PageIndex};
use futures::{StreamExt, TryStreamExt, stream};

use super::estimate::repeated_bytes_estimate;
use super::{ColumnDecoder, DecodeError, PageRequest, ParquetTable, ReadError};

/// The maximum number of concurrent checks of files.
const CHECKS_MAX: usize = 32;

impl ParquetTable {
    /// Chunks, column groups and pages of the table.
    #[must_use]
    pub fn layout(&self) -> &Arc<Layout> {
        self.base.layout.get_or_init(|| Arc::new(self.make_layout()))
    }

    fn make_layout(&self) -> Layout {
        let group_count = self.group_count();
        let mut builder = Layout::builder(group_count);
        for (position, file) in self.parquet_files().iter().enumerate() {
            let columns: Vec<_> = (0..group_count)
                .map(|group| self.column_of_group(position, GroupIndex::from_usize(group)))
                .collect();
            let mut groups = vec![GroupIndex(0); file.page_count()];
            for chunk in (0..file.chunk_count()).map(ChunkIndex::from_usize) {
                for (group, &column) in columns.iter().enumerate() {
                    for page in column.map_or(&[][..], |column| file.slice(chunk, column)) {
                        groups[page.as_usize()] = GroupIndex::from_usize(group);
                    }
                }
            }
            for (page, group) in groups.into_iter().enumerate() {
                builder.add_page(group, file.page_bytes(PageIndex::from_usize(page)));
            }
            let global = |&page: &PageIndex| self.page_of_file(position, page);
            for chunk in (0..file.chunk_count()).map(ChunkIndex::from_usize) {
                let slice = |column: &Option<usize>| match column {
                    Some(column) => file.slice(chunk, *column).iter().map(global).collect(),
                    None => Vec::new(),
                };
                builder.add_chunk(file.chunk_rows(chunk), columns.iter().map(slice).collect());
            }
        }
        builder.build()
    }

    /// As [`ParquetFile::requests`](super::ParquetFile::requests), over all files.
    ///
    /// # Panics
    /// If there is no such page.
    #[must_use]
    pub fn requests(&self, pages: &[PageIndex], bytes_max: u64) -> Vec<PageRequest> {
        let mut by_file: BTreeMap<usize, Vec<PageIndex>> = BTreeMap::new();
        for &page in pages {
            let (file, page) = self.place_of_page(page);
            by_file.entry(file).or_default().push(page);
        }
        let mut requests = Vec::new();
        for (file, pages) in by_file {
            for mut request in self.parquet_files()[file].requests(&pages, bytes_max) {
                request.file = file;
                request.pages.iter_mut().for_each(|page| *page = self.page_of_file(file, *page));
                requests.push(request);
            }
        }
        requests
    }

    /// As [`ParquetFile::read`](super::ParquetFile::read).
    ///
    /// # Errors
    /// If the file has changed, is gone or too short, or its store fails.
    pub async fn read(&self, request: &PageRequest) -> Result<Vec<Bytes>, ReadError> {
        self.parquet_files()[request.file()].read(request).await
    }

    /// Checks that no file has changed since it was opened, some at a time.
    ///
    /// # Errors
    /// If a file has changed, is gone, or its store fails.
    pub async fn check(&self) -> Result<(), ReadError> {
        let checks = stream::iter(self.stored_files().to_vec());
        let checks = checks.map(|file| async move { file.file().check().await });
        checks.buffer_unordered(CHECKS_MAX).try_collect().await
    }

    /// The range of bytes of a page in its file.
    ///
    /// # Panics
    /// If there is no such page.
    #[must_use]
    pub fn range_of_page(&self, page: PageIndex) -> Range<u64> {
        let (file, page) = self.place_of_page(page);
        self.parquet_files()[file].page(page).bytes.clone()
    }

    /// The pages of some column groups that hold any of these rows, which count from the start of the table and ascend
    /// without overlap. Each page once, in ascending order.
    ///
    /// # Panics
    /// If there is no such column group.
    #[must_use]
    pub fn pages_for(&self, groups: &[GroupIndex], rows: &[Range<u64>]) -> Vec<PageIndex> {
        let rows = self.rows_by_chunk(rows);
        let of_chunk = |(&chunk, rows): (&ChunkIndex, &Vec<Range<u64>>)| {
            groups.iter().flat_map(move |&group| self.pages_of_rows(chunk, group, rows)).collect()
        };
        let mut pages: Vec<_> = rows.iter().flat_map::<Vec<_>, _>(of_chunk).collect();
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// The chunks that hold any of these rows, each with the rows that it holds, counted from its first row.
    #[must_use]
    pub fn rows_by_chunk(&self, rows: &[Range<u64>]) -> BTreeMap<ChunkIndex, Vec<Range<u64>>> {
        let mut by_chunk: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for rows in rows {
            for chunk in self.layout().chunks_in(rows.clone()) {
                let all = self.layout().rows(chunk);
                let held = rows.start.max(all.start) - all.start..rows.end.min(all.end) - all.start;
                by_chunk.entry(chunk).or_default().push(held);
            }
        }
        by_chunk
    }

    /// As [`ParquetFile::pages_of_rows`](super::ParquetFile::pages_of_rows), for a column group.
    ///
    /// # Panics
    /// If there is no such chunk or column group.
    #[must_use]
    pub fn pages_of_rows(
        &self,
        chunk: ChunkIndex,
        group: GroupIndex,
        rows: &[Range<u64>],
    ) -> Vec<PageIndex> {
        let (file, chunk) = self.place_of(chunk);
        let Some(column) = self.column_of_group(file, group) else { return Vec::new() };
        let pages = self.parquet_files()[file].pages_of_rows(chunk, column, rows);
        pages.into_iter().map(|page| self.page_of_file(file, page)).collect()
    }

    /// As [`ParquetFile::decode`](super::ParquetFile::decode); the arrays have the type of the column in
    /// [`Self::schema`]. Values are as files have them, without [changes](Self::chunk_changes).
    ///
    /// # Errors
    /// If the selection does not ascend without overlap, or the bytes contradict the footer. The iterator may yield
    /// more errors.
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
        let computed = self.computed_values(chunk, column, selection);
        let (index, chunk) = self.place_of(chunk);
        let file = &self.parquet_files()[index];
        let Some(in_file) = self.file_column(index, column) else {
            let name = self.schema().field(column).name();
            return match computed {
                Some(values) => file.give(chunk, name, values, selection, batch_rows),
                None => {
                    let value = self.repeated_value(index, column);
                    file.repeat(chunk, name, value, selection, batch_rows)
                }
            };
        };
        let pages = |page| pages(self.page_of_file(index, page));
        let decoder = file.decode(chunk, in_file, &pages, selection, batch_rows)?;
        Ok(self.as_column(decoder, column))
    }

    /// As [`ParquetFile::decoded_bytes_estimate`](super::ParquetFile::decoded_bytes_estimate).
    ///
    /// # Panics
    /// If there is no such chunk or column.
    #[must_use]
    pub fn decoded_bytes_estimate(&self, chunk: ChunkIndex, column: usize) -> u64 {
        let (index, chunk) = self.place_of(chunk);
        let file = &self.parquet_files()[index];
        match self.file_column(index, column) {
            Some(in_file) => {
                file.decoded_bytes_estimate_as(chunk, in_file, self.stored_type(column))
            }
            None => repeated_bytes_estimate(file.chunk_rows(chunk), self.data_type(column)),
        }
    }
}
