//! Belady's MIN: the best victims for a given order of uses (IBM Systems Journal, 1966).

use std::collections::{BTreeMap, BTreeSet};

use super::pool_bytes_max;
use crate::outcome::Outcome;
use crate::workload::{TablePage, Workload};

/// The pages that a run used, in the order in which chunks were handed out, with those of a chunk together. Meant for
/// scans in order: with other victims, scans in any order would have used them in another order.
///
/// # Panics
/// If the outcome is not of this workload.
#[must_use]
pub fn references(workload: &Workload, outcome: &Outcome) -> Vec<Vec<TablePage>> {
    let queries: Vec<_> = workload.queries().collect();
    let uses = outcome.deliveries.iter().map(|&(query, chunk)| {
        let query = queries[query];
        let table = query.table;
        let pages = query.pages(&workload.tables[query.table].layout, chunk);
        pages.map(|page| TablePage { table, page }).collect()
    });
    uses.collect()
}

/// Bytes that are read for these uses, each of pages that have to be in the pool together, when always the page whose
/// next use lies furthest ahead is evicted, and each page is read when it is used.
///
/// For pages of equal size, one at a time, no choice of victims reads less. For pages of different sizes it is a good
/// choice but not always the best, which is hard to find. Then the number is a reference, not a bound. Pages larger
/// than the pool are read each time.
#[must_use]
pub fn belady_bytes(workload: &Workload, uses: &[Vec<TablePage>]) -> u64 {
    let mut pool = Pool::new(workload);
    for (pages, next_uses) in uses.iter().zip(next_uses(uses)) {
        pool.take(pages);
        pool.make_room();
        for (&page, next_use) in pages.iter().zip(next_uses) {
            pool.keep(page, next_use);
        }
        pool.make_room();
    }
    pool.read_bytes
}

struct Pool<'a> {
    workload: &'a Workload,
    bytes_max: u64,
    /// Pages that may be evicted, by next use.
    by_next_use: BTreeSet<(usize, TablePage)>,
    /// The next use of each page in the pool.
    next_use: BTreeMap<TablePage, usize>,
    held_bytes: u64,
    read_bytes: u64,
}

impl<'a> Pool<'a> {
    fn new(workload: &'a Workload) -> Self {
        Self {
            workload,
            bytes_max: pool_bytes_max(workload),
            by_next_use: BTreeSet::new(),
            next_use: BTreeMap::new(),
            held_bytes: 0,
            read_bytes: 0,
        }
    }

    /// Takes pages into use. Pages that are not in the pool are read.
    fn take(&mut self, pages: &[TablePage]) {
        for &page in pages {
            match self.next_use.get(&page) {
                Some(&this_use) => {
                    self.by_next_use.remove(&(this_use, page));
                }
                None => {
                    self.held_bytes += self.bytes_of(page);
                    self.read_bytes += self.bytes_of(page);
                }
            }
        }
    }

    /// Ends the use of a page.
    fn keep(&mut self, page: TablePage, next_use: usize) {
        self.next_use.insert(page, next_use);
        self.by_next_use.insert((next_use, page));
    }

    fn make_room(&mut self) {
        while self.held_bytes > self.bytes_max
            && let Some((_, victim)) = self.by_next_use.pop_last()
        {
            self.next_use.remove(&victim);
            self.held_bytes -= self.bytes_of(victim);
        }
    }

    fn bytes_of(&self, id: TablePage) -> u64 {
        self.workload.tables[id.table].layout.bytes_of(id.page)
    }
}

/// For each page of each use, the position of the next use with the same page, or the number of uses if there is none.
fn next_uses(uses: &[Vec<TablePage>]) -> Vec<Vec<usize>> {
    let mut next = BTreeMap::new();
    let mut next_uses = Vec::with_capacity(uses.len());
    for (position, pages) in uses.iter().enumerate().rev() {
        let of_pages = pages.iter().map(|&page| next.insert(page, position).unwrap_or(uses.len()));
        next_uses.push(of_pages.collect());
    }
    next_uses.reverse();
    next_uses
}
