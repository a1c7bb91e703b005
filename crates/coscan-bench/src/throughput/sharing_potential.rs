//! Sharing potential: the data that running scans still need, by the number of scans that need it
//! [CS11 §6.2, Figures 6.1 and 7.3 (d)].

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use coscan_core::SHARING_LEVELS;
use serde::{Deserialize, Serialize};
use tokio::time::MissedTickBehavior;

use super::ThroughputQuery;
use crate::runner::{Engine, Run, RunError, run_counted};
use crate::workload::Stream;

/// The time between two samples of the scans.
const INTERVAL: Duration = Duration::from_millis(50);

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

/// Runs all streams at the same time. Returns the sharing potential over time, too, which is empty if the engine does
/// not know its scans. `on_answer` gets the number of queries answered so far.
pub(super) async fn run_watched(
    engine: &Arc<dyn Engine>,
    streams: &[Stream<ThroughputQuery>],
    on_answer: &dyn Fn(usize),
) -> Result<(Run<ThroughputQuery>, Vec<SharingMoment>), RunError> {
    let answered = Arc::default();
    let run = run_counted(Arc::clone(engine), streams, "", &answered);
    tokio::pin!(run);
    let started = Instant::now();
    let mut samples = Vec::new();
    let mut looks = tokio::time::interval(INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            run = &mut run => return Ok((run?, moments(&samples))),
            _ = looks.tick() => {
                let at_s = started.elapsed().as_secs_f64();
                let bytes = engine.shared_bytes();
                samples.extend(bytes.map(|bytes| SharingMoment { at_s, bytes }));
                on_answer(answered.load(Ordering::Relaxed));
            }
        }
    }
}

/// The averages of at most [`PERIODS`] periods. All periods except the last have equal numbers of samples.
fn moments(samples: &[SharingMoment]) -> Vec<SharingMoment> {
    let of_period = samples.len().div_ceil(PERIODS).max(1);
    samples.chunks(of_period).map(average).collect()
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
        let sample = |number: u64| SharingMoment { at_s: number as f64, bytes: [number; 5] };
        let moments = moments(&(0..250).map(sample).collect::<Vec<_>>());
        assert_eq!(moments.len(), 84, "three looks each, and one");
        assert_eq!(moments[1], SharingMoment { at_s: 4.0, bytes: [4; 5] });
        assert_eq!(moments[83], SharingMoment { at_s: 249.0, bytes: [249; 5] });
        assert!(super::moments(&[]).is_empty());
    }
}
