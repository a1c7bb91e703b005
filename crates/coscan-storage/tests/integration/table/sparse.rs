//! Requests of bounded size, and the pages that hold some rows.

use std::cell::RefCell;
use std::ops::Range;

use bytes::Bytes;
use coscan_core::{ChunkIndex, GroupIndex, PageIndex};
use coscan_storage::table::{FileOptions, PageLayout, ParquetTable, put_together};

use crate::table::support::{open, options, read_all, row_groups, rows, small_pages, write};

#[tokio::test]
async fn requests_are_as_small_as_asked_and_make_the_same_pages() {
    let table = open(&[write(&[rows(0..3000)], row_groups(1000))], options(1000)).await;
    let expected = read_all(&table).await;
    let pages: Vec<_> = expected.keys().copied().collect();
    let all_bytes: u64 = pages.iter().map(|&page| table.layout().bytes_of(page)).sum();
    for bytes_max in [0, 700, 5_000, 20_000, u64::MAX] {
        let requests = match bytes_max {
            0 => table.requests(&pages[..1], 0),
            _ => table.requests(&pages, bytes_max),
        };
        let sizes: Vec<_> = requests.iter().map(|request| request.byte_count()).collect();
        assert!(sizes.iter().all(|&bytes| (1..=bytes_max.max(1)).contains(&bytes)), "{sizes:?}");
        if bytes_max > 0 {
            let fewest = all_bytes.div_ceil(bytes_max);
            let count = requests.len() as u64;
            assert!(count <= 3 * fewest, "{count} requests where {fewest} may do");
            let mut answers = Vec::new();
            for request in requests {
                let answer = table.read(&request).await;
                answers.push((request, answer));
            }
            for (page, read) in pages.iter().zip(put_together(&pages, answers)) {
                assert_eq!(read.unwrap(), expected[page]);
            }
        }
    }
}

#[tokio::test]
async fn a_page_of_which_a_part_fails_fails_alone() {
    let table = open(&[write(&[rows(0..3000)], row_groups(1000))], options(1000)).await;
    let pages = [PageIndex(0), PageIndex(1)];
    let bytes_max = table.layout().bytes_of(pages[0]).div_ceil(3);
    let mut answers = Vec::new();
    for request in table.requests(&pages, bytes_max) {
        let answer = if answers.len() == 1 { None } else { table.read(&request).await.ok() };
        answers.push((request, answer.ok_or("lost")));
    }
    let read = put_together(&pages, answers);
    assert_eq!(read[0], Err("lost"));
    assert_eq!(read[1], Ok(read_all(&table).await[&pages[1]].clone()));
}

/// The rows of a column of a chunk, and the pages that were asked for.
fn decode(
    table: &ParquetTable,
    pages: &std::collections::HashMap<PageIndex, Bytes>,
    chunk: ChunkIndex,
    wanted: &[Range<u64>],
) -> (u64, Vec<PageIndex>) {
    let asked = RefCell::new(Vec::new());
    let get = |page: PageIndex| {
        asked.borrow_mut().push(page);
        pages[&page].clone()
    };
    let decoder = table.decode(chunk, 0, &get, Some(wanted), 100).unwrap();
    let rows = decoder.map(|array| array.unwrap().len() as u64).sum();
    (rows, asked.into_inner())
}

#[tokio::test]
async fn few_rows_need_the_pages_of_their_row_groups() {
    for layout in [PageLayout::Column, PageLayout::Row] {
        let table_options = FileOptions { chunk_rows: 1000, layout, ..FileOptions::default() };
        let table = open(&[write(&[rows(0..2000)], row_groups(100))], table_options).await;
        let (chunk, group) = (ChunkIndex(1), GroupIndex(0));
        let slice = table.layout().slice(chunk, group);
        assert_eq!(slice.len(), 10, "a page a row group");
        let needed = |wanted: &[Range<u64>]| table.pages_of_rows(chunk, group, wanted);
        assert_eq!(needed(&[250..251]), slice[2..3]);
        assert_eq!(needed(&[199..200, 200..200, 900..1000]), [slice[1], slice[9]]);
        assert_eq!(needed(&[99..101]), slice[..2]);
        assert_eq!(needed(&[0..1000]), slice);
        assert_eq!(needed(&[5..5]), []);
        assert_eq!(needed(&[]), []);
        let pages = read_all(&table).await;
        let wanted = [150..160, 730..731];
        assert_eq!(decode(&table, &pages, chunk, &wanted), (11, vec![slice[1], slice[7]]));
    }
}

#[tokio::test]
async fn few_rows_of_a_split_row_group_need_a_stretch_of_its_runs() {
    let properties = small_pages().set_dictionary_enabled(false).build();
    let table = open(&[write(&[rows(0..3000)], properties)], options(700)).await;
    let (chunk, group) = (ChunkIndex(1), GroupIndex(0));
    let slice = table.layout().slice(chunk, group);
    assert_eq!(slice.len(), 3, "what it shares with its neighbours, and its own");
    let needed = |wanted: &[Range<u64>]| table.pages_of_rows(chunk, group, wanted);
    assert_eq!(needed(&[0..1]), slice[..1]);
    assert_eq!(needed(&[300..301]), slice[1..2]);
    assert_eq!(needed(&[749..750]), slice[2..]);
    assert_eq!(needed(&[0..1, 749..750]), slice, "with what lies between");
    let pages = read_all(&table).await;
    assert_eq!(decode(&table, &pages, chunk, &[749..750]), (1, slice[2..].to_vec()));
}

#[tokio::test]
async fn pages_for_rows_of_several_chunks_come_once_and_in_order() {
    let table = open(&[write(&[rows(0..3000)], row_groups(100))], options(1000)).await;
    let groups = [GroupIndex(1), GroupIndex(0)];
    let page_of = |row: usize, group| {
        table.layout().slice(ChunkIndex(row as u32 / 1000), group)[row % 1000 / 100]
    };
    let wanted = [50..51, 60..61, 999..1001];
    let mut expected: Vec<_> = [50, 999, 1000]
        .into_iter()
        .flat_map(|row| groups.map(|group| page_of(row, group)))
        .collect();
    expected.sort_unstable();
    assert_eq!(table.pages_for(&groups, &wanted), expected);
    assert_eq!(table.pages_for(&groups, &[]), []);
}

#[tokio::test]
async fn zones_tell_the_row_groups_of_a_chunk_apart() {
    let files = [
        write(&[rows(0..1000)], row_groups(150)),
        write(&[rows(1000..2000)], small_pages().build()),
    ];
    let table = open(&files, options(300)).await;
    let zones = table.zones();
    assert!(zones.len() > table.layout().chunk_count());
    assert!(zones.windows(2).all(|pair| pair[0].end == pair[1].start));
    assert_eq!((zones[0].clone(), zones.last().unwrap().end), (0..150, 2000));
    let key = table.zone_statistics(0).unwrap();
    assert_eq!(key.min.len(), zones.len());
    let bounds = |array: &arrow_array::ArrayRef| -> Vec<i64> {
        let array = array.as_any().downcast_ref::<arrow_array::Int64Array>().unwrap();
        array.values().to_vec()
    };
    for ((rows, min), max) in zones.iter().zip(bounds(&key.min)).zip(bounds(&key.max)) {
        let (first, last) = (rows.start as i64, rows.end as i64 - 1);
        // Bounds of a part are those of the data pages that it needs.
        let exact = rows.start < 1000;
        assert!(if exact { (min, max) == (first, last) } else { min <= first && max >= last });
    }
}
