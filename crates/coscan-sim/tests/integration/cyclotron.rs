//! The Data Cyclotron in virtual time: runs that can be worked out by hand, blocked queries, large rings, verdicts.

use std::fmt::Write;

use coscan_sim::cyclotron::{
    Cyclotron, CyclotronMetric, CyclotronSpec, Ownership, find, names, run_cyclotron,
};

fn case(experiment: &str, name: &str) -> Cyclotron {
    let spec = find(experiment).unwrap().unwrap();
    spec.cases.into_iter().find(|case| case.name == name).unwrap().setup
}

/// A query alone on a ring of four nodes, all fragments owned by the first. A fragment takes a second on a link, and
/// half a second on the disk.
fn alone() -> Cyclotron {
    let mut setup = case("dc-table5.3", "S2");
    setup.switches = vec![4];
    setup.ownership = Ownership::First(1);
    setup.link_bytes_per_second = setup.queries.fragment_bytes;
    setup.disk_bytes_per_second = 2 * setup.queries.fragment_bytes;
    setup.latency_ns = 0;
    setup.queries.count = 1;
    setup.queries.select_ns = 0;
    setup.queries.operator_ns = 0;
    setup
}

#[test]
fn a_query_alone_takes_what_disk_and_links_take() {
    let mut setup = alone();
    // The first picker of the first node has it: its own disk reads 22 fragments.
    let outcome = run_cyclotron(&setup, 1);
    assert_eq!((outcome.reads, outcome.taken), (22, 22));
    assert_eq!(outcome.response_s(None), 11.0);
    // The run with five operators one after the other at the end, if all columns come before.
    setup.queries.operator_ns = 1_000_000_000;
    let seconds = run_cyclotron(&setup, 1).response_s(None);
    assert!((12.0..=16.0).contains(&seconds), "{seconds}");
}

#[test]
fn nodes_share_what_goes_round() {
    let mut setup = alone();
    setup.queries.count = 4;
    setup.queries.columns = 11; // All want the same.
    let outcome = run_cyclotron(&setup, 1);
    assert_eq!((outcome.reads, outcome.taken), (22, 88));
}

#[test]
fn fewer_eligible_requests_take_longer_and_none_is_lost() {
    let mut setup = alone();
    setup.queries.eligible = 1;
    let one_by_one = run_cyclotron(&setup, 1);
    assert_eq!(one_by_one.taken, 22);
    assert!(one_by_one.response_s(None) >= 11.0);
}

#[test]
fn queries_block_each_other_where_the_thesis_says_so() {
    let blocks = |name| run_cyclotron(&case("dc-figure5.9", name), 1).blocked.is_some();
    assert!(blocks("S4 × 3") && blocks("S6 × 2"));
    let mut one = case("dc-figure5.9", "S6 × 1");
    one.queries.count = 64;
    assert!(run_cyclotron(&one, 1).blocked.is_none());
}

#[test]
fn a_ring_of_256_nodes_delivers_all_that_is_asked_for() {
    let setup = case("dc-ring-sizes", "256 nodes");
    let outcome = run_cyclotron(&setup, 1);
    assert_eq!(outcome.queries.len(), setup.queries.count);
    // A fragment makes at most a lap for a node that takes it.
    let hops = CyclotronMetric::HopsPerTake.value(&setup, &outcome).unwrap();
    assert!(hops < 256.0, "{hops} hops for a delivered fragment");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let mut setup = case("dc-table5.3", "S6");
    setup.queries.count = 64;
    assert_eq!(run_cyclotron(&setup, 7), run_cyclotron(&setup, 7));
    assert_ne!(run_cyclotron(&setup, 7), run_cyclotron(&setup, 8));
}

#[test]
fn all_files_are_right_and_errors_name_the_place() {
    for name in names() {
        assert_eq!(find(name).unwrap().unwrap().name, name);
    }
    assert!(find("dc-table9.9").is_none());
    let text = coscan_sim::cyclotron::file("dc-ring-sizes").unwrap();
    let error = CyclotronSpec::parse(&text.replace("buffers = 64", "buffers = 8")).unwrap_err();
    assert!(error.to_string().contains("case.16 nodes.buffers"), "{error}");
    let error = CyclotronSpec::parse(&text.replace("pickers", "picker")).unwrap_err();
    assert!(error.to_string().contains("picker"), "{error}");
}

#[test]
fn verdicts() {
    let mut text = String::new();
    for name in ["dc-table5.3", "dc-figure5.9"] {
        let spec = find(name).unwrap().unwrap();
        let results = spec.run(1);
        for claim in &spec.claims {
            let verdict = spec.judge(claim, &results).verdict.to_string();
            writeln!(text, "{verdict:<7} {}: {}", claim.cases.join(", "), claim.text).unwrap();
        }
    }
    insta::assert_snapshot!("claims_of_dc", text);
}
