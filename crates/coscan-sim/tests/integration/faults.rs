//! Small workloads, two thousand that are the same in each run (`COSCAN_SIM_SEEDS=10000`: ten thousand) and three hundred new
//! ones, each under every policy, with faults of all kinds: no rule is ever broken. A run also follows from its seed.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types)]

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use coscan_core::PolicyKind;
use coscan_sim::faults::{broken, random_case};
use coscan_sim::{End, Options};

use crate::support::{assert_none_broken, seeds};

/// The number of seeds that no run before had.
const FRESH: u64 = 300;

#[test]
fn no_rule_is_broken_whatever_goes_wrong() {
    assert_none_broken(seeds(2_000), broken);
}

/// The output bypasses the test runner, which hides the output of passing tests.
#[test]
fn no_rule_is_broken_in_cases_that_are_new() {
    let milliseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let first = milliseconds as u64;
    let seeds = first..first + FRESH;
    writeln!(std::io::stderr(), "fresh cases: --seeds {}..{}", seeds.start, seeds.end).unwrap();
    assert_none_broken(seeds, broken);
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
