//! The parts shared by policies that score chunks: the scan to read for, the chunk with the highest score, its pages to
//! read, and the order in which chunks are evicted.

use std::collections::BTreeSet;

use crate::classes::Class;
use crate::ids::{ChunkIndex, PageId, ScanPosition, TableId};
use crate::policy::merge::KWayMerge;
use crate::policy::ranking::{Score, best_first};
use crate::policy::{Attempt, LoadPlan};
use crate::scan::{Order, Scan};
use crate::set::IndexSet;
use crate::state::State;
use crate::table::Table;

/// Which set of scores is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scores {
    /// Chunks are whole, so scans are counted [CS07 Figure 3].
    Row,
    /// Chunks have columns of different sizes, so scans are weighed against bytes [CS07 Figure 11].
    Column,
}

impl Scores {
    /// The scores that fit the layout of a table.
    pub(super) fn of(table: &Table) -> Self {
        if table.group_count() == 1 { Scores::Row } else { Scores::Column }
    }
}

/// Whether a policy may choose among the chunks of a scan: one in order takes its next chunk, and classes do not count
/// one of selected pages.
pub(super) fn takes_any_chunk(scan: &Scan) -> bool {
    scan.order() == Order::Any && !scan.is_sparse()
}

/// Scans with too few chunks ready or arriving for which something can be read.
pub(super) fn load_candidates<'a>(
    state: &'a State,
    attempt: &Attempt<'_>,
) -> impl Iterator<Item = &'a Scan> {
    let open = state.load_candidates().filter(|(kind, _)| !attempt.slots.is_closed(kind.device));
    let scans = open
        .flat_map(|(_, load_candidates)| load_candidates.scans())
        .filter_map(|id| state.scan(id));
    scans.filter(|scan| attempt.admits(scan))
}

/// Nanoseconds of waiting as a number of average loads, shared by all running scans: the paper leaves the unit of time
/// open (error 5 in `docs/papers.md`).
pub(super) fn waited_loads(state: &State, waited_ns: u64) -> f64 {
    let loads = state.load_ns().map_or(0.0, |load_ns| waited_ns as f64 / load_ns as f64);
    loads / state.scan_count() as f64
}

/// Starved scans that a load for `scan` may help, `scan` itself among them.
pub(super) fn helped_by(state: &State, scan: &Scan) -> IndexSet<ScanPosition> {
    let table = state.table(scan.table());
    let mut helped = table.readers_of(scan.groups()).intersection(table.starved());
    helped.insert(scan.slot());
    helped
}

/// Scans of the same table that share a column group with this one, itself among them.
pub(super) fn overlapping(state: &State, scan: &Scan) -> IndexSet<ScanPosition> {
    state.table(scan.table()).readers_of(scan.groups())
}

/// The score of a chunk to be read [CS07 Figures 3 and 11, `loadRelevance`].
pub(super) struct LoadRelevance<'a> {
    pub(super) scores: Scores,
    /// Starved scans that a load may help.
    pub(super) helped: &'a IndexSet<ScanPosition>,
    /// The benefit of a load, given the number of starved scans that it helps and of all scans that it serves. It MUST
    /// NOT decrease when either number grows. Column scores divide it by the bytes to be read.
    pub(super) benefit: fn(usize, usize) -> f64,
}

impl LoadRelevance<'_> {
    /// The chunk to read for a scan: the one that `pick` takes from the class with the highest score.
    pub(super) fn choose_chunk(
        &self,
        state: &State,
        scan: &Scan,
        pick: impl Fn(&Table, &Class) -> ChunkIndex,
    ) -> Option<ChunkIndex> {
        if !takes_any_chunk(scan) {
            return scan.loadable().next();
        }
        let table = state.table(scan.table());
        let overlapping = match self.scores {
            Scores::Row => IndexSet::new(),
            Scores::Column => overlapping(state, scan),
        };
        let bound = |scans: usize| match self.scores {
            Scores::Row => Score((self.benefit)(self.helped.len().min(scans), scans)),
            Scores::Column => Score(f64::INFINITY),
        };
        let score = |class: &Class| {
            let key = class.key();
            if !key.scans.contains(scan.slot()) || key.covers(scan.groups()) {
                return None;
            }
            Some(Score(match self.scores {
                Scores::Row => {
                    (self.benefit)(key.scans.intersection_len(self.helped), key.scans.len())
                }
                Scores::Column => {
                    let helped = key.scans.intersection(self.helped);
                    let served = key.scans.intersection_len(&overlapping);
                    let groups = table.classes().groups_of(&helped);
                    let cost = state.read_cost(scan.table(), class.first(), &groups);
                    (self.benefit)(helped.len(), served) / cost.max(1) as f64
                }
            }))
        };
        let best = best_first(table.classes().to_read(), bound, score).next();
        best.map(|(_, class)| pick(table, class)).or_else(|| scan.loadable().next())
    }
}

/// The pages of a chunk to read: first those of the scan, small ones in front so that it can proceed early, then those
/// of the other scans that the load helps. Only those of the scan if all would take more than half of the pool.
pub(super) fn plan(
    state: &State,
    scan: &Scan,
    helped: &IndexSet<ScanPosition>,
    chunk: ChunkIndex,
) -> LoadPlan {
    let table = state.table(scan.table());
    if scan.is_sparse() {
        return LoadPlan::of_missing(state, scan, chunk);
    }
    let helped_here = table.classes().class_of(chunk).key().scans.intersection(helped);
    let groups = table.classes().groups_of(&helped_here);
    let mut pages = state.pages(scan.table(), chunk, &groups);
    pages.retain(|&id| state.is_cold(id));
    let is_own = |id: &PageId| state.chunks_read(scan, *id).any(|read| read == chunk);
    let bytes: u64 = pages.iter().map(|&id| state.bytes_of(id)).sum();
    if bytes > state.pool_bytes() / 2 {
        pages.retain(is_own);
    }
    pages.sort_by_key(|id| (!is_own(id), state.bytes_of(*id), *id));
    LoadPlan { scan: scan.id(), chunk, pages }
}

/// The classes of all tables, those to be evicted first in front. Only tables that changed are ranked anew.
#[derive(Clone, Debug, Default)]
pub(super) struct EvictionOrder {
    /// The tables by the score of their first class.
    tables: KWayMerge<Score>,
    changed: BTreeSet<TableId>,
}

impl EvictionOrder {
    /// Notes that the needs of scans in a table, or its pages in the pool, have changed.
    pub(super) fn table_changed(&mut self, table: TableId) {
        self.changed.insert(table);
    }

    /// The classes of all tables. `rank` gives those of one table, highest score first.
    pub(super) fn classes<'a, I: Iterator<Item = (Score, &'a Class)>>(
        &'a mut self,
        state: &'a State,
        rank: impl Fn(TableId) -> I + 'a,
    ) -> impl Iterator<Item = (TableId, &'a Class)> {
        for table in std::mem::take(&mut self.changed) {
            let first = state.knows(table).then(|| rank(table).next()).flatten();
            self.tables.set(table, first.map(|(score, _)| score));
        }
        self.tables.merge(rank)
    }
}
