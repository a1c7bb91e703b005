//! Searches for broken rules, and errors of workload files.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use coscan_sim::Spec;

/// The seeds of the long searches: those below `COSCAN_SIM_SEEDS`, or below a number that every change can afford.
#[allow(clippy::disallowed_methods, reason = "a test takes no arguments")]
pub(crate) fn seeds(usual: u64) -> Range<u64> {
    let from_variable = std::env::var("COSCAN_SIM_SEEDS").ok();
    0..from_variable.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Asserts that no seed breaks a rule, or prints what is found, lowest seeds first. Two threads search.
#[track_caller]
#[allow(clippy::disallowed_methods, reason = "each run is on one thread")]
pub(crate) fn assert_none_broken(seeds: Range<u64>, broken: fn(u64) -> Option<String>) {
    let next = AtomicU64::new(seeds.start);
    let first_broken = || {
        let seeds = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)))
            .take_while(|&seed| seed < seeds.end);
        seeds.into_iter().find_map(broken)
    };
    let found: Vec<String> = std::thread::scope(|scope| {
        let workers = [scope.spawn(first_broken), scope.spawn(first_broken)];
        workers.into_iter().filter_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The error of a file with a line replaced.
pub(crate) fn error(file: &str, line: &str, instead: &str) -> String {
    assert!(file.contains(line), "{line} is in the file");
    Spec::parse(&file.replacen(line, instead, 1)).unwrap_err().to_string()
}

#[track_caller]
pub(crate) fn assert_says(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "{error}\ndoes not say {part}");
    }
}
