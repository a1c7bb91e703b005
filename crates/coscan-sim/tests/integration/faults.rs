//! Ten thousand small workloads, the same in each run, and a thousand new ones, each under every policy, with faults of
//! all kinds: no rule is ever broken. A run also follows from its seed.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types)]

use std::io::Write as _;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use coscan_core::PolicyKind;
use coscan_sim::faults::{broken, random_case};
use coscan_sim::{End, Options};

/// The seeds of every run.
const SEEDS: Range<u64> = 0..10_000;

/// The number of seeds that no run before had.
const FRESH: u64 = 1_000;

/// The broken rules, lowest seeds first. Two threads search.
fn all_broken(seeds: Range<u64>) -> Vec<String> {
    let next = AtomicU64::new(seeds.start);
    let first_broken = || {
        let seeds = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)))
            .take_while(|&seed| seed < seeds.end);
        seeds.into_iter().find_map(broken)
    };
    std::thread::scope(|scope| {
        let workers = [scope.spawn(first_broken), scope.spawn(first_broken)];
        workers.into_iter().filter_map(|worker| worker.join().unwrap()).collect()
    })
}

#[test]
fn no_rule_is_broken_whatever_goes_wrong() {
    let found = all_broken(SEEDS);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The output bypasses the test runner, which hides the output of passing tests.
#[test]
fn no_rule_is_broken_in_cases_that_are_new() {
    let milliseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let first = SEEDS.end + milliseconds as u64;
    let seeds = first..first + FRESH;
    writeln!(std::io::stderr(), "fresh cases: --seeds {}..{}", seeds.start, seeds.end).unwrap();
    let found = all_broken(seeds);
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
