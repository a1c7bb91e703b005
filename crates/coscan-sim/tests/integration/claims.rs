//! The verdicts on the papers' claims, for averages over a few seeds. Read each changed verdict before you accept it
//! (`INSTA_UPDATE=always`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use coscan_core::PolicyKind;
use coscan_sim::claim::Claim;
use coscan_sim::experiment::{self, Prepared, Run};
use coscan_sim::{Options, Spec};

const SEEDS: std::ops::RangeInclusive<u64> = 1..=2;

/// The runs that the claims of an experiment need, by case and policy.
fn runs(spec: &Spec) -> BTreeMap<(&str, &str), Vec<Run>> {
    let mut needed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for claim in &spec.claims {
        for case in claim.cases_to_run() {
            needed.entry(case).or_default().extend(claim.policies());
        }
    }
    let mut runs: BTreeMap<_, Vec<Run>> = BTreeMap::new();
    for (name, policies) in needed {
        let case = spec.cases.iter().find(|case| case.name == name).unwrap();
        for seed in SEEDS {
            let prepared = Arc::new(Prepared::new(case, seed).unwrap());
            for &policy in &policies {
                let built = policy.parse::<PolicyKind>().unwrap().build();
                let run = prepared.run(built, Options::default()).unwrap();
                runs.entry((name, policy)).or_default().push(run);
            }
        }
    }
    runs
}

fn verdict(spec: &Spec, claim: &Claim, runs: &BTreeMap<(&str, &str), Vec<Run>>) -> String {
    let value = |run: &Run| match &claim.query {
        None => run.value(claim.metric),
        Some(label) => run.value_of(label, claim.metric),
    };
    let average = |case: &str, policy: &str| {
        let values: Vec<f64> = runs.get(&(case, policy))?.iter().filter_map(value).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let judgement = claim.judge(&spec.paper, average);
    assert!(
        judgement.comparisons.iter().all(|comparison| comparison.here.is_finite()),
        "{}",
        claim.text
    );
    format!("{:<7} {}", judgement.verdict.to_string(), claim.text)
}

/// The verdicts on all claims of the experiments whose names begin with one of these prefixes.
fn verdicts(prefixes: &[&str]) -> String {
    let mut text = String::new();
    for name in experiment::names().filter(|name| prefixes.iter().any(|p| name.starts_with(p))) {
        let spec = experiment::find(name).unwrap();
        let runs = runs(&spec);
        for claim in &spec.claims {
            writeln!(text, "{name}: {}", verdict(&spec, claim, &runs)).unwrap();
        }
    }
    text
}

// There are several tests, so that they run at the same time. Each change is tested with the claims of tables, those of figures
// and of TPC-H each week.

#[test]
#[ignore = "minutes of processor time: .ci/weekly"]
fn claims_of_cs04() {
    insta::assert_snapshot!(verdicts(&["cs04"]));
}

#[test]
fn claims_of_cs07_tables() {
    insta::assert_snapshot!(verdicts(&["cs07-example", "cs07-table"]));
}

#[test]
#[ignore = "minutes of processor time: .ci/weekly"]
fn claims_of_cs07_figures() {
    insta::assert_snapshot!(verdicts(&["cs07-figure"]));
}

#[test]
fn claims_of_cs11_tables() {
    insta::assert_snapshot!(verdicts(&["cs11-table"]));
}

#[test]
#[ignore = "minutes of processor time: .ci/weekly"]
fn claims_of_cs11_figures() {
    insta::assert_snapshot!(verdicts(&["cs11-figure6"]));
}

#[test]
#[ignore = "minutes of processor time: .ci/weekly"]
fn claims_of_cs11_tpch() {
    insta::assert_snapshot!(verdicts(&["cs11-figure7"]));
}
