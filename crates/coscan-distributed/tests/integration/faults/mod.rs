//! Faults of workers at each point of a query: the answer is right, or an error says what has happened, and afterwards no
//! worker holds anything.

mod busy;
mod channels;
mod clients;
mod cluster;
mod proxy;
mod threads;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow::datatypes::DataType;
use coscan_distributed::WorkerLost;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::time::timeout;

use self::channels::Point;
use self::cluster::{Fault, FaultyCluster};
use crate::data::{partition_joins, set, sorted_rows, tpch_session};

/// Both sides of the join are shuffled.
const QUERY: &str = "SELECT o_orderpriority, l_returnflag, count(*), sum(l_quantity) FROM orders, lineitem \
                     WHERE o_orderkey = l_orderkey GROUP BY 1, 2";

/// A query or its clean-up that takes longer hangs.
const HANGS: Duration = Duration::from_secs(600);

async fn right_rows() -> Vec<Vec<String>> {
    let plain = tpch_session(4, None).await;
    sorted_rows(&plain.sql(QUERY).await.unwrap().collect().await.unwrap())
}

/// `blocks(x)` is x. Each of its first `calls` keeps its thread for some time. With the number of calls.
fn blocks(calls: usize, time: Duration) -> (ScalarUDF, Arc<AtomicUsize>) {
    let counted = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&counted);
    let call = move |arguments: &[ColumnarValue]| {
        if counter.fetch_add(1, Ordering::Relaxed) < calls {
            std::thread::sleep(time);
        }
        Ok(arguments[0].clone())
    };
    let number = DataType::Int64;
    let signature = vec![number.clone()];
    (create_udf("blocks", signature, number, Volatility::Volatile, Arc::new(call)), counted)
}

/// Runs a query of which a worker fails at some point. Returns whether the point was passed.
async fn check(point: Option<Point>, place: usize, fault: Fault, right: &[Vec<String>]) -> bool {
    let cluster = FaultyCluster::start().await;
    partition_joins(&cluster.session).await;
    set(&cluster.session, "datafusion.execution.batch_size = 500").await;
    cluster.arm(point, place, fault);
    let case = format!("{fault:?} at {point:?}, {place}");
    let started = Instant::now();
    let outcome = timeout(HANGS, cluster.query(QUERY)).await;
    let outcome = outcome.unwrap_or_else(|_| panic!("{case}: the query hangs"));
    let ended = Instant::now();
    let ending = match outcome {
        Ok(rows) => {
            assert_eq!(sorted_rows(&rows), right, "{case}");
            "right".to_owned()
        }
        Err(error) => {
            let text = error.to_string();
            let is_clear = match fault {
                Fault::Refuse | Fault::Store => text.contains("on purpose"),
                Fault::Kill | Fault::Stop | Fault::Cut => WorkerLost::is(&error),
            };
            assert!(is_clear, "{case}: {text}");
            text
        }
    };
    let freed = timeout(HANGS, cluster.hold_nothing()).await;
    assert!(freed.is_ok(), "{case}: workers hold {:?}", cluster.held());
    println!("{case}: {:.1?}, freed after {:.1?}: {ending}", ended - started, ended.elapsed());
    cluster.heal();
    // Whoever is left goes on.
    let rows = timeout(HANGS, cluster.query(QUERY)).await.expect("the next query hangs");
    assert_eq!(sorted_rows(&rows.unwrap()), right, "after {case}");
    cluster.has_failed()
}

async fn check_all(fault: Fault) {
    let right = right_rows().await;
    // A worker that stops is noticed by its silence, which takes seconds.
    let places = if fault == Fault::Stop { 1 } else { 2 };
    for point in Point::ALL {
        for place in 0..places {
            assert!(check(Some(point), place, fault, &right).await, "{point:?} is passed");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_that_is_killed() {
    check_all(Fault::Kill).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_that_stops() {
    check_all(Fault::Stop).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_whose_connections_are_cut() {
    check_all(Fault::Cut).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_that_refuses() {
    check_all(Fault::Refuse).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_whose_store_fails() {
    check_all(Fault::Store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn faults_at_random_points() {
    let right = right_rows().await;
    for seed in 0..20 {
        let mut random = SmallRng::seed_from_u64(seed);
        let fault = Fault::ALL[random.random_range(0..Fault::ALL.len())];
        check(None, random.random_range(0..200), fault, &right).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn explain_analyze_ends_without_the_metrics_of_a_task() {
    let cluster = FaultyCluster::start().await;
    let sql = format!("EXPLAIN ANALYZE {QUERY}");
    for fault in [Fault::Refuse, Fault::Cut] {
        cluster.arm(Some(Point::Metrics), 0, fault);
        let analyzed = timeout(HANGS, cluster.query(&sql)).await;
        let analyzed = sorted_rows(&analyzed.expect("it waits for metrics").unwrap());
        assert!(analyzed[0][1].contains("TaskScan"), "{analyzed:?}");
        assert!(cluster.has_failed());
    }
}
