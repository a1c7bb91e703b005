//! Lower bounds for the bytes that any schedule reads.
//!
//! Three numbers. [`compulsory_bytes`] are the bytes of all pages that are needed. [`lower_bound_bytes`] adds the bytes
//! that any schedule has to read again, because the pool cannot keep them. [`belady_bytes`] are the bytes read with the
//! best choice of victims for a given order of uses.
//!
//! # The lower bound and its proof
//! The queries q₁, q₂ … of one stream run one after another, in every schedule. A chunk is handed out when its pages
//! are in the pool, so each page that qᵢ needs is in the pool at some moment while qᵢ runs. Let P be the most bytes
//! that the pool ever holds, those on their way among them. Take a page that qᵢ and qⱼ need, and no query of the stream
//! between them. From its moment in qᵢ to its moment in qⱼ it is either *kept* all the time, or read once more. These
//! spans of time do not overlap for one page, so the stream's pages cost at least: each of them once, and once more
//! each time that it is not kept. What can be kept is limited:
//!
//! - between two queries of the stream, all kept pages take at most P bytes;
//! - while qₘ runs, pages kept for later queries and not needed by qₘ take at most P less the widest chunk of qₘ: they are
//!   in the pool together with that chunk.
//!
//! To read least is to keep most: each kept byte saves a byte. Go through the stream; where more would be kept than the
//! limit, drop the pages needed again last, part of a page if that is enough. Any other page is needed again earlier, so
//! dropping it frees space for a shorter time: no choice keeps more. (Real pools keep whole pages; that
//! parts are allowed makes the bound lower, not wrong.) This is Belady's MIN with whole queries as uses.
//!
//! Pages that only other streams need are read at least once, and these reads are not counted yet: they are added. The
//! bound holds for each stream, so the largest counts. It also holds for the pages of one table alone, and reads of
//! different tables are different reads: the sum of the tables' bounds is a bound, too.
//!
//! Of a table that changes, a query may see one version or another. Only chunks that it needs of each of them count.
//!
//! The bound does not depend on when streams begin: a schedule may delay a query at will, so any two queries of
//! different streams may overlap. Real schedules do not wait, and with several streams read more.

mod belady;
mod needs;
#[cfg(test)]
mod optimum;

use std::collections::BTreeMap;

use coscan_core::{IndexSet, PageIndex};

pub use belady::{belady_bytes, references};
use needs::{certain_chunks, certain_pages};

use crate::workload::{Query, Stream, Workload};

/// Bytes of all pages that any query needs. Queries that will be cancelled do not count, because they may end before
/// they read; nor do streams that run only while others do.
#[must_use]
pub fn compulsory_bytes(workload: &Workload) -> u64 {
    let mut needs = Pages::none(workload);
    all_queries(workload).for_each(|query| needs.add(workload, query));
    needs.bytes
}

/// The least bytes that any schedule reads until every query has been handed all its chunks, see the head of this file.
/// Queries that will be cancelled do not count. Where others fail, are pruned or refused, or take results,
/// fewer bytes may be enough.
#[must_use]
pub fn lower_bound_bytes(workload: &Workload) -> u64 {
    let table = |table| bound_for(workload, &|query: &Query| query.table == table);
    let sum_of_tables = (0..workload.tables.len()).map(table).sum();
    bound_for(workload, &|_| true).max(sum_of_tables)
}

/// The bound from the queries that pass `counts`.
fn bound_for(workload: &Workload, counts: &dyn Fn(&Query) -> bool) -> u64 {
    let mut all = Pages::none(workload);
    all_queries(workload).filter(|query| counts(query)).for_each(|query| all.add(workload, query));
    let streams = lasting_streams(workload).map(|stream| {
        let queries = stream.queries.iter().filter(|query| may_count(query) && counts(query));
        let (touched_bytes, read_bytes) = stream_bytes(workload, &queries.collect::<Vec<_>>());
        read_bytes + (all.bytes - touched_bytes)
    });
    streams.max().unwrap_or(0)
}

/// The bytes of all pages of queries that run one after another, and the least bytes that are read for them.
fn stream_bytes(workload: &Workload, queries: &[&Query]) -> (u64, u64) {
    let pool_bytes = pool_bytes_max(workload);
    let mut touched = Pages::none(workload);
    let mut cached = CachedBytes::default();
    let mut read_bytes = 0;
    for (position, (query, reuse)) in queries.iter().zip(reuses(workload, queries)).enumerate() {
        touched.add(workload, query);
        let layout = &workload.tables[query.table].layout;
        let needed = certain_pages(workload, query);
        let needed_bytes: u64 = needed.iter().map(|page| layout.bytes_of(page)).sum();
        read_bytes += needed_bytes - cached.take(position);
        cached.limit(pool_bytes.saturating_sub(widest_chunk_bytes(workload, query)));
        for (next, bytes) in reuse {
            cached.add(next, bytes);
        }
        cached.limit(pool_bytes);
    }
    (touched.bytes, read_bytes)
}

/// For each query, the bytes of its pages by the query that needs them next.
fn reuses(workload: &Workload, queries: &[&Query]) -> Vec<BTreeMap<usize, u64>> {
    let mut next_use = BTreeMap::new();
    let mut reuses = vec![BTreeMap::new(); queries.len()];
    for (position, query) in queries.iter().enumerate().rev() {
        let layout = &workload.tables[query.table].layout;
        for page in certain_pages(workload, query).iter() {
            if let Some(next) = next_use.insert((query.table, page), position) {
                *reuses[position].entry(next).or_default() += layout.bytes_of(page);
            }
        }
    }
    reuses
}

fn widest_chunk_bytes(workload: &Workload, query: &Query) -> u64 {
    let layout = &workload.tables[query.table].layout;
    let bytes = |chunk| query.pages(layout, chunk).map(|page| layout.bytes_of(page)).sum();
    certain_chunks(workload, query).into_iter().map(bytes).max().unwrap_or(0)
}

/// Bytes that are kept, by the query that needs them next.
#[derive(Default)]
struct CachedBytes {
    by_next_use: BTreeMap<usize, u64>,
    bytes: u64,
}

impl CachedBytes {
    fn add(&mut self, next_use: usize, bytes: u64) {
        *self.by_next_use.entry(next_use).or_default() += bytes;
        self.bytes += bytes;
    }

    /// Removes and returns the bytes kept for this query, because their next use is over.
    fn take(&mut self, query: usize) -> u64 {
        let bytes = self.by_next_use.remove(&query).unwrap_or(0);
        self.bytes -= bytes;
        bytes
    }

    /// Drops the bytes needed again last until no more than `bytes_max` are kept.
    fn limit(&mut self, bytes_max: u64) {
        while self.bytes > bytes_max
            && let Some(mut last) = self.by_next_use.last_entry()
        {
            let dropped = (self.bytes - bytes_max).min(*last.get());
            *last.get_mut() -= dropped;
            self.bytes -= dropped;
            if *last.get() == 0 {
                last.remove();
            }
        }
    }
}

/// The most bytes that the pool ever holds. It grows beyond its limits only to what it holds already.
fn pool_bytes_max(workload: &Workload) -> u64 {
    let changes = workload.pool_changes.iter().map(|&(_, bytes)| bytes);
    changes.chain([workload.pool_bytes]).max().expect("the first limit is one")
}

fn all_queries(workload: &Workload) -> impl Iterator<Item = &Query> {
    lasting_streams(workload).flat_map(|stream| &stream.queries).filter(|query| may_count(query))
}

/// Streams whose queries all run.
fn lasting_streams(workload: &Workload) -> impl Iterator<Item = &Stream> {
    workload.streams.iter().filter(|stream| !stream.while_others_run)
}

/// Whether a query is certain to be handed all chunks that it needs.
fn may_count(query: &Query) -> bool {
    query.cancel_after_ns.is_none()
}

/// Pages of all tables, and their bytes.
struct Pages {
    of_table: Vec<IndexSet<PageIndex>>,
    bytes: u64,
}

impl Pages {
    fn none(workload: &Workload) -> Self {
        Self { of_table: vec![IndexSet::new(); workload.tables.len()], bytes: 0 }
    }

    fn add(&mut self, workload: &Workload, query: &Query) {
        let layout = &workload.tables[query.table].layout;
        for page in certain_pages(workload, query).iter() {
            if self.of_table[query.table].insert(page) {
                self.bytes += layout.bytes_of(page);
            }
        }
    }
}
