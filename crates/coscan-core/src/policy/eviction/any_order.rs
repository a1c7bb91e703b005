//! The expected time at which scans in any order use the chunks of a class.

use std::collections::BTreeMap;

use crate::classes::Class;
use crate::ids::{ScanPosition, TableId};
use crate::policy::rates::ScanRates;
use crate::scan::{Order, Scan};
use crate::state::State;

/// Classes that more scans need are looked up among all scans of the table, which are sorted once.
const FEW_SCANS: usize = 16;

/// Scans in any order, by the estimated time until they next use a chunk, for one choice of victims.
pub(super) struct AnyOrderScans<'a> {
    state: &'a State,
    rates: ScanRates,
    /// For each table, nanoseconds and slot of its scans, soonest first.
    by_table: BTreeMap<TableId, Vec<(u64, ScanPosition)>>,
}

impl<'a> AnyOrderScans<'a> {
    pub(super) fn new(state: &'a State) -> Self {
        Self { state, rates: ScanRates::default(), by_table: BTreeMap::new() }
    }

    /// Nanoseconds until the first scan is expected to use one of the chunks of a class; `u64::MAX` if none needs them.
    pub(super) fn next_use_ns(&mut self, table: TableId, class: &Class) -> u64 {
        let Self { state, rates, by_table } = self;
        let state = *state;
        let needing = &class.key().scans;
        let is_any = |scan: &&Scan| scan.order() == Order::Any;
        let ns = |scan: &Scan| next_use_ns(state, rates, scan);
        if needing.len() <= FEW_SCANS {
            let scans = state.scans_at(state.table(table), needing).filter(is_any);
            return scans.map(ns).min().unwrap_or(u64::MAX);
        }
        let scans = by_table.entry(table).or_insert_with(|| {
            let scans = state.scans_of(table).filter(is_any);
            let mut scans: Vec<_> = scans.map(|scan| (ns(scan), scan.slot())).collect();
            scans.sort_unstable();
            scans
        });
        let first = scans.iter().find(|(_, slot)| needing.contains(*slot));
        first.map_or(u64::MAX, |&(ns, _)| ns)
    }
}

/// Nanoseconds until a scan is expected to use a chunk that it needs: half of the time that it has left
/// [CS11 Figure 4.3, `ChunkNextConsumption`].
fn next_use_ns(state: &State, rates: &ScanRates, scan: &Scan) -> u64 {
    let table = state.table(scan.table());
    let chunk_rows = table.row_count() / table.chunk_count().max(1) as u64;
    rates.ns_for(state, scan, chunk_rows * scan.needed().len() as u64) / 2
}
