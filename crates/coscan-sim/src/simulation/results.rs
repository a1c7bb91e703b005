//! Results of chunks that queries take from each other.

use std::collections::{BTreeMap, BTreeSet};

use coscan_core::{ChunkIndex, Index, Order};

use super::Simulation;

/// The chunks of which results are known, for each table and computation.
pub(super) type Results = BTreeMap<(usize, u64), BTreeSet<ChunkIndex>>;

impl Simulation<'_> {
    /// What a query computes of a chunk that it needs, if others can take the result: with the table, the key of it.
    fn computation_of(&self, query: usize, chunk: ChunkIndex) -> Option<(usize, u64)> {
        let run = &self.queries[query];
        let (computation, table) = (run.query.computation?, run.query.table);
        let layout = &self.workload.tables[table].layout;
        // Chunks that a changed table has beyond the first ones are not shared.
        let is_known = chunk.as_usize() < layout.chunk_count();
        let reads = run.needs.get(&chunk)?;
        let is_whole = || {
            let rows = layout.rows(chunk);
            *reads == rows.end - rows.start
        };
        let is_scan = run.query.order == Order::Any && run.query.selected.is_none();
        (is_scan && is_known && is_whole()).then_some((table, computation))
    }

    /// A query that has just started does not need chunks of which results are known.
    pub(super) fn take_known_results(&mut self, query: usize) {
        let Some(scan) = self.queries[query].scan else { return };
        let is_computed = |chunk: &ChunkIndex| {
            let key = self.computation_of(query, *chunk);
            let known = key.and_then(|key| self.results.get(&key));
            known.is_some_and(|known| known.contains(chunk))
        };
        let known: Vec<_> = self.queries[query].needs.keys().copied().filter(is_computed).collect();
        if !known.is_empty() {
            self.prune(query, scan, &known);
        }
    }

    /// A query has computed a chunk: others of the same computation no longer need it.
    pub(super) fn publish_result(&mut self, query: usize, chunk: ChunkIndex) {
        let Some(key) = self.computation_of(query, chunk) else { return };
        if !self.results.entry(key).or_default().insert(chunk) {
            return;
        }
        let others = self.scans.iter().filter(|&(_, &other)| other != query);
        let others = others.filter(|&(_, &other)| self.computation_of(other, chunk) == Some(key));
        let others: Vec<_> = others.map(|(&scan, &other)| (scan, other)).collect();
        for (scan, other) in others {
            self.prune(other, scan, &[chunk]);
        }
    }
}
