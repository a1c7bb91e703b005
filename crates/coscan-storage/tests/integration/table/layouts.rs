//! The chunks and pages of a file.

use bytes::Bytes;
use coscan_core::{ChunkIndex, GroupIndex, PageIndex};
use coscan_storage::table::{FileOptions, PageLayout, ParquetTable};
use parquet::file::metadata::ParquetMetaData;

use crate::table::support::{open, options, row_groups, rows, small_pages, write};

fn stored_bytes(metadata: &ParquetMetaData) -> u64 {
    metadata.row_groups().iter().map(|row_group| row_group.compressed_size() as u64).sum()
}

fn page_bytes(table: &ParquetTable) -> u64 {
    (0..table.layout().page_count() as u32)
        .map(|page| table.layout().bytes_of(PageIndex(page)))
        .sum()
}

#[tokio::test]
async fn pages_hold_every_stored_byte_once() {
    let files: [Bytes; 3] = [
        write(&[rows(0..1000)], row_groups(150)),
        write(&[rows(0..3000)], small_pages().build()),
        write(&[rows(0..3000)], small_pages().set_dictionary_enabled(false).build()),
    ];
    for layout in [PageLayout::Column, PageLayout::Row] {
        let table =
            open(&files, FileOptions { chunk_rows: 700, layout, ..FileOptions::default() }).await;
        let stored: u64 = (0..3).map(|file| stored_bytes(table.parquet_metadata(file))).sum();
        assert_eq!(page_bytes(&table), stored, "{layout:?}");
        for page in 0..table.layout().page_count() as u32 {
            assert!(
                !table.layout().chunks_of(PageIndex(page)).is_empty(),
                "page {page} serves a chunk"
            );
        }
    }
}

#[tokio::test]
async fn a_column_of_a_row_group_is_a_page() {
    let table = open(&[write(&[rows(0..600)], row_groups(150))], options(300)).await;
    let columns = table.schema().fields().len();
    assert_eq!(table.layout().group_count(), columns);
    assert_eq!(table.layout().page_count(), 4 * columns, "nested columns too");
    for column in 0..columns {
        assert_eq!(table.group_of_column(column), GroupIndex(column as u32));
        assert_eq!(table.layout().slice(ChunkIndex(1), GroupIndex(column as u32)).len(), 2);
    }
}

#[tokio::test]
async fn in_a_split_row_group_a_straddling_page_serves_two_chunks() {
    let table = open(&[write(&[rows(0..3000)], small_pages().build())], options(700)).await;
    let layout = table.layout();
    let column = |name| table.group_of_column(table.schema().index_of(name).unwrap());
    let served = |name| {
        let mut pages: Vec<_> =
            layout.chunks().flat_map(|chunk| layout.slice(chunk, column(name)).to_vec()).collect();
        pages.sort();
        pages.dedup();
        pages.into_iter().map(|page| layout.chunks_of(page).len()).collect::<Vec<_>>()
    };
    // A dictionary for all four chunks, then runs: a chunk's own, one that straddles, and so on.
    assert_eq!(served("dictionary"), [4, 1, 2, 1, 2, 1, 2, 1]);
    // Without repeats the dictionary is abandoned but stays; pages that straddle serve two chunks.
    assert!(
        served("text").iter().filter(|&&chunks| chunks == 2).count() > 0,
        "{:?}",
        served("text")
    );
    // A nested column stays whole, for all four.
    assert_eq!(served("list"), [4]);
    assert_eq!(served("struct"), [4]);
    // A page serves neighbouring chunks.
    for page in (0..layout.page_count() as u32).map(PageIndex) {
        let chunks = layout.chunks_of(page);
        assert!(chunks.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0), "{page:?}: {chunks:?}");
    }
}
