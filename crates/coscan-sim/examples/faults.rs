//! Looks for broken rules in cases by their numbers: `cargo run --release -p coscan-sim --example faults -- --seeds
//! FIRST..END`, all policies. It ends at the first one found, with the smallest case in which it is still broken.
//! `--clusters FIRST..END` does so in clusters whose machines crash, start and are cut off, and counts how often they
//! read each page.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // An example may use threads and print.

use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use coscan_sim::faults::{broken, broken_cluster, read_too_often};

/// The problem in the case of a seed, if there is one.
type Broken = fn(u64) -> Option<String>;

fn seeds() -> Option<(Broken, Range<u64>)> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [option, range] = words.as_slice() else { return None };
    let (first, end) = range.split_once("..")?;
    let broken: Broken = match option.as_str() {
        "--seeds" => broken,
        "--clusters" => |seed| broken_cluster(seed).or_else(|| read_too_often(seed)),
        _ => return None,
    };
    Some((broken, first.parse().ok()?..end.parse().ok()?))
}

fn main() -> ExitCode {
    let Some((broken, seeds)) = seeds() else {
        eprintln!("write --seeds or --clusters, and FIRST..END, such as --seeds 10000..50000");
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
