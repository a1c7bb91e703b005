//! Tiny workloads drawn at random: the bound compared with their optimum.

use std::sync::Arc;

use coscan_core::{GroupIndex, Index, Layout, PageIndex};

use super::{optimum, table, workload};
use crate::bound::{compulsory_bytes, lower_bound_bytes, widest_chunk_bytes};
use crate::random::Random;
use crate::table::Table;
use crate::workload::{Query, Stream, Workload};

/// One or two tables of up to five pages, one or two streams of up to four queries, and a pool of a page or more.
fn random_workload(seed: u64) -> Workload {
    let mut random = Random::new(seed);
    let bytes_max = *random.choose(&[1, 1, 3]);
    let table = |random: &mut Random| {
        let chunks = random.between(2, 5);
        table(&(0..chunks).map(|_| random.between(1, bytes_max)).collect::<Vec<_>>())
    };
    let tables: Vec<_> = (0..random.between(1, 2)).map(|_| table(&mut random)).collect();
    let query = |random: &mut Random| {
        let table = random.below(tables.len() as u64) as usize;
        let rows = tables[table].layout.row_count();
        let start = random.below(rows.min(2));
        (table, start..random.between(start + 1, rows))
    };
    let stream = |random: &mut Random| (0..random.between(2, 4)).map(|_| query(random)).collect();
    let streams = (0..random.between(1, 2)).map(|_| stream(&mut random)).collect();
    let pool_bytes = bytes_max + random.below(3);
    workload(tables.clone(), streams, pool_bytes)
}

/// A table of two or three columns, each with a page for each chunk, for two neighbours, or for all chunks.
fn table_with_columns(random: &mut Random) -> Table {
    let groups = random.count(2, 3);
    let chunks = random.count(2, if groups == 2 { 4 } else { 3 });
    let mut builder = Layout::builder(groups);
    let mut slices = vec![Vec::new(); chunks];
    for group in (0..groups).map(GroupIndex::from_usize) {
        let served = *random.choose(&[1, 1, 2, chunks]);
        for chunks in slices.chunks_mut(served) {
            let page = builder.add_page(group, random.between(1, 3));
            chunks.iter_mut().for_each(|slices| slices.push(vec![page]));
        }
    }
    slices.into_iter().for_each(|slices| {
        builder.add_chunk(1, slices);
    });
    Table::at_rest("columns", Arc::new(builder.build()))
}

/// A table with columns and shared pages, one or two streams of up to four queries, some of them index selections, and a
/// pool of a chunk or more.
fn workload_with_columns(seed: u64) -> Workload {
    let mut random = Random::new(seed);
    let table = table_with_columns(&mut random);
    let layout = Arc::clone(&table.layout);
    let query = |random: &mut Random| {
        let groups = (0..layout.group_count()).map(GroupIndex::from_usize);
        let groups: Vec<_> = groups.filter(|_| random.percent(60)).collect();
        let start = random.below(layout.row_count());
        let rows = start..random.between(start + 1, layout.row_count());
        let pages = (0..layout.page_count()).map(PageIndex::from_usize);
        let selected = random.percent(30).then(|| pages.filter(|_| random.percent(40)).collect());
        Query { selected, ..Query::scan("columns", 0, groups, rows) }
    };
    let stream = |random: &mut Random| Stream {
        queries: (0..random.between(2, 4)).map(|_| query(random)).collect(),
        ..Stream::default()
    };
    let streams: Vec<_> = (0..random.between(1, 2)).map(|_| stream(&mut random)).collect();
    let mut workload = Workload {
        tables: vec![table],
        streams,
        pool_bytes: 0,
        pool_changes: Vec::new(),
        table_changes: Vec::new(),
    };
    let widest = workload.queries().map(|query| widest_chunk_bytes(&workload, query)).max();
    workload.pool_bytes = widest.unwrap_or(0) + random.below(4);
    workload
}

/// The number of cases in which the bound is above the compulsory bytes, and in which it is the optimum.
fn compare_with_optimum(cases: impl Iterator<Item = Workload>) -> (u32, u32) {
    let (mut above_compulsory, mut met) = (0, 0);
    for (seed, case) in cases.enumerate() {
        let (compulsory, bound, optimum) =
            (compulsory_bytes(&case), lower_bound_bytes(&case), optimum(&case));
        assert!(compulsory <= bound && bound <= optimum, "{seed}: {compulsory} {bound} {optimum}");
        above_compulsory += u32::from(bound > compulsory);
        met += u32::from(bound == optimum);
    }
    (above_compulsory, met)
}

#[test]
fn no_schedule_reads_less_than_the_bound() {
    let (above_compulsory, met) = compare_with_optimum((0..400).map(random_workload));
    // The bound is above the compulsory bytes in some cases, and often it is the optimum.
    assert!(above_compulsory > 150, "{above_compulsory}");
    assert!(met > 330, "{met}");
}

#[test]
fn nor_with_columns_shared_pages_and_index_selections() {
    let (above_compulsory, met) = compare_with_optimum((0..400).map(workload_with_columns));
    assert!(above_compulsory > 25, "{above_compulsory}");
    assert!(met > 200, "{met}");
}
