//! The time of a lap, as a node sees it.

use coscan_core::Time;

/// A shorter lap counts for this part of the smoothed one, as for round trips in TCP (RFC 6298). A longer one counts in
/// full at once, because waiting too long is cheaper than reading again what is only late.
const GAIN: u64 = 8;

/// The smoothed time of a lap.
#[derive(Clone, Debug)]
pub(super) struct Lap<F> {
    smoothed_ns: u64,
    is_measured: bool,
    /// A fragment that has passed, its lap, and the time. The time until it passes again in the next lap is a lap. In a
    /// later lap, it may have left the ring meanwhile and have come back an hour later.
    probe: Option<(F, u32, Time)>,
}

impl<F: Copy + PartialEq> Lap<F> {
    pub(super) fn new(first_ns: u64) -> Self {
        Self { smoothed_ns: first_ns, is_measured: false, probe: None }
    }

    pub(super) fn ns(&self) -> u64 {
        self.smoothed_ns
    }

    /// Notes that a fragment passes in one of its laps. It is watched from now on if the last one watched is not back
    /// within `patience_ns`.
    pub(super) fn passes(&mut self, now: Time, (fragment, lap): (F, u32), patience_ns: u64) {
        if let Some((watched, before, at)) = self.probe {
            let ns = now.since(at);
            if watched != fragment && ns < patience_ns {
                return;
            }
            if watched == fragment && lap == before.saturating_add(1) {
                self.took(ns);
            }
        }
        self.probe = Some((fragment, lap, now));
    }

    /// Counts a lap of this many nanoseconds.
    fn took(&mut self, sample_ns: u64) {
        let smoothed_ns = match self.is_measured {
            true => sample_ns.max((self.smoothed_ns * (GAIN - 1) + sample_ns) / GAIN),
            false => sample_ns,
        };
        (self.smoothed_ns, self.is_measured) = (smoothed_ns.max(1), true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_lap_counts_whole_and_a_shorter_one_an_eighth() {
        let mut lap = Lap::new(1_000);
        let mut passes = |at, fragment| {
            lap.passes(Time(at), fragment, 500);
            lap.ns()
        };
        assert_eq!(passes(0, ('a', 1)), 1_000);
        assert_eq!(passes(10, ('b', 1)), 1_000);
        assert_eq!(passes(80, ('a', 2)), 80);
        assert_eq!(passes(240, ('a', 3)), 160);
        assert_eq!(passes(320, ('a', 4)), 150);
        assert_eq!(passes(900, ('b', 3)), 150); // `a` is lost.
        assert_eq!(passes(1_080, ('b', 4)), 180);
        // The fragment was off the ring.
        assert_eq!(passes(1_000_000, ('b', 1)), 180);
        assert_eq!(passes(1_000_100, ('b', 2)), 170);
    }
}
