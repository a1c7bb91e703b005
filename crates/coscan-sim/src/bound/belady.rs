//! Belady's MIN: the best victims for a given order of uses (IBM Systems Journal, 1966).

use std::collections::{BTreeMap, BTreeSet};

use coscan_core::{Index, PageId, TableId};

use crate::outcome::{Outcome, What};
use crate::workload::Workload;

/// The pages that a run used, in the order in which chunks were handed out. Meant for scans in order: scans in any order
/// would have used them in another one.
///
/// # Panics
/// If the outcome has no timeline, or is not of this workload.
#[must_use]
pub fn references(workload: &Workload, outcome: &Outcome) -> Vec<PageId> {
    assert!(!outcome.timeline.is_empty() || outcome.queries.is_empty(), "ask for a timeline");
    let queries: Vec<_> = workload.streams.iter().flat_map(|stream| &stream.queries).collect();
    let mut references = Vec::new();
    for step in &outcome.timeline {
        if let What::Delivered { query, chunk, .. } = step.what {
            let query = queries[query];
            let table = TableId::from_usize(query.table);
            let pages = query.pages(&workload.tables[query.table].layout, chunk);
            references.extend(pages.map(|page| PageId { table, page }));
        }
    }
    references
}

/// Bytes that are read for these uses of pages when always the page whose next use lies furthest ahead is evicted, and
/// each page is read when it is used.
///
/// For pages of equal size no choice of victims reads less. For others that is a good choice but not always the best,
/// which is hard to find; then the number is a yardstick, not a bound. A page larger than the pool is read each time.
#[must_use]
pub fn belady_bytes(workload: &Workload, references: &[PageId]) -> u64 {
    let next_uses = next_uses(references);
    // By next use, and the other way round.
    let mut held: BTreeSet<(usize, PageId)> = BTreeSet::new();
    let mut next_use_of: BTreeMap<PageId, usize> = BTreeMap::new();
    let (mut held_bytes, mut read_bytes) = (0, 0);
    for (&page, next_use) in references.iter().zip(next_uses) {
        let bytes_of = |id: PageId| workload.tables[id.table.as_usize()].layout.bytes_of(id.page);
        if let Some(this_use) = next_use_of.insert(page, next_use) {
            held.remove(&(this_use, page));
        } else {
            read_bytes += bytes_of(page);
            held_bytes += bytes_of(page);
        }
        while held_bytes > workload.pool_bytes
            && let Some((_, victim)) = held.pop_last()
        {
            next_use_of.remove(&victim);
            held_bytes -= bytes_of(victim);
        }
        if held_bytes > workload.pool_bytes {
            next_use_of.remove(&page);
            held_bytes -= bytes_of(page);
        } else {
            held.insert((next_use, page));
        }
    }
    read_bytes
}

/// For each use the position of the next use of the same page, or the number of uses if there is none.
fn next_uses(references: &[PageId]) -> Vec<usize> {
    let mut next = BTreeMap::new();
    let mut next_uses = vec![references.len(); references.len()];
    for (position, &page) in references.iter().enumerate().rev() {
        if let Some(next_use) = next.insert(page, position) {
            next_uses[position] = next_use;
        }
    }
    next_uses
}
