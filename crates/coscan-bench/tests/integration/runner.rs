//! Streams run as drawn, are measured as in CS07, and stop at the first error.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow::array::{Int64Array, RecordBatch};
use coscan_bench::metrics::{EngineReport, KindReport, QueryReport, Standalone};
use coscan_bench::runner::{
    Engine, EngineError, IoCount, Read, Run, RunError, run_streams, time_query,
};
use coscan_bench::workload::{Kind, Percent, Query, Stream};
use futures::future::BoxFuture;
use tokio::sync::watch;

const QUERY_MS: u64 = 40;

/// An engine that answers every query after 40 ms with one row, and counts the queries.
#[derive(Default)]
struct FakeEngine {
    answer: i64,
    fails_on: Option<&'static str>,
    /// Whole scans end only after this number of answered points.
    points_before_scans: usize,
    points: watch::Sender<usize>,
    running: Mutex<(usize, usize)>,
    io: Mutex<IoCount>,
    reads: Mutex<Vec<Read>>,
}

impl Engine for FakeEngine {
    fn name(&self) -> &str {
        "fake"
    }

    fn query<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, Result<Vec<RecordBatch>, EngineError>> {
        Box::pin(async move {
            {
                let mut running = self.running.lock().expect("running");
                running.0 += 1;
                running.1 = running.1.max(running.0);
                let mut io = self.io.lock().expect("io");
                *io = IoCount { bytes: io.bytes + 100, requests: io.requests + 1 };
                let read = Read { at: Instant::now(), position: 0.5, bytes: 100 };
                self.reads.lock().expect("reads").push(read);
            }
            if self.fails_on.is_some_and(|text| sql.contains(text)) {
                return Err("the disk is on fire".into());
            }
            tokio::time::sleep(Duration::from_millis(QUERY_MS)).await;
            if sql.contains("l_orderkey =") {
                self.points.send_modify(|points| *points += 1);
            } else {
                let enough = |points: &usize| *points >= self.points_before_scans;
                self.points.subscribe().wait_for(enough).await?;
            }
            self.running.lock().expect("running").0 -= 1;
            let rows = Arc::new(Int64Array::from(vec![self.answer]));
            Ok(vec![RecordBatch::try_from_iter([("n", rows as _)])?])
        })
    }

    fn io(&self) -> IoCount {
        *self.io.lock().expect("io")
    }

    fn take_reads(&self) -> Vec<Read> {
        std::mem::take(&mut self.reads.lock().expect("reads"))
    }
}

fn query(kind: Kind, number: u32) -> Query {
    let percent = Percent::try_from(number).expect("1 to 100");
    Query::new(kind, percent, (number < 100).then_some(1..=2))
}

/// Three streams of two queries, 20 ms apart.
fn streams() -> Vec<Stream> {
    (0..3)
        .map(|index| stream(20 * index, vec![query(Kind::Fast, 10), query(Kind::Slow, 100)]))
        .collect()
}

fn stream(start_delay_ms: u64, queries: Vec<Query>) -> Stream {
    Stream { start_delay: Duration::from_millis(start_delay_ms), ..Stream::once(queries) }
}

fn standalone() -> Standalone {
    BTreeMap::from([
        ((Kind::Fast, query(Kind::Fast, 10).percent), 0.010),
        ((Kind::Slow, Percent::WHOLE), 0.020),
    ])
}

async fn run(engine: FakeEngine) -> Result<Run, RunError> {
    run_streams(Arc::new(engine), &streams(), "t").await
}

#[tokio::test]
async fn streams_overlap_and_their_queries_do_not() {
    let engine = Arc::new(FakeEngine::default());
    time_query(engine.as_ref(), &query(Kind::Fast, 10), "t").await.expect("a query alone");
    engine.running.lock().expect("running").1 = 0;
    let run = run_streams(Arc::clone(&engine) as _, &streams(), "t").await.expect("a run");

    assert_eq!(engine.running.lock().expect("running").1, 3, "all streams at once");
    // Reads before the run do not count.
    assert_eq!(run.io, IoCount { bytes: 600, requests: 6 });
    assert_eq!(run.reads.len(), 6);
    assert!(run.reads.iter().all(|read| read.position == 0.5 && read.bytes == 100));
    let order: Vec<usize> = run.queries.iter().map(|query| query.stream).collect();
    assert_eq!(order, [0, 0, 1, 1, 2, 2]);
    for pair in run.queries.chunks(2) {
        let delay = Duration::from_millis(20 * pair[0].stream as u64);
        assert!(pair[0].start >= delay);
        assert!(pair[1].start >= pair[0].start + pair[0].latency);
        assert!(pair.iter().all(|query| query.latency >= Duration::from_millis(QUERY_MS)));
    }
    // The time of a stream starts with the stream, so that the last one does not take longer.
    for (stream, time) in streams().iter().zip(&run.stream_times) {
        assert!(*time >= Duration::from_millis(2 * QUERY_MS));
        assert!(*time + stream.start_delay <= run.total);
    }
    assert!(run.total >= Duration::from_millis(2 * 20 + 2 * QUERY_MS));
}

fn point(key: i64) -> Query {
    Query::new(Kind::Point, Percent::ONE_KEY, Some(key..=key))
}

/// A stream with a scan, and one that repeatedly looks two keys up.
fn with_points() -> Vec<Stream> {
    let points = Stream { repeats: true, ..stream(0, vec![point(1), point(2)]) };
    vec![stream(0, vec![query(Kind::Slow, 100)]), points]
}

#[tokio::test]
async fn streams_that_repeat_go_on_until_the_others_have_ended() {
    let engine = Arc::new(FakeEngine { points_before_scans: 5, ..Default::default() });
    let streams = with_points();
    // The scan never ends if the points end first.
    let run = tokio::time::timeout(Duration::from_secs(10), run_streams(engine, &streams, "t"));
    let run = run.await.expect("points go on").expect("a run");
    let points: Vec<_> = run.queries.iter().filter(|query| query.stream == 1).collect();
    assert!((5..=7).contains(&points.len()), "{} points", points.len());
    for (index, query) in points.iter().enumerate() {
        assert_eq!((query.place, query.repeats), (index % 2, true));
        assert_eq!(query.query, point(1 + index as i64 % 2));
    }
    assert_eq!(run.stream_times.len(), 1, "the time of streams that end of themselves");
    assert_eq!(run.queries.iter().filter(|query| !query.repeats).count(), 1);
}

#[tokio::test]
async fn streams_that_repeat_run_once_where_no_others_are() {
    let engine = Arc::new(FakeEngine::default());
    let run = run_streams(engine, &with_points()[1..], "t").await.expect("a run");
    assert_eq!((run.queries.len(), run.stream_times.len()), (2, 1));
    assert!(run.total >= Duration::from_millis(2 * QUERY_MS));
    assert_eq!(run.io.requests, 2);
}

#[tokio::test]
async fn answers_that_only_one_engine_has_are_not_compared() {
    let run = async |points_before_scans, answer| {
        let engine = FakeEngine { points_before_scans, answer, ..Default::default() };
        run_streams(Arc::new(engine), &with_points(), "t").await.expect("a run")
    };
    let (few, many) = (run(1, 1).await, run(5, 1).await);
    assert_eq!(many.compare(&few), Ok(()));
    assert_eq!(few.compare(&many), Ok(()));
    let difference = run(5, 2).await.compare(&few).expect_err("a difference");
    assert!(difference.detail.contains("expected (1), got (2)"), "{difference}");
    // The scan must have one answer.
    let mut none = run(1, 1).await;
    none.queries.retain(|query| query.repeats);
    assert!(none.compare(&few).expect_err("a difference").detail.contains("ran 0"));
}

#[tokio::test]
async fn a_failing_query_ends_the_run_and_says_which() {
    let engine = Arc::new(FakeEngine { fails_on: Some("l_returnflag"), ..Default::default() });
    let mut streams = streams();
    streams[1].start_delay = Duration::from_secs(3600);
    let start = Instant::now();
    let error = run_streams(Arc::clone(&engine) as _, &streams, "t").await.expect_err("an error");
    let text = error.to_string();
    for part in ["fake: query S-100 of stream 0 failed", "the disk is on fire", "FROM t"] {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
    // The stream that has not started yet is dropped, too, and with it its reference to the engine.
    while Arc::strong_count(&engine) > 1 {
        assert!(start.elapsed() < Duration::from_secs(60), "a stream is still there");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn answers_of_two_engines_are_compared_query_by_query() {
    let expected = run(FakeEngine { answer: 1, ..Default::default() }).await.expect("a run");
    let equal = run(FakeEngine { answer: 1, ..Default::default() }).await.expect("a run");
    let other = run(FakeEngine { answer: 2, ..Default::default() }).await.expect("a run");
    assert_eq!(equal.compare(&expected), Ok(()));
    let difference = other.compare(&expected).expect_err("a difference");
    assert!(difference.detail.contains("expected (1), got (2)"), "{difference}");
    assert!(difference.sql.contains("l_orderkey BETWEEN 1 AND 2"), "{difference}");
}

#[tokio::test]
async fn a_report_has_the_figures_of_the_run() {
    let run = run(FakeEngine::default()).await.expect("a run");
    let report = run.report(&standalone(), true).expect("a report");
    assert_eq!((report.engine.as_str(), report.bytes_read, report.io_requests), ("fake", 600, 6));
    assert_eq!(report.total_s, run.total.as_secs_f64());
    let times: f64 = run.stream_times.iter().map(Duration::as_secs_f64).sum();
    assert!((report.stream_avg_s - times / 3.0).abs() < 1e-12);
    let normalized = |query: &QueryReport| query.latency_s / query.standalone_s;
    let sum: f64 = report.queries.iter().map(normalized).sum();
    assert!((report.normalized_latency_avg - sum / 6.0).abs() < 1e-12);
    assert!(report.normalized_latency_avg >= (4.0 + 2.0) / 2.0);

    let error = run.report(&Standalone::new(), true).expect_err("no standalone times");
    assert!(error.to_string().contains("F-10"), "{error}");
}

fn query_report(kind: Kind, number: u32, latency_s: f64, standalone_s: f64) -> QueryReport {
    let percent = query(kind, number).percent;
    QueryReport { kind, percent, stream: 3, start_s: 0.0, latency_s, standalone_s }
}

fn report() -> EngineReport {
    EngineReport {
        engine: "relevance".to_string(),
        total_s: 4.0,
        stream_avg_s: 3.0,
        normalized_latency_avg: 1.5,
        bytes_read: 7,
        io_requests: 2,
        cpu_s: 4.0,
        cpu_use: 0.5,
        answers_equal: true,
        memory_peak_bytes: None,
        queries: vec![
            query_report(Kind::Slow, 100, 9.0, 3.0),
            query_report(Kind::Fast, 1, 2.0, 1.0),
            query_report(Kind::Fast, 1, 6.0, 1.0),
        ],
        reads: Vec::new(),
    }
}

#[test]
fn kinds_are_averaged_as_in_a_hand_made_example() {
    let kinds = report().kinds();
    let keys: Vec<_> = kinds.keys().map(|(kind, percent)| (*kind, percent.get())).collect();
    assert_eq!(keys, [(Kind::Fast, 1), (Kind::Slow, 100)]);
    let fast = kinds.values().next().expect("F-01");
    assert_eq!((fast.count, fast.standalone_s), (2, 1.0));
    assert_eq!((fast.latency_avg_s, fast.latency_stddev_s), (4.0, 2.0));
    assert_eq!(fast.normalized_latency_avg, 4.0);
    assert_eq!((fast.latency_p95_s, fast.latency_p99_s), (6.0, 6.0));
    let slow = kinds.values().last().expect("S-100");
    assert_eq!((slow.latency_stddev_s, slow.normalized_latency_avg), (0.0, 3.0));
    assert!((report().query_avg_s() - 17.0 / 3.0).abs() < 1e-12);
}

#[test]
fn a_percentile_is_the_value_that_so_many_do_not_exceed() {
    let queries: Vec<_> =
        (1..=200).rev().map(|n| query_report(Kind::Fast, 1, f64::from(n), 0.5)).collect();
    let kind = KindReport::of(&queries.iter().collect::<Vec<_>>());
    assert_eq!((kind.latency_p95_s, kind.latency_p99_s), (190.0, 198.0));
    assert_eq!(kind.normalized_latency_p99, 396.0);
    assert_eq!(KindReport::of(&[]).latency_p99_s, 0.0);
}

#[test]
fn the_json_has_the_promised_names() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("out.json");
    coscan_bench::metrics::write_json(&path, &[report()]).expect("written");
    let text = std::fs::read_to_string(&path).expect("read");
    let json: serde_json::Value = serde_json::from_str(&text).expect("json");
    let engine = &json[0];
    assert_eq!(engine["engine"], "relevance");
    assert_eq!(engine["answers_equal"], true);
    assert_eq!(engine["bytes_read"], 7);
    assert_eq!(engine["io_requests"], 2);
    for name in ["total_s", "stream_avg_s", "normalized_latency_avg", "cpu_s"] {
        assert!(engine[name].is_f64(), "{name}");
    }
    let query = &engine["queries"][0];
    assert_eq!((&query["kind"], &query["percent"]), (&"S".into(), &100.into()));
    assert_eq!((&query["stream"], &query["latency_s"]), (&3.into(), &9.0.into()));
    assert_eq!(query["standalone_s"], 3.0);
    let back: Vec<EngineReport> = serde_json::from_str(&text).expect("what was written");
    assert_eq!(back, [report()]);
}
