//! Several machines that share their reads: no rule is broken whatever fails, and they read less.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use coscan_core::{PageIndex, PolicyKind, Time};
use coscan_ring::{Config, Sharing};
use coscan_sim::faults::{broken_cluster, cluster_reads, random_cluster, read_too_often};
use coscan_sim::{
    Cluster, ClusterOutcome, End, Incident, Machine, Network, Options, SharedFiles, Spec, Workload,
    run_cluster,
};

use crate::support::{assert_none_broken, seeds};

#[test]
fn no_rule_is_broken_whatever_happens_to_machines() {
    assert_none_broken(seeds(600), broken_cluster);
}

#[test]
fn no_page_is_read_too_often_whatever_happens_to_machines() {
    assert_none_broken(seeds(600), read_too_often);
    let costly = (0..300).map(|seed| cluster_reads(seed).unwrap());
    let costly = costly.filter(|reads| reads.reads > reads.healthy).count();
    assert!(costly >= 20, "incidents cost nothing: {costly}");
}

/// Cases in which nothing is shared would find no violation.
#[test]
fn random_clusters_share_in_all_ways() {
    let (mut messages, mut mixed_loads) = (BTreeMap::<_, u64>::new(), 0);
    for seed in 0..300 {
        let outcome = random_cluster(seed).run(PolicyKind::Relevance).unwrap();
        mixed_loads += outcome.mixed_loads;
        for (name, count) in outcome.messages {
            *messages.entry(name).or_default() += count;
        }
    }
    for name in [
        "need",
        "remove_need",
        "end",
        "get",
        "cancel",
        "queued",
        "no room",
        "failed",
        "have",
        "evicted",
    ] {
        let count = messages.get(name).copied().unwrap_or(0);
        assert!(count >= 20, "{name}: {count} of {messages:?}");
    }
    assert!(mixed_loads >= 100, "{mixed_loads}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..100 {
        let cluster = random_cluster(seed);
        let once = || cluster.run(PolicyKind::Relevance).unwrap();
        assert_eq!(once(), once(), "cluster {seed}");
    }
}

/// The example's workload on a smaller table.
fn workload() -> (Workload, Machine) {
    let text = include_str!("../../examples/ring.toml");
    let spec = Spec::parse(&text.replace("60_000_000", "6_000_000")).unwrap();
    let case = &spec.cases[0];
    let workload = Workload { pool_bytes: 10_000_000, ..case.workload(1) };
    (workload, case.machine.clone())
}

/// A pool that is larger than the table.
const LARGE_POOL: u64 = 200_000_000;

fn run(nodes: usize, sharing: Sharing, incidents: Vec<(Time, Incident)>) -> ClusterOutcome {
    run_with(10_000_000, nodes, sharing, incidents)
}

fn run_with(
    pool_bytes: u64,
    nodes: usize,
    sharing: Sharing,
    incidents: Vec<(Time, Incident)>,
) -> ClusterOutcome {
    let (workload, machine) = workload();
    let workload = Workload { pool_bytes, ..workload };
    let cluster = Cluster {
        nodes,
        machine,
        network: Network { bytes_per_second: 125_000_000, latency_ns: 200_000, racks: None },
        config: Config { sharing, ..Config::default() },
        files: SharedFiles::default(),
        incidents,
        notice_ns: 1_000_000_000,
    };
    run_cluster(&workload, &cluster, PolicyKind::Relevance, Options::default()).unwrap()
}

#[test]
fn machines_that_share_read_less_from_the_store() {
    let outcomes = [Sharing::Off, Sharing::Reads, Sharing::Needs, Sharing::All]
        .map(|sharing| run(4, sharing, Vec::new()));
    let [off, reads, needs, all] = outcomes.map(|outcome| outcome.store_bytes);
    assert!(reads * 10 <= off * 8, "{reads} of {off} bytes");
    assert!(needs < reads && all < needs, "{reads}, {needs}, {all} bytes");
    assert!(all * 10 <= off * 4, "{all} of {off} bytes");
}

#[test]
fn a_machine_without_others_runs_as_if_there_were_no_ring() {
    let (workload, machine) = workload();
    let policy = PolicyKind::Relevance.build();
    let alone = coscan_sim::run(&workload, &machine, policy, Options::default()).unwrap();
    let outcome = run(1, Sharing::All, Vec::new());
    assert_eq!(outcome.machines, [alone]);
    assert_eq!(outcome.peer_bytes, 0);
    assert!(outcome.messages.is_empty(), "{:?}", outcome.messages);
}

/// The machines that are left read what the one that crashed owned, each page once for all of them.
#[test]
fn a_crash_costs_no_more_than_what_the_machine_had() {
    let healthy = run_with(LARGE_POOL, 4, Sharing::All, Vec::new());
    let (workload, _) = workload();
    let layout = &workload.tables[0].layout;
    let pages = (0..layout.page_count() as u32).map(PageIndex);
    let table_bytes: u64 = pages.map(|page| layout.bytes_of(page)).sum();
    assert_eq!(healthy.store_bytes, table_bytes, "each page is read once for all of them");
    let crash = (Time(1_000_000_000), Incident::Crash(1));
    let crashed = run_with(LARGE_POOL, 4, Sharing::All, vec![crash]);
    assert_eq!(crashed.machines.len(), 3);
    let queries = crashed.machines.iter().flat_map(|machine| &machine.queries);
    assert!(
        queries.clone().all(|query| query.end == End::Done),
        "{:?}",
        queries.collect::<Vec<_>>()
    );
    assert!(crashed.store_bytes * 2 <= healthy.store_bytes * 3, "{}", crashed.store_bytes);
}

/// A machine that joins takes over a share: what the others have in memory is not read again by all.
#[test]
fn a_machine_may_join() {
    let joined = run(4, Sharing::All, vec![(Time(1_000_000_000), Incident::Start(2))]);
    let off = run(4, Sharing::Off, vec![(Time(1_000_000_000), Incident::Start(2))]);
    assert_eq!(joined.machines.len(), 4);
    assert!(joined.store_bytes * 10 <= off.store_bytes * 5);
}
