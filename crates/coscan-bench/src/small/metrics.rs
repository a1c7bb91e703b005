//! The latencies of small queries on each engine, compared with those of the first engine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::SmallQuery;
use crate::answers::Difference;
use crate::engines::EngineKind;
use crate::metrics::{median, percentile};
use crate::runner::{Engine, Run};

/// The figures of one engine over all rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SmallReport {
    /// The name of the engine or policy.
    pub engine: String,
    /// The median time of a query, in seconds.
    pub median_s: f64,
    /// The 90th percentile of the times of queries, in seconds.
    pub p90_s: f64,
    /// The 99th percentile of the times of queries, in seconds.
    pub p99_s: f64,
    /// The time from the start of a round to the end of its last query, in seconds. This is the median of the rounds.
    pub total_s: f64,
    /// These times divided by those of the first engine. These are the medians of the rounds.
    pub ratios: SmallRatios,
    /// The bytes read from the device.
    pub bytes_read: u64,
    /// Whether every answer equals that of the first engine.
    pub answers_equal: bool,
    /// The queries of each kind.
    pub kinds: Vec<SmallKindReport>,
}

/// The times of an engine divided by those of the first engine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SmallRatios {
    /// The ratio of the median times of a query.
    pub median: f64,
    /// The ratio of the 90th percentiles.
    pub p90: f64,
    /// The ratio of the 99th percentiles.
    pub p99: f64,
    /// The ratio of the times of the whole round.
    pub total: f64,
}

/// The queries of one kind on one engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SmallKindReport {
    /// A few words on the queries.
    pub kind: String,
    /// The number of queries.
    pub count: usize,
    /// The median time, in seconds.
    pub median_s: f64,
    /// The 99th percentile, in seconds.
    pub p99_s: f64,
}

/// The measurements of an engine in the rounds so far.
#[derive(Default)]
pub(super) struct Tally {
    totals_s: Vec<f64>,
    kinds: BTreeMap<&'static str, Vec<f64>>,
    ratios: Vec<SmallRatios>,
    difference: Option<Difference>,
}

impl Tally {
    /// Adds a round. `base` is the same round on the first engine.
    pub(super) fn add(&mut self, round: &Run<SmallQuery>, base: &Run<SmallQuery>) {
        self.totals_s.push(round.total.as_secs_f64());
        self.ratios.push(ratios(round, base));
        for answered in &round.queries {
            let latency_s = answered.latency.as_secs_f64();
            self.kinds.entry(answered.query.kind).or_default().push(latency_s);
        }
        if self.difference.is_none() {
            self.difference = round.compare(base).err();
        }
    }

    /// The first difference from the answers of the first engine, if there is one.
    pub(super) fn difference((tally, kind): (&Self, &EngineKind)) -> Option<String> {
        tally.difference.as_ref().map(|difference| format!("{kind}: {difference}"))
    }

    pub(super) fn report(&self, engine: &dyn Engine) -> SmallReport {
        let ratio = |of: fn(&SmallRatios) -> f64| median(self.ratios.iter().map(of));
        let kind = |(kind, latencies_s): (&&str, &Vec<f64>)| SmallKindReport {
            kind: (*kind).to_owned(),
            count: latencies_s.len(),
            median_s: percentile(latencies_s, 50),
            p99_s: percentile(latencies_s, 99),
        };
        let latencies_s: Vec<f64> = self.kinds.values().flatten().copied().collect();
        SmallReport {
            engine: engine.name().to_owned(),
            median_s: percentile(&latencies_s, 50),
            p90_s: percentile(&latencies_s, 90),
            p99_s: percentile(&latencies_s, 99),
            total_s: percentile(&self.totals_s, 50),
            ratios: SmallRatios {
                median: ratio(|ratios| ratios.median),
                p90: ratio(|ratios| ratios.p90),
                p99: ratio(|ratios| ratios.p99),
                total: ratio(|ratios| ratios.total),
            },
            bytes_read: engine.io().bytes,
            answers_equal: self.difference.is_none(),
            kinds: self.kinds.iter().map(kind).collect(),
        }
    }
}

fn ratios(round: &Run<SmallQuery>, base: &Run<SmallQuery>) -> SmallRatios {
    let (latencies_s, base_s) = (round.latencies_s(), base.latencies_s());
    let ratio = |percent| percentile(&latencies_s, percent) / percentile(&base_s, percent);
    SmallRatios {
        median: ratio(50),
        p90: ratio(90),
        p99: ratio(99),
        total: round.total.as_secs_f64() / base.total.as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::test_run;

    fn round(total_ms: u64, queries: &[(u64, i64)]) -> Run<SmallQuery> {
        let query = SmallQuery { kind: "k", sql: "SELECT n".to_owned() };
        let queries = queries.iter().map(|&(ms, row)| (query.clone(), ms, vec![row]));
        test_run(total_ms, queries)
    }

    #[test]
    fn ratios_are_taken_within_a_round_and_answers_are_compared() {
        let base = round(100, &[(10, 1), (20, 2), (40, 3)]);
        let mut tally = Tally::default();
        tally.add(&round(200, &[(10, 1), (10, 2), (20, 3)]), &base);
        assert!(tally.difference.is_none());
        let ratios = tally.ratios[0];
        assert_eq!((ratios.median, ratios.p99, ratios.total), (0.5, 0.5, 2.0));
        assert_eq!(tally.kinds["k"].len(), 3);
        tally.add(&round(100, &[(10, 1), (20, 7), (40, 3)]), &base);
        let text = Tally::difference((&tally, &EngineKind::DataFusion)).expect("a difference");
        assert!(text.contains("expected (2), got (7)"), "{text}");
    }
}
