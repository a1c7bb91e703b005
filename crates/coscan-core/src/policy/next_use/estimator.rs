//! The estimate of the next use of pages by scans in order [CS11 §4.3, `PageNextConsumption`].

use std::collections::BTreeMap;

use crate::ids::{ChunkIndex, Index, PageId, ScanId, ScanPosition, TableId};
use crate::policy::rates::ScanRates;
use crate::scan::Scan;
use crate::set::IndexSet;
use crate::state::State;
use crate::table::Table;

/// The routes of scans that go through their chunks in order.
#[derive(Clone, Debug, Default)]
pub(super) struct NextUseEstimator {
    routes: BTreeMap<ScanId, ScanRuns>,
    /// The slots of the scans, by table.
    slots: BTreeMap<TableId, IndexSet<ScanPosition>>,
    rates: ScanRates,
}

impl NextUseEstimator {
    /// Adds a scan with the chunks that it needs now.
    pub(super) fn start(&mut self, state: &State, scan: &Scan, needed: &[ChunkIndex]) {
        let mut route = ScanRuns::new(scan.table(), scan.slot());
        route.append(state.table(scan.table()), needed);
        self.routes.insert(scan.id(), route);
        self.slots.entry(scan.table()).or_default().insert(scan.slot());
    }

    /// Adds chunks that a scan goes through, too. Returns false and adds nothing if they are not behind all others.
    pub(super) fn extend(&mut self, state: &State, scan: &Scan, chunks: &[ChunkIndex]) -> bool {
        let route = self.routes.get_mut(&scan.id());
        let is_behind =
            |route: &&mut ScanRuns| chunks.first().is_none_or(|&first| first >= route.end);
        let Some(route) = route.filter(is_behind) else { return false };
        route.append(state.table(scan.table()), chunks);
        true
    }

    pub(super) fn remove(&mut self, scan: ScanId) {
        let Some(ScanRuns { table, slot, .. }) = self.routes.remove(&scan) else { return };
        let slots = self.slots.get_mut(&table).expect("its scan was added");
        slots.remove(slot);
        if slots.is_empty() {
            self.slots.remove(&table);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// Nanoseconds until the first of the added scans uses a page; `None` if none of them needs it.
    pub(super) fn next_use_ns(&self, state: &State, id: PageId) -> Option<u64> {
        let uses = state.slices_of(id).iter().flat_map(|slice| {
            let table = state.table(slice.table);
            let needing = &table.classes().class_of(slice.chunk).key().scans;
            let readers = &table.classes().readers()[slice.group.as_usize()];
            let added = self.slots.get(&slice.table).into_iter();
            let slots = added.flat_map(move |added| IndexSet::common([needing, readers, added]));
            let counted = slots.filter_map(move |slot| state.scan_at(table, slot));
            let sparse = state.sparse_interested(slice.table, slice.chunk);
            let scans = counted.chain(sparse.filter(move |scan| scan.reads(slice.group, id)));
            scans.filter_map(|scan| self.ns_to(state, scan, slice.chunk))
        });
        uses.min()
    }

    /// Nanoseconds until a scan uses a chunk that it needs: the rows before it at the rate of the scan. `None` if the scan
    /// was not added.
    fn ns_to(&self, state: &State, scan: &Scan, chunk: ChunkIndex) -> Option<u64> {
        let route = self.routes.get(&scan.id())?;
        let next = scan.needed().first()?;
        let rows = route.rows_before(chunk).saturating_sub(route.rows_before(next));
        Some(self.rates.ns_for(state, scan, rows))
    }
}

/// The chunks of a scan as runs of neighbours with the same number of rows, so that a chunk is found in a few steps.
#[derive(Clone, Debug)]
struct ScanRuns {
    /// The key under which [`NextUseEstimator::slots`] has its slot.
    table: TableId,
    slot: ScanPosition,
    legs: Vec<Run>,
    /// Rows of all its chunks.
    rows: u64,
    /// The index behind its last chunk.
    end: ChunkIndex,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    first: ChunkIndex,
    /// Rows of each of its chunks.
    chunk_rows: u64,
    /// Rows of the scan before it.
    rows_before: u64,
}

impl ScanRuns {
    fn new(table: TableId, slot: ScanPosition) -> Self {
        Self { table, slot, legs: Vec::new(), rows: 0, end: ChunkIndex(0) }
    }

    /// Adds chunks behind all others, in order.
    fn append(&mut self, table: &Table, chunks: &[ChunkIndex]) {
        for &chunk in chunks {
            let chunk_rows = table.rows(chunk);
            let continues = self.legs.last().is_some_and(|leg| leg.chunk_rows == chunk_rows);
            if self.end != chunk || !continues {
                self.legs.push(Run { first: chunk, chunk_rows, rows_before: self.rows });
            }
            self.rows += chunk_rows;
            self.end = ChunkIndex(chunk.0 + 1);
        }
    }

    /// Rows of the scan before a chunk of it.
    fn rows_before(&self, chunk: ChunkIndex) -> u64 {
        let after = self.legs.partition_point(|leg| leg.first <= chunk);
        let leg = after.checked_sub(1).and_then(|position| self.legs.get(position));
        leg.map_or(0, |leg| leg.rows_before + u64::from(chunk.0 - leg.first.0) * leg.chunk_rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::ChunkSpec;
    use crate::ids::DeviceId;

    #[test]
    fn a_route_that_is_added_in_steps_is_that_of_all_chunks_at_once() {
        let mut table = Table::new(0, DeviceId(0));
        for rows in [5, 5, 5, 7, 7, 5, 5, 5, 5] {
            table.add_chunk(&ChunkSpec { rows, slices: Vec::new() }, &[]);
        }
        let chunks = [0, 1, 2, 3, 5, 6, 8].map(ChunkIndex);
        let route = || ScanRuns::new(TableId(0), ScanPosition(0));
        let mut at_once = route();
        at_once.append(&table, &chunks);
        assert_eq!(chunks.map(|chunk| at_once.rows_before(chunk)), [0, 5, 10, 15, 22, 27, 32]);
        let mut in_steps = route();
        chunks.chunks(2).for_each(|step| in_steps.append(&table, step));
        assert_eq!(format!("{in_steps:?}"), format!("{at_once:?}"));
    }
}
