//! Kills of a process that works with a database on a real disk, at every step by its name: what was acknowledged is there
//! when the database is opened again, and of what was not only whole transactions that were being committed.
//!
//! The process is this test binary, started again ([`child`]). Threads of it commit random transactions ([`writers`]), while
//! another one writes checkpoints and states. At the chosen step ([`steps`]) it stops in all of its threads and asks for the
//! kill, so that nothing happens between the step and its end.
//!
//! A killed process keeps what it wrote: it is in the page cache, whether it was synced or not. So these tests cannot see a
//! sync that is missing; the simulated disk is for that (`crashes.rs`). What they see is the order of what is done: what was
//! acknowledged before it was written, published before it was whole, or removed while it was needed.

mod check;
mod child;
mod disk;
mod maintainer;
mod process;
mod steps;
mod writers;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use coscan_core::SplitMix64;

use check::{check, copy};
use process::Case;
use writers::Progress;

/// Databases for each step, unless the variable says otherwise. A round takes about seven seconds on two processors.
const ROUNDS: u64 = 1;
const ROUNDS_VARIABLE: &str = "COSCAN_KILLS";

/// How often a process is killed at a step of a database: at the first time, the second one, and later ones.
const KILLS: u64 = 6;

/// Where the databases are, unless the default is to be taken: in memory if possible, since real syncs take most of the time
/// and change nothing.
const DIRECTORY_VARIABLE: &str = "COSCAN_KILLS_DIRECTORY";

/// A directory that is removed, unless the test fails.
struct TestDirectory(PathBuf);

impl TestDirectory {
    fn new(name: &str) -> Self {
        let shared = Path::new("/dev/shm");
        let root = match std::env::var_os(DIRECTORY_VARIABLE) {
            Some(root) => root.into(),
            None if shared.is_dir() => shared.to_path_buf(),
            None => env!("CARGO_TARGET_TMPDIR").into(),
        };
        let path = root.join(format!("coscan-kills-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the database stays in {}", self.0.display());
        } else {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }
}

fn rounds() -> u64 {
    let from_variable = std::env::var(ROUNDS_VARIABLE).ok();
    from_variable.and_then(|text| text.parse().ok()).unwrap_or(ROUNDS)
}

/// Kills one process after another at a step of the same database, which the next one finds as the kill has left it.
/// `reached` is how often a process that is not killed comes to the step.
fn kill_at(step: &str, reached: u64, seed: u64) {
    let directory = TestDirectory::new(&seed.to_string());
    let database = directory.0.join("database");
    let mut random = SplitMix64(seed);
    let mut done = Progress::default().acknowledged;
    for kill in 1..=KILLS {
        let nth = match kill {
            1 | 2 => kill,
            _ if reached > 2 => 3 + random.below(reached - 2),
            _ => 1 + random.below(reached),
        };
        let case = Case { directory: &database, seed, kill, done, step: Some((step, nth)) };
        let ended = case.run();
        // A later time may not come, but the first one always does.
        assert!(ended.is_killed || nth > 1, "{case}: the step was not reached");
        // The check changes the database, and the next process is to find what the kill has left.
        let copied = directory.0.join("copy");
        copy(&database, &copied);
        done = check(&case, &copied, &ended);
        fs::remove_dir_all(&copied).unwrap();
    }
}

#[test]
fn a_process_that_is_killed_at_any_step_loses_nothing_that_was_acknowledged() {
    let directory = TestDirectory::new("counts");
    let (seed, done) = (u64::MAX, Progress::default().acknowledged);
    let case = Case { directory: &directory.0, seed, kill: 0, done, step: None };
    let ended = case.run();
    assert_eq!(check(&case, &directory.0, &ended), ended.progress.acknowledged);
    let steps = steps::all();
    let missing: Vec<_> = steps.iter().filter(|step| !ended.counts.contains_key(*step)).collect();
    assert!(missing.is_empty(), "no process ever comes to these steps: {missing:?}");

    let cases = steps.len() as u64 * rounds();
    let next = AtomicU64::new(0);
    let worker = || {
        loop {
            let case = next.fetch_add(1, Ordering::Relaxed);
            if case >= cases {
                return;
            }
            let step = &steps[(case % steps.len() as u64) as usize];
            kill_at(step, ended.counts[step], case);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(worker);
        }
    });
}

#[test]
#[ignore = "it is the process that the test above kills"]
fn process() {
    child::run();
}
