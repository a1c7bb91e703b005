//! The optimum by brute force: the fewest bytes that any schedule reads, for tiny workloads. The bound is never above
//! it.

mod random;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use coscan_core::{ChunkIndex, GroupIndex, Index, Layout, PageIndex};

use super::*;
use crate::random::Random;
use crate::table::Table;
use crate::workload::{Stream, TablePage};

/// The state of a schedule: pages in the pool, and for each stream its query and the chunks that it still needs.
/// Pages of all tables and chunks of a table are bits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct ScheduleState {
    pool: u32,
    streams: Vec<(usize, u32)>,
}

struct Search<'a> {
    workload: &'a Workload,
    pages: Vec<TablePage>,
}

impl Search<'_> {
    fn page_bytes(&self, page: usize) -> u64 {
        let id = self.pages[page];
        self.workload.tables[id.table].layout.bytes_of(id.page)
    }

    fn pool_bytes(&self, pool: u32) -> u64 {
        (0..self.pages.len())
            .filter(|page| pool >> page & 1 == 1)
            .map(|page| self.page_bytes(page))
            .sum()
    }

    fn query(&self, stream: usize, index: usize) -> Option<&Query> {
        self.workload.streams[stream].queries.get(index)
    }

    fn chunks(&self, query: &Query) -> u32 {
        let layout = &self.workload.tables[query.table].layout;
        query.chunks(layout).iter().map(|chunk| 1 << chunk.0).sum()
    }

    fn pages_of(&self, query: &Query, chunk: usize) -> u32 {
        let layout = &self.workload.tables[query.table].layout;
        let pages = query.pages(layout, ChunkIndex::from_usize(chunk));
        let bit = |page: PageIndex| {
            let id = TablePage { table: query.table, page };
            1 << self.pages.iter().position(|&other| other == id).expect("a page of the workload")
        };
        pages.map(bit).sum()
    }

    /// The state of a stream at its next query that needs anything.
    fn at_query(&self, stream: usize, mut index: usize) -> (usize, u32) {
        loop {
            match self.query(stream, index).map(|query| self.chunks(query)) {
                None => return (index, 0),
                Some(0) => index += 1,
                Some(chunks) => return (index, chunks),
            }
        }
    }

    /// Hands out all chunks in the pool, since a delay would help no query.
    fn hand_out(&self, mut reached: ScheduleState) -> ScheduleState {
        for stream in 0..reached.streams.len() {
            let (mut index, mut needed) = reached.streams[stream];
            while let Some(query) = self.query(stream, index) {
                let in_pool = |chunk: &usize| self.pages_of(query, *chunk) & !reached.pool == 0;
                let taken = (0..32).filter(|chunk| needed >> chunk & 1 == 1).filter(in_pool);
                let taken: u32 = taken.map(|chunk| 1 << chunk).sum();
                needed &= !taken;
                if taken == 0 || needed != 0 {
                    break;
                }
                (index, needed) = self.at_query(stream, index + 1);
            }
            reached.streams[stream] = (index, needed);
        }
        reached
    }

    /// The fewest bytes with which every query gets everything: Dijkstra over all states of a schedule.
    fn fewest_bytes(&self) -> u64 {
        let streams = (0..self.workload.streams.len()).map(|stream| self.at_query(stream, 0));
        let start = self.hand_out(ScheduleState { pool: 0, streams: streams.collect() });
        let mut open: BTreeMap<u64, VecDeque<ScheduleState>> =
            BTreeMap::from([(0, [start].into())]);
        let mut seen = std::collections::BTreeSet::new();
        while let Some(mut entry) = open.first_entry() {
            let bytes = *entry.key();
            let Some(reached) = entry.get_mut().pop_front() else {
                entry.remove();
                continue;
            };
            if reached.streams.iter().all(|&(_, needed)| needed == 0) {
                return bytes;
            }
            if !seen.insert(reached.clone()) {
                continue;
            }
            for page in 0..self.pages.len() {
                if reached.pool >> page & 1 == 1 {
                    let pool = reached.pool & !(1 << page);
                    let next = ScheduleState { pool, ..reached.clone() };
                    open.entry(bytes).or_default().push_back(next);
                } else if self.pool_bytes(reached.pool | 1 << page) <= self.workload.pool_bytes {
                    let pool = reached.pool | 1 << page;
                    let next = self.hand_out(ScheduleState { pool, ..reached.clone() });
                    open.entry(bytes + self.page_bytes(page)).or_default().push_back(next);
                }
            }
        }
        panic!("some schedule ends")
    }
}

fn optimum(workload: &Workload) -> u64 {
    let pages = workload.tables.iter().enumerate().flat_map(|(table, definition)| {
        let pages = (0..definition.layout.page_count()).map(PageIndex::from_usize);
        pages.map(move |page| TablePage { table, page })
    });
    Search { workload, pages: pages.collect() }.fewest_bytes()
}

/// A table of one column with a page of these bytes for each chunk of one row.
fn table(bytes: &[u64]) -> Table {
    let mut builder = Layout::builder(1);
    for &bytes in bytes {
        let page = builder.add_page(GroupIndex(0), bytes);
        builder.add_chunk(1, vec![vec![page]]);
    }
    Table::at_rest("tiny", Arc::new(builder.build()))
}

fn workload(
    tables: Vec<Table>,
    streams: Vec<Vec<(usize, std::ops::Range<u64>)>>,
    pool_bytes: u64,
) -> Workload {
    let query = |(table, rows)| Query::scan("tiny", table, vec![GroupIndex(0)], rows);
    let streams = streams.into_iter().map(|queries| Stream {
        queries: queries.into_iter().map(query).collect(),
        ..Stream::default()
    });
    Workload {
        tables,
        streams: streams.collect(),
        pool_bytes,
        pool_changes: Vec::new(),
        table_changes: Vec::new(),
    }
}

#[test]
fn pages_that_the_pool_cannot_keep_between_two_queries_are_read_again() {
    // Five pages twice, a pool of two: 5 + (5 - 2).
    let twice = workload(vec![table(&[1; 5])], vec![vec![(0, 0..5), (0, 0..5)]], 2);
    assert_eq!((compulsory_bytes(&twice), lower_bound_bytes(&twice), optimum(&twice)), (5, 8, 8));
}

#[test]
fn queries_too_small_to_count_alone_count_together() {
    // Pages 0 to 3, then 0 and 1, then 2 and 3, a pool of two: two of the four that are needed again are kept.
    let queries = vec![(0, 0..4), (0, 0..2), (0, 2..4)];
    let three = workload(vec![table(&[1; 4])], vec![queries], 2);
    assert_eq!((lower_bound_bytes(&three), optimum(&three)), (6, 6));
}

#[test]
fn kept_pages_leave_space_for_a_chunk() {
    // Page 0, page 1, page 0: a pool of one cannot keep page 0, a pool of two can.
    let back = |pool_bytes| {
        let queries = vec![(0, 0..1), (0, 1..2), (0, 0..1)];
        workload(vec![table(&[1; 2])], vec![queries], pool_bytes)
    };
    assert_eq!((lower_bound_bytes(&back(1)), optimum(&back(1))), (3, 3));
    assert_eq!((lower_bound_bytes(&back(2)), optimum(&back(2))), (2, 2));
}

#[test]
fn pages_of_other_streams_count_once_and_tables_add_up() {
    let tables = || vec![table(&[1; 3]), table(&[1; 3])];
    let beside = vec![vec![(0, 0..3), (0, 0..3)], vec![(1, 0..3)]];
    let beside = workload(tables(), beside, 1);
    assert_eq!((lower_bound_bytes(&beside), optimum(&beside)), (3 + 2 + 3, 8));
    let both = vec![vec![(0, 0..3), (0, 0..3)], vec![(1, 0..3), (1, 0..3)]];
    assert_eq!(lower_bound_bytes(&workload(tables(), both, 1)), 2 * (3 + 2));
}

#[test]
fn cancelled_queries_do_not_count() {
    let mut one = workload(vec![table(&[1; 3])], vec![vec![(0, 0..3)]], 1);
    one.streams[0].queries[0].cancel_after_ns = Some(5);
    assert_eq!((compulsory_bytes(&one), lower_bound_bytes(&one)), (0, 0));
}

#[test]
fn belady_reads_least_for_pages_of_equal_size() {
    let id = |page: &u32| TablePage { table: 0, page: PageIndex(*page) };
    let pages = |uses: &[Vec<u32>]| -> Vec<Vec<TablePage>> {
        uses.iter().map(|pages| pages.iter().map(id).collect()).collect()
    };
    // Room for two: 3 replaces 2, which comes last; 2 replaces 3 and 4 whichever, which do not come again.
    let case = |pool_bytes| workload(vec![table(&[1; 5])], Vec::new(), pool_bytes);
    let one_by_one = [1, 2, 3, 1, 2, 4].map(|page| vec![page]);
    assert_eq!(belady_bytes(&case(2), &pages(&one_by_one)), 5);
    // Two together twice, and a third between: one of them makes room for it.
    assert_eq!(belady_bytes(&case(2), &pages(&[vec![1, 2], vec![3], vec![1, 2]])), 4);
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let together = random.below(2) as u32;
        let one = |random: &mut Random| {
            let page = random.below(5 - u64::from(together)) as u32;
            (page..=page + together).collect::<Vec<_>>()
        };
        let uses: Vec<_> = (0..12).map(|_| one(&mut random)).collect();
        let room = random.between(1 + u64::from(together), 4);
        assert_eq!(belady_bytes(&case(room), &pages(&uses)), fewest_misses(&uses, room), "{seed}");
    }
}

/// The fewest misses, by trying every set of pages that may be kept after each use.
fn fewest_misses(uses: &[Vec<u32>], room: u64) -> u64 {
    let mut reached = BTreeMap::from([(0u32, 0u64)]);
    for pages in uses {
        let used = pages.iter().fold(0, |used, page| used | 1 << page);
        let mut next: BTreeMap<u32, u64> = BTreeMap::new();
        for (pool, misses) in reached {
            let misses = misses + u64::from((used & !pool).count_ones());
            let may_stay = |kept: &u32| {
                kept & used == used
                    && kept & !(pool | used) == 0
                    && u64::from(kept.count_ones()) <= room
            };
            for kept in (0..1 << 5).filter(may_stay) {
                let entry = next.entry(kept).or_insert(misses);
                *entry = misses.min(*entry);
            }
        }
        reached = next;
    }
    reached.into_values().min().expect("some way")
}
