//! Sharing potential: the data that running scans still need, by the number of scans that need it
//! [CS11 §6.2, Figures 6.1 and 7.3 (d)].

use std::time::{Duration, Instant};

use coscan_core::SHARING_LEVELS;
use serde::{Deserialize, Serialize};

use crate::runner::Engine;

/// The time between two samples of the scans.
pub(super) const INTERVAL: Duration = Duration::from_millis(50);

/// The number of periods of a run in a report.
const PERIODS: usize = 100;

/// The sharing potential in a period of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SharingMoment {
    /// The time from the start of the run to the middle of the period, in seconds.
    pub at_s: f64,
    /// The bytes of pages that exactly 1, 2, 3 and 4 scans, and 5 or more, were not handed yet, averaged over the
    /// period.
    pub bytes: [u64; SHARING_LEVELS],
}

/// Samples of the scans of a run.
#[derive(Debug)]
pub(super) struct Samples {
    started: Instant,
    samples: Vec<SharingMoment>,
}

impl Samples {
    pub(super) fn new(started: Instant) -> Self {
        Self { started, samples: Vec::new() }
    }

    pub(super) fn take(&mut self, engine: &dyn Engine) {
        let Some(bytes) = engine.shared_bytes() else { return };
        self.samples.push(SharingMoment { at_s: self.started.elapsed().as_secs_f64(), bytes });
    }

    /// The averages of at most [`PERIODS`] periods. All periods except the last have equal numbers of samples.
    pub(super) fn into_moments(self) -> Vec<SharingMoment> {
        let of_period = self.samples.len().div_ceil(PERIODS).max(1);
        self.samples.chunks(of_period).map(average).collect()
    }
}

fn average(samples: &[SharingMoment]) -> SharingMoment {
    let (first, last) = (samples[0], samples[samples.len() - 1]);
    let sum = |level: usize| samples.iter().map(|sample| sample.bytes[level]).sum::<u64>();
    SharingMoment {
        at_s: f64::midpoint(first.at_s, last.at_s),
        bytes: std::array::from_fn(|level| sum(level) / samples.len() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_has_averages_of_periods() {
        let mut samples = Samples::new(Instant::now());
        let sample = |number: u64| SharingMoment { at_s: number as f64, bytes: [number; 5] };
        samples.samples = (0..250).map(sample).collect();
        let moments = samples.into_moments();
        assert_eq!(moments.len(), 84, "three looks each, and one");
        assert_eq!(moments[1], SharingMoment { at_s: 4.0, bytes: [4; 5] });
        assert_eq!(moments[83], SharingMoment { at_s: 249.0, bytes: [249; 5] });
        assert!(Samples::new(Instant::now()).into_moments().is_empty());
    }
}
