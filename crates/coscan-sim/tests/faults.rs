//! Ten thousand small workloads, each under every policy, with everything going wrong that may: no rule is ever broken.
//! And a run follows from its seed.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::sync::atomic::{AtomicU64, Ordering};

use coscan_core::PolicyKind;
use coscan_sim::faults::random_case;
use coscan_sim::{End, Options};

const SEEDS: u64 = 10_000;

/// What is broken in the case of a seed, and the smallest case in which something is.
fn broken(seed: u64, policy: PolicyKind) -> Option<String> {
    let case = random_case(seed);
    let violation = case.run(policy).err()?;
    let small = case.shrink(policy);
    let still = small.run(policy).unwrap_err();
    Some(format!("case {seed} under {policy}: {violation}\nsmallest: {still}\n{small:#?}"))
}

/// Every policy, and in turn one with other switches than usual.
fn policies(seed: u64) -> impl Iterator<Item = PolicyKind> {
    let switched = PolicyKind::variants().count() - PolicyKind::ALL.len();
    let turn = PolicyKind::ALL.len() + seed as usize % switched;
    PolicyKind::ALL.into_iter().chain(PolicyKind::variants().nth(turn))
}

#[test]
fn no_rule_is_broken_whatever_goes_wrong() {
    let next = AtomicU64::new(0);
    let first_broken = || {
        let seeds = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        let mut cases = seeds.take_while(|&seed| seed < SEEDS);
        cases.find_map(|seed| policies(seed).find_map(|policy| broken(seed, policy)))
    };
    let found: Vec<_> = std::thread::scope(|scope| {
        let workers = [scope.spawn(first_broken), scope.spawn(first_broken)];
        workers.into_iter().filter_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..200 {
        let case = random_case(seed);
        for policy in PolicyKind::variants() {
            let mut case = case.clone();
            case.options = Options { timeline: true, ..case.options };
            let once = || case.run(policy).unwrap();
            assert_eq!(once(), once(), "case {seed} under {policy}");
        }
    }
}

#[test]
fn faults_of_every_kind_happen() {
    let ends: Vec<_> = (0..300)
        .flat_map(|seed| random_case(seed).run(PolicyKind::Relevance).unwrap().queries)
        .map(|query| query.end)
        .collect();
    for end in [End::Done, End::Failed, End::Cancelled, End::Refused] {
        assert!(ends.contains(&end), "no query ended as {end:?}");
    }
}
