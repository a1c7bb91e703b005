//! `elevator`: one cursor for a table moves forward over the chunks that some scan needs and reads the columns that any
//! of them needs there. A chunk is evicted when no scan needs it [CS07 §3, §6.2]. This needs the fewest reads, but fast
//! scans wait for slow ones.
//!
//! Scans in order and scans of selected pages do not follow the cursor. Their chunks are read one by one, as they need
//! them.

use std::collections::BTreeMap;

use crate::ids::{ChunkIndex, Index, PageId, ScanId, TableId, Time};
use crate::policy::{Attempt, EvictionRequest, LoadPlan, Policy, Strictness};
use crate::scan::{Order, Scan};
use crate::set::IndexSet;
use crate::state::State;

/// The policy `elevator`.
#[derive(Clone, Debug, Default)]
pub struct Elevator {
    cursors: BTreeMap<TableId, Cursor>,
    loads: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    next: ChunkIndex,
    /// When the cursor last moved, as a count of loads: tables take turns.
    moved: u64,
}

impl Elevator {
    fn cursor(&self, table: TableId) -> Cursor {
        self.cursors.get(&table).copied().unwrap_or_default()
    }

    /// A load of the next chunk at or after the cursor with cold pages, and all cold pages that its followers need.
    fn next_stop(&self, state: &State, table: TableId, attempt: &Attempt<'_>) -> Option<LoadPlan> {
        let cursor = self.cursor(table).next;
        let followers = state.scans_of(table).filter(|scan| follows(scan) && attempt.admits(scan));
        let next_cold = |scan: &Scan| scan.cold().iter_around(cursor).next();
        let stops = followers.clone().filter_map(next_cold);
        let chunk = stops.min_by_key(|&chunk| (chunk < cursor, chunk))?;
        let needing = followers.filter(|scan| scan.needed().contains(chunk));
        let mut groups = IndexSet::new();
        needing.clone().for_each(|scan| groups.union_with(scan.groups()));
        // The load is for the scan that a lack of space would delay most.
        let trigger = needing.filter(|scan| !scan.is_covered(chunk)).min_by_key(longest_waiting)?;
        let pages = state.pages(table, chunk, &groups).into_iter().filter(|&id| state.is_cold(id));
        Some(LoadPlan { scan: trigger.id(), chunk, pages: pages.collect() })
    }

    /// The next stop of the table whose cursor has stood still for the most loads: tables take turns.
    fn next_load(&self, state: &State, attempt: &Attempt<'_>) -> Option<LoadPlan> {
        if attempt.strictness == Strictness::Strict
            && attempt.without_space.iter().any(|&id| state.scan(id).is_some_and(follows))
        {
            return None; // The cursor waits for space; it does not skip a chunk that does not fit.
        }
        let mut tables: Vec<_> = state.tables().map(|(id, _)| id).collect();
        tables.sort_by_key(|&table| (self.cursor(table).moved, table));
        tables.into_iter().find_map(|table| self.next_stop(state, table, attempt))
    }

    fn next_load_in_order(state: &State, attempt: &Attempt<'_>) -> Option<LoadPlan> {
        let in_order = state.scans().filter(|scan| !follows(scan) && attempt.admits(scan));
        let starved = in_order.filter(|scan| scan.needs_load());
        let scan = starved.min_by_key(longest_waiting)?;
        let chunk = scan.loadable().next()?;
        Some(LoadPlan::of_missing(state, scan, chunk))
    }
}

/// Whether a scan takes the chunks that the cursor reads.
fn follows(scan: &Scan) -> bool {
    scan.order() == Order::Any && !scan.is_sparse() && !scan.is_remote() && scan.chunks_ahead() > 0
}

fn longest_waiting(scan: &&Scan) -> (bool, Option<Time>, ScanId) {
    (scan.waiting_since().is_none(), scan.waiting_since(), scan.id())
}

impl Policy for Elevator {
    fn name(&self) -> &'static str {
        "elevator"
    }

    fn on_table_removed(&mut self, table: TableId) {
        self.cursors.remove(&table);
    }

    fn on_load_started(&mut self, state: &State, plan: &LoadPlan) {
        let Some(scan) = state.scan(plan.scan).filter(|scan| follows(scan)) else { return };
        let table = scan.table();
        self.loads += 1;
        // The cursor moves on when no follower lacks pages here: the load may have had space for some of them only.
        let lacks = |scan: &Scan| {
            follows(scan) && scan.needed().contains(plan.chunk) && !scan.is_covered(plan.chunk)
        };
        let next = match state.scans_of(table).any(lacks) {
            true => plan.chunk.as_usize(),
            false => (plan.chunk.as_usize() + 1) % state.table(table).chunk_index_end(),
        };
        self.cursors.insert(table, Cursor { next: Index::from_usize(next), moved: self.loads });
    }

    fn choose_load(&mut self, state: &State, attempt: &Attempt<'_>) -> Option<LoadPlan> {
        // The one that has waited longer goes first: neither scans in order nor the cursor starve the other.
        let plans = [Self::next_load_in_order(state, attempt), self.next_load(state, attempt)];
        let scan = |plan: &LoadPlan| state.scan(plan.scan);
        plans.into_iter().flatten().min_by_key(|plan| scan(plan).map(|scan| longest_waiting(&scan)))
    }

    fn choose_victims(&mut self, state: &State, request: &EvictionRequest<'_>) -> Vec<PageId> {
        let mut victims = request.fill(state, state.unneeded_pages());
        if request.strictness > Strictness::Strict {
            victims = request.fill(state, victims.into_iter().chain(state.cached_pages()));
        }
        victims
    }

    fn choose_delivery(&mut self, state: &State, scan: ScanId) -> Option<ChunkIndex> {
        let scan = state.scan(scan)?;
        // The chunk that the cursor passed longest ago goes first: it is evicted after the last scan has had it.
        let cursor = self.cursor(scan.table()).next;
        match scan.order() {
            Order::Any => scan.available().iter_around(cursor).next(),
            Order::InOrder => scan.deliverable().next(),
        }
    }
}
