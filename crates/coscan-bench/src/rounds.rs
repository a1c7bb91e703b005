//! Runs that are compared take turns, so that disturbances of the machine hit all of them.
//!
//! [`in_turn`] runs a round. Figures are compared within a round, and a [`RoundRatio`] says what is so in most of them.
//! [`RoundsReport`] has the rounds of streams on one engine.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::metrics::{EngineReport, median};
use crate::runner::EngineError;

/// The ratio of a figure to that of another engine in the same round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RoundRatio {
    /// The median of the rounds.
    pub median: f64,
    /// The interval that has the median of all possible rounds with a probability of at least 95 %. It makes no assumption
    /// on how ratios are distributed. `None` for fewer than six rounds.
    pub interval: Option<(f64, f64)>,
}

impl RoundRatio {
    /// The ratios of `values` to `base`, both with one figure per round.
    pub fn new(values: &[f64], base: &[f64]) -> Self {
        let mut ratios: Vec<f64> =
            values.iter().zip(base).map(|(value, base)| value / base).collect();
        ratios.sort_by(f64::total_cmp);
        let excluded = excluded_on_each_side(ratios.len());
        let interval = excluded.map(|count| (ratios[count], ratios[ratios.len() - 1 - count]));
        // The mean of the two in the middle, if there are two.
        let (low, high) = (ratios.len().saturating_sub(1) / 2, ratios.len() / 2);
        let median = match (ratios.get(low), ratios.get(high)) {
            (Some(low), Some(high)) => (low + high) / 2.0,
            _ => f64::NAN,
        };
        Self { median, interval }
    }
}

/// As `0.830 (0.800 to 0.860)`.
impl fmt::Display for RoundRatio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.median)?;
        self.interval.map_or(Ok(()), |(low, high)| write!(f, " ({low:.3} to {high:.3})"))
    }
}

/// The number of smallest, and of largest, of `count` sorted values that are outside of the 95 % interval of their median:
/// the sign test. Each value is above the median with probability one half, so that the number of those above is
/// binomial. `None` if not even all values make such an interval.
fn excluded_on_each_side(count: usize) -> Option<usize> {
    // The probability that exactly `below` values are below the median.
    let mut probability = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut tail = 0.0;
    for below in 0..count {
        tail += probability;
        if tail > 0.025 {
            return below.checked_sub(1);
        }
        probability *= (count - below) as f64 / (below + 1) as f64;
    }
    None
}

/// The runs of the same streams on one engine, one in each round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundsReport {
    /// The name of the engine or policy.
    pub engine: String,
    /// The median of the total times, in seconds.
    pub total_s: f64,
    /// The total times divided by those of the first engine.
    pub total_ratio: RoundRatio,
    /// The median of the processor times of the whole process, in seconds.
    pub cpu_s: f64,
    /// The processor times divided by those of the first engine.
    pub cpu_ratio: RoundRatio,
    /// Whether every answer of every round equals that of the first run.
    pub answers_equal: bool,
    /// The runs, in the order of rounds.
    pub runs: Vec<EngineReport>,
}

impl RoundsReport {
    /// The runs of one engine, beside those of the first one in the same rounds.
    pub fn new(runs: Vec<EngineReport>, base: &[EngineReport]) -> Self {
        let both = |figure: fn(&EngineReport) -> f64| {
            let [values, base] =
                [&runs, base].map(|runs| runs.iter().map(figure).collect::<Vec<_>>());
            (median(values.iter().copied()), RoundRatio::new(&values, &base))
        };
        let (total_s, total_ratio) = both(|run| run.total_s);
        let (cpu_s, cpu_ratio) = both(|run| run.cpu_s);
        Self {
            engine: runs.first().map_or_else(String::new, |run| run.engine.clone()),
            total_s,
            total_ratio,
            cpu_s,
            cpu_ratio,
            answers_equal: runs.iter().all(|run| run.answers_equal),
            runs,
        }
    }

    /// The run with the median of the total times, which stands for all of them. `None` without runs.
    pub fn median_run(&self) -> Option<EngineReport> {
        let run = self.runs.iter().find(|run| run.total_s == self.total_s)?;
        Some(EngineReport { answers_equal: self.answers_equal, ..run.clone() })
    }
}

/// Runs each variant once, beginning with another one in each round. The results are in the order of the variants.
///
/// # Errors
/// The first error of a run, which ends the round.
pub async fn in_turn<V, R>(
    round: usize,
    variants: &[V],
    run: impl AsyncFn(&V) -> Result<R, EngineError>,
) -> Result<Vec<R>, EngineError> {
    let first = round % variants.len().max(1);
    let mut results = Vec::with_capacity(variants.len());
    for variant in variants[first..].iter().chain(&variants[..first]) {
        results.push(run(variant).await?);
    }
    results.rotate_right(first);
    Ok(results)
}

/// Runs each variant in every round, and at least once. Returns the results of each variant, in the order of rounds.
pub(crate) async fn interleaved<V, R>(
    rounds: usize,
    variants: &[V],
    run: impl AsyncFn(&V) -> Result<R, EngineError>,
) -> Result<Vec<Vec<R>>, EngineError> {
    let mut results: Vec<Vec<R>> = variants.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds.max(1) {
        let round = in_turn(round, variants, &run).await?;
        results.iter_mut().zip(round).for_each(|(results, result)| results.push(result));
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use futures::FutureExt;

    use super::*;

    #[test]
    fn intervals_are_those_of_the_sign_test() {
        // Tables of the sign test: the ranks of the lower end, counted from 1.
        let ranks = [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (20, 6), (30, 10), (100, 40)];
        for (count, rank) in ranks {
            assert_eq!(excluded_on_each_side(count), Some(rank - 1), "{count}");
        }
        assert_eq!((0..6).map(excluded_on_each_side).find(Option::is_some), None);
        let ratio = RoundRatio::new(&[2.0, 9.0, 4.0, 6.0, 8.0, 30.0], &[2.0; 6]);
        assert_eq!(ratio, RoundRatio { median: 3.5, interval: Some((1.0, 15.0)) });
        assert_eq!(ratio.to_string(), "3.500 (1.000 to 15.000)");
        assert_eq!(RoundRatio::new(&[1.0], &[4.0]).to_string(), "0.250");
    }

    #[test]
    fn ratios_are_taken_within_rounds_and_one_run_stands_for_all() {
        let run = |total_s: f64| EngineReport {
            engine: "e".to_owned(),
            total_s,
            stream_avg_s: 0.0,
            normalized_latency_avg: 0.0,
            bytes_read: 0,
            io_requests: 0,
            cpu_s: 2.0 * total_s,
            cpu_use: 0.0,
            answers_equal: total_s < 5.0,
            memory_peak_bytes: None,
            queries: Vec::new(),
            reads: Vec::new(),
        };
        let base = [1.0, 4.0, 2.0].map(run);
        let report = RoundsReport::new([2.0, 4.0, 8.0].map(run).to_vec(), &base);
        assert_eq!((report.total_s, report.cpu_s), (4.0, 8.0));
        assert_eq!((report.total_ratio.median, report.cpu_ratio.median), (2.0, 2.0));
        let median_run = report.median_run().expect("three runs");
        assert_eq!((median_run.total_s, median_run.answers_equal), (4.0, false));
    }

    #[test]
    fn variants_alternate_in_going_first_and_keep_their_results() {
        let order = RefCell::new(Vec::new());
        let run = async |&variant: &char| {
            order.borrow_mut().push(variant);
            Ok(order.borrow().len())
        };
        let results = interleaved(3, &['a', 'b'], run).now_or_never().expect("no waiting");
        assert_eq!(results.expect("no errors"), [[1, 4, 5], [2, 3, 6]]);
        assert_eq!(order.into_inner(), ['a', 'b', 'b', 'a', 'a', 'b']);
    }
}
