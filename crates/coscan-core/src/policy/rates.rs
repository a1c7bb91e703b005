//! The rates of scans, for estimates of when they use something [CS11 §4.3, `scan.speed`].

use std::cell::Cell;

use crate::ids::Time;
use crate::scan::Scan;
use crate::state::State;

/// Scans in the average rate: the bound on its cost.
const AVERAGED_MAX: usize = 64;

/// The rates of scans: as measured, or before that the average of the oldest other scans.
#[derive(Clone, Debug, Default)]
pub(super) struct ScanRates {
    /// The average, and the time at which it was computed. It is an estimate, so it is not computed again at that time,
    /// even if a scan starts, ends or is handed a chunk.
    average: Cell<Option<(Time, u64)>>,
}

impl ScanRates {
    /// Nanoseconds that a scan takes for a number of rows.
    pub(super) fn ns_for(&self, state: &State, scan: &Scan, rows: u64) -> u64 {
        let row_ps = scan.row_ps(state.now()).unwrap_or_else(|| self.average_ps(state));
        u64::try_from(u128::from(rows) * u128::from(row_ps) / 1_000).unwrap_or(u64::MAX)
    }

    fn average_ps(&self, state: &State) -> u64 {
        if let Some((_, average)) = self.average.get().filter(|(time, _)| *time == state.now()) {
            return average;
        }
        let measured = |scan: &Scan| scan.row_ps(state.now());
        let known = state.running_scans().take(AVERAGED_MAX).filter_map(measured);
        let (count, sum) =
            known.fold((0, 0u64), |(count, sum), ps| (count + 1, sum.saturating_add(ps)));
        let average = sum.checked_div(count).unwrap_or(1);
        self.average.set(Some((state.now(), average)));
        average
    }
}
