//! The rates of scans, for estimates of when they use something.

use std::cell::Cell;

use crate::ids::Time;
use crate::scan::Scan;
use crate::state::State;

/// Scans in the average rate: the bound on its cost.
const AVERAGED_MAX: usize = 64;

/// The rates of scans: as measured, or until then the average of the oldest other scans.
#[derive(Clone, Debug, Default)]
pub(in crate::policy) struct Rates {
    /// That average, and the time of it: it is computed once for all questions at one time.
    average: Cell<Option<(Time, u64)>>,
}

impl Rates {
    /// Picoseconds a row.
    pub(in crate::policy) fn row_ps(&self, state: &State, scan: &Scan) -> u64 {
        scan.row_ps(state.now()).unwrap_or_else(|| self.average_ps(state))
    }

    fn average_ps(&self, state: &State) -> u64 {
        if let Some((_, average)) = self.average.get().filter(|(time, _)| *time == state.now()) {
            return average;
        }
        let measured = |scan: &Scan| scan.row_ps(state.now());
        let known = state.scans().take(AVERAGED_MAX).filter_map(measured);
        let (count, sum) =
            known.fold((0, 0u64), |(count, sum), ps| (count + 1, sum.saturating_add(ps)));
        let average = sum.checked_div(count).unwrap_or(1);
        self.average.set(Some((state.now(), average)));
        average
    }
}
