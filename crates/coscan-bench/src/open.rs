//! Queries that arrive at random times, whether or not earlier queries have finished: an open loop, as users of a server are.
//!
//! Streams whose queries wait for each other slow down with the engine. Here arrivals do not, so that queries pile up where an
//! engine answers fewer than arrive. Gaps between arrivals are exponential (a Poisson process), drawn from the seed, and the
//! same for every engine and rate except for their unit.

use std::cell::OnceCell;
use std::time::Duration;

use coscan_sim::Random;
use serde::{Deserialize, Serialize};

use crate::engines::EngineKind;
use crate::experiment::Prepared;
use crate::metrics::{Compared, Standalone, average, percentile};
use crate::rounds::in_turn;
use crate::runner::{EngineError, Run};
use crate::workload::{Query, Stream};

/// An answer is late if it takes this many times as long as queries take alone on average.
pub const LATE_FACTOR: f64 = 5.0;

/// How many queries arrive in a second, in several runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Rates {
    /// Queries per second.
    PerSecond(Vec<f64>),
    /// Multiples of the rate that the first engine sustains in a closed loop: each client sends its next query when it has the
    /// answer to the last one.
    Loads {
        /// The multiples.
        loads: Vec<f64>,
        /// The number of clients.
        clients: usize,
    },
}

/// What was measured on all engines.
#[derive(Debug)]
pub struct OpenRun {
    /// The average time of the queries alone on plain DataFusion, in seconds.
    pub alone_avg_s: f64,
    /// The queries that the first engine answers in a second in a closed loop. `None` if rates were given.
    pub closed_loop_per_s: Option<f64>,
    /// The engines.
    pub compared: Compared<OpenReport>,
}

/// The runs of one engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenReport {
    /// The name of the engine or policy.
    pub engine: String,
    /// The number of queries in each run.
    pub queries: usize,
    /// The time from its arrival after which an answer is late, in seconds.
    pub late_after_s: f64,
    /// The highest of the rates up to which no 95th percentile is late, in queries per second. `None` if all are too high.
    pub sustained_per_s: Option<f64>,
    /// The runs, in the order of the rates.
    pub rates: Vec<OpenRateReport>,
}

/// One run of one engine. Times are from the moment at which a query was due to arrive to its last row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenRateReport {
    /// The queries that arrive in a second, on average.
    pub per_s: f64,
    /// The average time, in seconds.
    pub mean_s: f64,
    /// The median of the times, in seconds.
    pub median_s: f64,
    /// The 95th percentile of the times, in seconds.
    pub p95_s: f64,
    /// The number of queries whose answer was late.
    pub late: usize,
    /// The time from the first arrival to the last answer, in seconds.
    pub total_s: f64,
    /// The bytes read from the device.
    pub bytes_read: u64,
    /// The processor time of the whole process, in seconds.
    pub cpu_s: f64,
    /// Whether every answer equals that of the first run.
    pub answers_equal: bool,
}

impl Prepared {
    /// Runs all queries of the streams at each rate on each engine, where each arrives on its own. `standalone` has the time
    /// that each kind of query takes alone. `on_run` gets the engine and the rate before each run, without a rate for the
    /// closed loop.
    ///
    /// # Errors
    /// If the table cannot be opened, a query fails, or there is no engine or rate.
    pub async fn open(
        &self,
        kinds: &[EngineKind],
        rates: &Rates,
        standalone: &Standalone,
        on_run: &dyn Fn(EngineKind, Option<f64>),
    ) -> Result<OpenRun, EngineError> {
        let Some(&first) = kinds.first() else { return Err("there is no engine to run".into()) };
        let queries = self.streams.iter().flat_map(|stream| &stream.queries).cloned();
        let queries: Vec<Query> = queries.collect();
        let mut closed_loop_per_s = None;
        let rates = match rates {
            Rates::PerSecond(rates) => rates.clone(),
            Rates::Loads { loads, clients } => {
                on_run(first, None);
                let run =
                    self.with_streams(closed_loop(&queries, *clients)).run(first, None).await?;
                let per_s = run.run.queries.len() as f64 / run.run.total.as_secs_f64();
                closed_loop_per_s = Some(per_s);
                loads.iter().map(|load| load * per_s).collect()
            }
        };
        let alone = queries.iter().map(|query| {
            let time = standalone.get(&(query.kind, query.percent));
            time.copied().ok_or_else(|| format!("{} was not timed alone", query.label()))
        });
        let alone = alone.collect::<Result<Vec<_>, _>>()?;
        let alone_avg_s = average(alone.into_iter());
        let late_after_s = LATE_FACTOR * alone_avg_s;

        let mut reports: Vec<Vec<OpenRateReport>> = kinds.iter().map(|_| Vec::new()).collect();
        let mut differences = Vec::new();
        let expected: OnceCell<Run> = OnceCell::new();
        for (index, &per_s) in rates.iter().enumerate() {
            let prepared = self.with_streams(arrivals(&queries, per_s, self.experiment.seed));
            let of_rate = in_turn(index, kinds, async |&kind| {
                on_run(kind, Some(per_s));
                let run = prepared.run(kind, None).await?;
                let faults = run.faults();
                let run = run.run;
                let difference = expected.get().and_then(|expected| run.compare(expected).err());
                let report = rate_report(&run, &prepared.streams, per_s, late_after_s);
                let report = OpenRateReport { answers_equal: difference.is_none(), ..report };
                expected.get_or_init(|| run);
                let wrong = difference.map(|difference| difference.to_string());
                let wrong = wrong.into_iter().chain(faults);
                let wrong = wrong.map(|wrong| format!("{kind}, {per_s:.2} a second: {wrong}"));
                Ok((report, wrong.collect::<Vec<_>>()))
            });
            for (reports, (report, wrong)) in reports.iter_mut().zip(of_rate.await?) {
                reports.push(report);
                differences.extend(wrong);
            }
        }
        let queries = queries.len();
        let reports = kinds.iter().zip(reports).map(|(kind, rates)| {
            let sustained_per_s = sustained_per_s(&rates, late_after_s);
            OpenReport { engine: kind.to_string(), queries, late_after_s, sustained_per_s, rates }
        });
        let compared = Compared { reports: reports.collect(), differences };
        Ok(OpenRun { alone_avg_s, closed_loop_per_s, compared })
    }
}

/// The highest rate up to which no 95th percentile is late.
fn sustained_per_s(rates: &[OpenRateReport], late_after_s: f64) -> Option<f64> {
    let mut rates: Vec<_> = rates.iter().collect();
    rates.sort_by(|one, other| one.per_s.total_cmp(&other.per_s));
    rates.iter().take_while(|rate| rate.p95_s <= late_after_s).last().map(|rate| rate.per_s)
}

/// The queries dealt to clients that send one after another.
fn closed_loop(queries: &[Query], clients: usize) -> Vec<Stream> {
    let clients = clients.clamp(1, queries.len().max(1));
    let queries = |client| queries.iter().skip(client).step_by(clients).cloned().collect();
    (0..clients).map(|client| Stream::once(queries(client))).collect()
}

/// Each query as a stream of its own, which starts when the query arrives. The first arrives at once.
fn arrivals(queries: &[Query], per_s: f64, seed: u64) -> Vec<Stream> {
    // Other numbers than those from which the queries were drawn.
    let mut random = Random::new(!seed);
    let mut due_s = 0.0;
    let arrival = |query: &Query| {
        let start_delay = Duration::from_secs_f64(due_s);
        // 1 minus the number is never 0.
        due_s -= (1.0 - random.unit()).ln() / per_s;
        Stream { start_delay, ..Stream::once(vec![query.clone()]) }
    };
    queries.iter().map(arrival).collect()
}

fn rate_report(run: &Run, streams: &[Stream], per_s: f64, late_after_s: f64) -> OpenRateReport {
    let since_due = run.queries.iter().map(|query| {
        let answered = query.start + query.latency;
        answered.saturating_sub(streams[query.stream].start_delay).as_secs_f64()
    });
    let times_s: Vec<f64> = since_due.collect();
    OpenRateReport {
        per_s,
        mean_s: average(times_s.iter().copied()),
        median_s: percentile(&times_s, 50),
        p95_s: percentile(&times_s, 95),
        late: times_s.iter().filter(|time_s| **time_s > late_after_s).count(),
        total_s: run.total.as_secs_f64(),
        bytes_read: run.io.bytes,
        cpu_s: run.cpu.as_secs_f64(),
        answers_equal: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::test_run;
    use crate::workload::Kind;

    fn queries(count: usize) -> Vec<Query> {
        vec![Query::whole(Kind::Fast); count]
    }

    #[test]
    fn arrivals_are_a_poisson_process_of_the_rate() {
        let dues = |per_s, seed| {
            let streams = arrivals(&queries(10_001), per_s, seed);
            assert!(streams.iter().all(|stream| stream.queries.len() == 1 && !stream.repeats));
            streams.iter().map(|stream| stream.start_delay.as_secs_f64()).collect::<Vec<_>>()
        };
        let one = dues(1.0, 7);
        assert_eq!(one[0], 0.0);
        let gaps: Vec<f64> = one.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = average(gaps.iter().copied());
        assert!((0.97..1.03).contains(&mean), "{mean}");
        // The deviation of an exponential gap is its mean, and about 37 % are longer than it.
        let deviation = average(gaps.iter().map(|gap| (gap - mean).powi(2))).sqrt();
        assert!((0.95..1.05).contains(&deviation), "{deviation}");
        let long = gaps.iter().filter(|gap| **gap > 1.0).count();
        assert!((3_500..3_850).contains(&long), "{long}");
        // Another rate has the same arrivals in another unit.
        let four = dues(4.0, 7);
        assert!(one.iter().zip(&four).all(|(one, four)| (one / 4.0 - four).abs() < 1e-5));
        assert_ne!(one, dues(1.0, 8));
    }

    #[test]
    fn a_closed_loop_has_each_query_once() {
        let counts = |count, clients| {
            let streams = closed_loop(&queries(count), clients);
            streams.iter().map(|stream| stream.queries.len()).collect::<Vec<_>>()
        };
        assert_eq!(counts(7, 3), [3, 2, 2]);
        assert_eq!(counts(2, 16), [1, 1]);
        assert_eq!(counts(2, 0), [2]);
    }

    #[test]
    fn times_count_from_the_arrival_that_was_due() {
        let run = |starts_ms: [u64; 3]| {
            let answered = queries(3).into_iter().map(|query| (query, 100, vec![1]));
            let mut run = test_run(900, answered);
            for (query, start_ms) in run.queries.iter_mut().zip(starts_ms) {
                query.start = Duration::from_millis(start_ms);
            }
            run
        };
        let dues_ms = [0, 200, 300];
        let streams = dues_ms.map(|due_ms| Stream {
            start_delay: Duration::from_millis(due_ms),
            ..Stream::once(queries(1))
        });
        let on_time = rate_report(&run(dues_ms), &streams, 10.0, 0.15);
        assert_eq!((on_time.median_s, on_time.p95_s, on_time.late), (0.1, 0.1, 0));
        let report = rate_report(&run([0, 220, 500]), &streams, 10.0, 0.15);
        assert_eq!((report.median_s, report.p95_s, report.late), (0.12, 0.3, 1));
        assert!((report.mean_s - 0.52 / 3.0).abs() < 1e-9);
    }
}
