//! Numbers of the papers that the simulator must reproduce: those of their worked examples, to the second, and
//! standalone latencies. Their claims about policies are in `claims.rs`.

#[path = "../../examples/reproduction/reuse.rs"]
mod reuse;

use std::collections::BTreeMap;
use std::sync::Arc;

use coscan_core::PolicyKind;
use coscan_sim::experiment::{self, Prepared, Run};
use coscan_sim::{Metric, Options};

fn run(experiment: &str, policy: PolicyKind, seed: u64) -> Run {
    let spec = experiment::find(experiment).unwrap();
    let prepared = Arc::new(Prepared::new(&spec.cases[0], seed).unwrap());
    prepared.run(policy.build(), Options::default()).unwrap()
}

#[test]
fn two_queries_over_different_pages_take_as_long_as_the_text_says() {
    let average = |policy| run("cs07-example", policy, 1).value(Metric::LatencyAvg).unwrap();
    assert_eq!(average(PolicyKind::Normal), 30.0);
    assert_eq!(average(PolicyKind::Elevator), 35.0);
    // The optimum is 25: a page for the long query is on its way when the short one registers.
    assert_eq!(average(PolicyKind::Relevance2007), 25.5);
}

#[test]
fn pages_in_the_pool_are_used_out_of_order_only() {
    let latencies = |policy| {
        let run = run("cs11-table3.1", policy, 1);
        ["Q1", "Q2"].map(|query| run.value_of(query, Metric::LatencyAvg).unwrap())
    };
    // The table says 40 and 20, but there are only 30 pages to read.
    assert_eq!(latencies(PolicyKind::Normal), [30.0, 20.0]);
    assert_eq!(latencies(PolicyKind::Relevance2007), [20.0, 6.0]);
}

#[test]
fn queries_run_alone_as_long_as_published() {
    let run = run("cs07-table2", PolicyKind::Normal, 1);
    for (query, seconds) in [("F-10", 2.06), ("F-50", 10.72), ("F-100", 20.37), ("S-100", 35.27)] {
        let ours = run.value_of(query, Metric::StandaloneAvg).unwrap();
        assert!(
            (0.9..=1.1).contains(&(ours / seconds)),
            "{query}: published {seconds}, here {ours}"
        );
    }
}

#[test]
fn dealt_queries_are_those_of_the_table() {
    let spec = experiment::find("cs07-table2").unwrap();
    let count = |seed| {
        let workload = spec.cases[0].workload(seed);
        assert!(workload.streams.iter().all(|stream| stream.queries.len() == 4));
        let mut counts = BTreeMap::new();
        for query in workload.streams.into_iter().flat_map(|stream| stream.queries) {
            *counts.entry(query.label).or_insert(0) += 1;
        }
        counts.into_iter().map(|(label, count)| format!("{label} {count}")).collect::<Vec<_>>()
    };
    let table = ["F-1 9", "F-10 7", "F-100 9", "F-50 6", "S-1 13", "S-10 6", "S-100 8", "S-50 6"];
    assert_eq!(count(1), table);
    assert_eq!(count(2), table);
}
