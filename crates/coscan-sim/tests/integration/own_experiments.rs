//! Our own experiments: workloads with some scans in order, and short queries beside long ones.

use std::sync::Arc;

use coscan_core::PolicyKind;
use coscan_sim::experiment::{self, Prepared, Run};
use coscan_sim::{Metric, Options, Spec};

/// The runs of a case with the first seed, one per policy.
fn runs<const COUNT: usize>(experiment: &str, case: &str, policies: [&str; COUNT]) -> [Run; COUNT] {
    let spec = experiment::find(experiment).unwrap();
    let case = spec.cases.iter().find(|known| known.name == case).unwrap();
    let prepared = Arc::new(Prepared::new(case, 1).unwrap());
    policies.map(|policy| {
        let policy = policy.parse::<PolicyKind>().unwrap();
        prepared.run(policy.build(), Options::default()).unwrap()
    })
}

fn run(experiment: &str, case: &str, policy: &str) -> Run {
    let [run] = runs(experiment, case, [policy]);
    run
}

#[test]
fn policies_that_serve_in_order_ignore_the_requested_order() {
    for policy in ["normal", "predictive"] {
        let [none, half, all] =
            ["0", "50", "100"].map(|case| run("half-in-order", case, policy).outcome);
        assert_eq!((&none.deliveries, none.bytes_read), (&half.deliveries, half.bytes_read));
        assert_eq!((&none.deliveries, none.bytes_read), (&all.deliveries, all.bytes_read));
    }
}

#[test]
fn bytes_are_counted_for_the_queries_they_were_read_for() {
    let half = run("half-in-order-table2", "50", "relevance");
    let [in_order, any_order] =
        [Metric::BytesInOrder, Metric::BytesAnyOrder].map(|metric| half.value(metric).unwrap());
    assert_eq!(in_order + any_order, half.outcome.bytes_read as f64);
    assert!(in_order > 0.0 && any_order > 0.0);
    assert_eq!(half.value(Metric::BytesMin), None, "half of it was in any order");
    let all = run("half-in-order-table2", "100", "relevance");
    assert_eq!(all.value(Metric::BytesAnyOrder), None);
    assert!(all.value(Metric::BytesToMin).unwrap() >= 1.0);
}

#[test]
fn predictive_comes_close_to_the_best_victims() {
    let runs = runs("in-order-places", "16", ["normal", "predictive"]);
    let [normal, predictive] = runs.map(|run| run.value(Metric::BytesToMin).unwrap());
    assert!(normal > 1.6 && (1.0..1.35).contains(&predictive), "{normal} {predictive}");
}

#[test]
fn short_queries_do_not_wait_behind_long_ones() {
    let [normal, relevance] = runs("short-under-long", "", ["normal", "relevance"]);
    for kind in ["Q6-1", "Q1-1", "point", "points"] {
        let p99 = |run: &Run| run.value_of(kind, Metric::NormalizedLatencyP99).unwrap();
        assert!(p99(&relevance) < p99(&normal) / 3.0, "{kind}");
    }
    // Queries that did not run are left out.
    assert!(normal.outcome.queries.iter().any(|query| !query.has_run()));
}

#[test]
fn a_small_hot_table_stays_beside_long_scans() {
    let spec = experiment::find("small-hot-table").unwrap();
    let screens = (1..=3).map(|seed| {
        let prepared = Arc::new(Prepared::new(&spec.cases[0], seed).unwrap());
        let run = prepared.run(PolicyKind::Relevance.build(), Options::default()).unwrap();
        run.value(Metric::NormalizedLatencyShort).unwrap()
    });
    let screen = screens.sum::<f64>() / 3.0;
    assert!(screen < 0.7, "most of it is in the pool: {screen}");
}

/// Everything is in the pool soon, and loads take next to no time.
const SMALL_QUERIES: &str = r#"
name = "small"
title = "small queries, everything in the pool"

[machine]
cores = 2
active_workers = 6
pool = "100 %"

[machine.disk.seek-transfer]
seek = "10 us"
bandwidth = "20 GB/s"

[table.lineitem]
rows = 900_000
chunks = 7
columns = { a = 8, b = 8 }

[table.customer]
rows = 22_500
chunks = 1
columns = { a = 8 }

[query.groups]
table = "lineitem"
cost = "90 ms"
workers = 2

[query.sum]
table = "lineitem"
columns = ["a"]
cost = "30 ms"
workers = 2

[query.count]
table = "customer"
cost = "2 ms"

[streams.all]
count = 12
draw = 30
from = ["groups", "sum", "count"]
"#;

#[test]
fn no_query_is_passed_indefinitely_where_loads_take_no_time() {
    let spec = Spec::parse(SMALL_QUERIES).unwrap();
    let prepared = Arc::new(Prepared::new(&spec.cases[0], 1).unwrap());
    let run = |policy: PolicyKind| prepared.run(policy.build(), Options::default()).unwrap();
    // The first shares processors equally.
    let [equal, relevance] = [PolicyKind::Normal, PolicyKind::Relevance].map(run);
    for kind in ["groups", "sum", "count"] {
        let p99 = |run: &Run| run.value_of(kind, Metric::NormalizedLatencyP99).unwrap();
        let (equal, relevance) = (p99(&equal), p99(&relevance));
        assert!(relevance < 2.5 * equal, "{kind}: {relevance} beside {equal}");
    }
}
