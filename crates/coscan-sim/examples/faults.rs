//! Looks for broken rules in cases by their numbers: `cargo run --release -p coscan-sim --example faults -- --seeds
//! FIRST..END`, all policies. It ends at the first one found, with the smallest case in which it is still broken.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // An example may use threads and print.

use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use coscan_sim::faults::broken;

fn seeds() -> Option<Range<u64>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [option, range] = words.as_slice() else { return None };
    let (first, end) = range.split_once("..")?;
    (option == "--seeds").then_some(first.parse().ok()?..end.parse().ok()?)
}

fn main() -> ExitCode {
    let Some(seeds) = seeds() else {
        eprintln!("write --seeds FIRST..END, such as --seeds 10000..50000");
        return ExitCode::FAILURE;
    };
    let (next, found) = (AtomicU64::new(seeds.start), AtomicBool::new(false));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !found.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    if let Some(what) = broken(seed) {
                        found.store(true, Ordering::Relaxed);
                        println!("{what}");
                    }
                }
            });
        }
    });
    if found.load(Ordering::Relaxed) {
        return ExitCode::FAILURE;
    }
    println!("{} cases, no rule broken", seeds.end.saturating_sub(seeds.start));
    ExitCode::SUCCESS
}
