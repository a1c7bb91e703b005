//! The refreshes of an engine, compared with those of the first engine.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Panel;
use crate::engines::EngineKind;
use crate::metrics::median;
use crate::rounds::RoundRatio;
use crate::runner::Run;

/// The figures of one engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DashboardReport {
    /// The name of the engine or policy.
    pub engine: String,
    /// The time to open the table before the first refresh, in seconds.
    pub open_s: f64,
    /// The first refresh.
    pub first: RefreshReport,
    /// Its time divided by that of the first engine.
    pub first_ratio: f64,
    /// The medians of the later refreshes, or `None` if there was only one.
    pub later: Option<RefreshReport>,
    /// The times of the later refreshes divided by those of the first engine.
    pub later_ratio: Option<RoundRatio>,
    /// Whether every answer of every refresh equals that of the first engine.
    pub answers_equal: bool,
    /// All refreshes.
    pub refreshes: Vec<RefreshReport>,
}

/// One refresh, or the medians of several.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RefreshReport {
    /// The time from the start of the refresh to the last answer, with that to list the files, in seconds.
    pub time_s: f64,
    /// The bytes read from the device.
    pub bytes_read: u64,
    /// The processor time of the process while the panels were computed, in seconds.
    pub cpu_s: f64,
}

/// A refresh of one engine.
pub(super) struct Refresh {
    report: RefreshReport,
    answers_equal: bool,
}

impl Refresh {
    pub(super) fn new(listing: Duration, run: &Run<Panel>, answers_equal: bool) -> Self {
        let report = RefreshReport {
            time_s: (listing + run.total).as_secs_f64(),
            bytes_read: run.io.bytes,
            cpu_s: run.cpu.as_secs_f64(),
        };
        Self { report, answers_equal }
    }
}

impl DashboardReport {
    /// The report of all refreshes, at least one. `base` are those of the first engine.
    pub(super) fn new(
        kind: EngineKind,
        opened: Duration,
        refreshes: &[Refresh],
        base: &[Refresh],
    ) -> Self {
        let times = |refreshes: &[Refresh]| -> Vec<f64> {
            refreshes.iter().map(|refresh| refresh.report.time_s).collect()
        };
        let later = &refreshes[1..];
        let of_later = |figure: fn(&RefreshReport) -> f64| {
            median(later.iter().map(|refresh| figure(&refresh.report)))
        };
        let are_later = !later.is_empty();
        Self {
            engine: kind.to_string(),
            open_s: opened.as_secs_f64(),
            first: refreshes[0].report,
            first_ratio: refreshes[0].report.time_s / base[0].report.time_s,
            later: are_later.then(|| RefreshReport {
                time_s: of_later(|refresh| refresh.time_s),
                bytes_read: of_later(|refresh| refresh.bytes_read as f64) as u64,
                cpu_s: of_later(|refresh| refresh.cpu_s),
            }),
            later_ratio: are_later.then(|| RoundRatio::new(&times(later), &times(&base[1..]))),
            answers_equal: refreshes.iter().all(|refresh| refresh.answers_equal),
            refreshes: refreshes.iter().map(|refresh| refresh.report).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refreshes(times_s: &[f64]) -> Vec<Refresh> {
        let refresh = |(&time_s, bytes_read)| Refresh {
            report: RefreshReport { time_s, bytes_read, cpu_s: 2.0 * time_s },
            answers_equal: time_s < 9.0,
        };
        times_s.iter().zip(10..).map(refresh).collect()
    }

    #[test]
    fn the_first_refresh_is_apart_from_the_later_ones() {
        let base = refreshes(&[8.0, 4.0, 2.0, 4.0]);
        let new = |times_s: &[f64]| {
            let refreshes = refreshes(times_s);
            DashboardReport::new(EngineKind::Coscan, Duration::from_secs(1), &refreshes, &base)
        };
        let report = new(&[4.0, 1.0, 1.0, 2.0]);
        assert_eq!(
            (report.first.time_s, report.first.bytes_read, report.first_ratio),
            (4.0, 10, 0.5)
        );
        let later = RefreshReport { time_s: 1.0, bytes_read: 12, cpu_s: 2.0 };
        assert_eq!(report.later, Some(later));
        assert_eq!(report.later_ratio.map(|ratio| ratio.median), Some(0.5));
        assert!(report.answers_equal && !new(&[4.0, 9.5]).answers_equal);
        assert_eq!(new(&[4.0]).later_ratio, None);
    }
}
