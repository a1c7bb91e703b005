//! When scans in any order are expected to use the chunks of a class.

use std::collections::BTreeMap;

use crate::classes::Class;
use crate::ids::{SlotIndex, TableId};
use crate::policy::next_use::Rates;
use crate::scan::{Order, Scan};
use crate::state::State;

/// The scans in any order, by when they are expected to use a chunk that they need: looked up once for a choice of victims,
/// not once for each class.
pub(super) struct AnyOrderScans<'a> {
    state: &'a State,
    rates: Rates,
    /// Nanoseconds for each scan of a table, soonest first.
    of_tables: BTreeMap<TableId, Vec<(u64, SlotIndex)>>,
}

impl<'a> AnyOrderScans<'a> {
    pub(super) fn new(state: &'a State) -> Self {
        Self { state, rates: Rates::default(), of_tables: BTreeMap::new() }
    }

    /// Nanoseconds until the first scan is expected to use one of the chunks of a class; the maximum if none needs them.
    pub(super) fn next_use_ns(&mut self, table: TableId, class: &Class) -> u64 {
        let Self { state, rates, of_tables } = self;
        let scans = of_tables.entry(table).or_insert_with(|| {
            let any = state.scans_of(table).filter(|scan| scan.order() == Order::Any);
            let mut scans: Vec<_> =
                any.map(|scan| (next_use_ns(state, rates, scan), scan.slot())).collect();
            scans.sort_unstable();
            scans
        });
        let first = scans.iter().find(|(_, slot)| class.key().scans.contains(*slot));
        first.map_or(u64::MAX, |&(ns, _)| ns)
    }
}

/// Nanoseconds until a scan is expected to use a chunk that it needs: half of the time that it has left
/// [CS11 Figure 4.3, `ChunkNextConsumption`].
fn next_use_ns(state: &State, rates: &Rates, scan: &Scan) -> u64 {
    let table = state.table(scan.table());
    let chunk_rows = table.row_count() / table.chunk_count().max(1) as u64;
    let rows = chunk_rows * scan.needed().len() as u64;
    let ns = u128::from(rows) * u128::from(rates.row_ps(state, scan)) / 2_000;
    u64::try_from(ns).unwrap_or(u64::MAX)
}
