use coscan_core::ChunkIndex;

use super::*;

/// The layout of tables of one file each.
fn layout(chunks: &[Range<u64>], parts: &[Part]) -> Layout {
    let mut builder = Layout::builder(parts.iter().map(|part| part.widths.len()).sum());
    add_file(&mut builder, chunks, parts);
    builder.build()
}

/// There are ten rows per chunk; pages of `a` hold 4 rows, pages of `b` 20.
#[test]
fn pages_do_not_end_where_chunks_do() {
    let part = Part { rows: 30, widths: vec![5.0, 1.0], page: Some(20.0) };
    let layout = layout(&ChunkSize::Count(3).split(30), &[part]);
    let pages = |chunk, group| {
        let slice = layout.slice(ChunkIndex(chunk), GroupIndex(group));
        slice.iter().map(|page| page.0).collect::<Vec<_>>()
    };
    assert_eq!(pages(0, 0), [0, 1, 2]);
    assert_eq!(pages(1, 0), [2, 3, 4]);
    assert_eq!(pages(2, 0), [5, 6, 7]);
    assert_eq!((pages(0, 1), pages(1, 1), pages(2, 1)), (vec![8], vec![8], vec![9]));
    assert_eq!(layout.bytes_of(PageIndex(9)), 10);
}

#[test]
fn a_row_layout_has_one_page_a_chunk() {
    let part = Part { rows: 100, widths: vec![2.0], page: None };
    let layout = layout(&ChunkSize::Rows(30).split(100), &[part]);
    assert_eq!((layout.chunk_count(), layout.page_count()), (4, 4));
    assert_eq!(layout.bytes_of(PageIndex(3)), 20);
}

/// There are ten rows per chunk, and a quarter as many of the second table: 2 or 3.
#[test]
fn clustered_tables_have_chunks_with_the_same_keys() {
    let child = Part { rows: 40, widths: vec![4.0], page: None };
    let parent = Part { rows: 10, widths: vec![8.0, 2.0], page: None };
    let layout = layout(&ChunkSize::Rows(10).split(40), &[child, parent]);
    assert_eq!((layout.row_count(), layout.chunk_count(), layout.group_count()), (40, 4, 3));
    let bytes = |group| {
        let chunks = layout.chunks().flat_map(|chunk| layout.slice(chunk, GroupIndex(group)));
        chunks.map(|&page| layout.bytes_of(page)).collect::<Vec<_>>()
    };
    assert_eq!(bytes(0), [40, 40, 40, 40]);
    assert_eq!((bytes(1), bytes(2)), (vec![16, 24, 16, 24], vec![4, 6, 4, 6]));
}
