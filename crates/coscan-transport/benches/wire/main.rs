//! The cost of pages on their way from server to server, beside a bare TLS stream of the same library between the same
//! two processes.
//!
//! `cargo bench -p coscan-transport --bench wire` runs them in turn over loopback, for pages of three sizes. The bare
//! stream carries the same number of bytes in large writes, and drops what it reads. A second run keeps the last 128
//! MiB, since pages are kept. The server reads tables whose pages are all in the pool of another one: it asks for them
//! chunk by chunk, takes them into its own pool, opens and decodes them. Then it reads them from its own pool, which
//! gives the cost of decoding alone. A line for each has the medians, and those of the ratios to the bare stream of the
//! same turn: throughput, and processor time of both processes together. `way` is the cost of the way: pages, less the
//! cost of the same pages from the server's own pool.
//!
//! `-- --turns N` sets the number of turns. `--hosts ASKER,OWNER --owner-in 'ip netns exec NAME'` runs the processes at
//! two ends of a link: see `link.sh`. Linux only: processor time is read from `/proc`.
#![allow(clippy::unwrap_used, missing_docs)]

mod bare;
mod owner;
mod processor_time;
mod servers;
mod tables;

use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::bare::Received;
use crate::owner::Owner;
use crate::servers::Asker;

/// The allocator of `coscan serve`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const PAGE_BYTES: [usize; 3] = [64 << 10, 256 << 10, 1 << 20];

const STREAMS: [&str; 5] = ["bare", "bare, kept", "pages", "own pool", "way"];

/// Bytes of each run, or a little more.
const RUN_BYTES: u64 = 1 << 30;

/// The arguments of the benchmark.
struct Arguments {
    turns: usize,
    asker_host: String,
    owner_host: String,
    /// The command that runs the owner's process.
    owner_in: Vec<String>,
}

/// The measurements of a run.
#[derive(Clone, Copy, Debug)]
struct Run {
    bytes: u64,
    time: Duration,
    /// The processor time of both processes.
    processor_time: Duration,
}

impl Run {
    fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.time.as_secs_f64()
    }

    /// The run less the cost of the same number of bytes in another run.
    fn without(&self, other: &Self) -> Self {
        let part = self.bytes as f64 / other.bytes as f64;
        let time = self.time.saturating_sub(other.time.mul_f64(part));
        let processor_time = self.processor_time.saturating_sub(other.processor_time.mul_f64(part));
        Self { bytes: self.bytes, time, processor_time }
    }

    fn processor_seconds_per_gigabyte(&self) -> f64 {
        self.processor_time.as_secs_f64() / (self.bytes as f64 / 1e9)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let [role, directory, host] = arguments.as_slice()
        && role == owner::ROLE
    {
        return runtime.block_on(owner::serve(directory.as_ref(), host));
    }
    let arguments = Arguments::parse(arguments);
    println!("pages      stream       MB/s  s/GB   ratios to bare");
    PAGE_BYTES.iter().for_each(|&bytes| runtime.block_on(compare(&arguments, bytes)));
}

impl Arguments {
    fn parse(words: Vec<String>) -> Self {
        let host = || "127.0.0.1".to_owned();
        let (asker_host, owner_host) = (host(), host());
        let mut arguments = Self { turns: 7, asker_host, owner_host, owner_in: Vec::new() };
        let mut words = words.into_iter().filter(|word| word != "--bench");
        while let Some(option) = words.next() {
            let value = words.next().unwrap_or_else(|| panic!("{option} needs a value"));
            match option.as_str() {
                "--turns" => arguments.turns = value.parse().unwrap(),
                "--owner-in" => arguments.owner_in = value.split(' ').map(str::to_owned).collect(),
                "--hosts" => {
                    let (asker, owner) = value.split_once(',').unwrap();
                    (arguments.asker_host, arguments.owner_host) = (asker.into(), owner.into());
                }
                _ => panic!("{option} is unknown"),
            }
        }
        arguments
    }
}

async fn compare(arguments: &Arguments, page_bytes: usize) {
    let directory = TempDir::new().unwrap();
    tables::write(directory.path(), page_bytes);
    owner::write_keys(directory.path());
    let owner = Owner::start(directory.path(), arguments);
    let asker = Asker::join(
        directory.path(),
        &arguments.asker_host,
        &owner.address,
        tables::options(page_bytes),
    )
    .await;
    let mut runs: [Vec<Run>; STREAMS.len()] = Default::default();
    for turn in 0..=arguments.turns {
        let bare = |received| bare::receive(directory.path(), &owner.bare, RUN_BYTES, received);
        let dropped = measured(&owner, bare(Received::Dropped)).await;
        let kept = measured(&owner, bare(Received::Kept)).await;
        let pages = measured(&owner, asker.read(RUN_BYTES)).await;
        let own = measured(&owner, asker.read_own(RUN_BYTES)).await;
        let of_turn = [dropped, kept, pages, own, pages.without(&own)];
        // The first turn is a warm-up.
        if turn > 0 {
            runs.iter_mut().zip(of_turn).for_each(|(runs, run)| runs.push(run));
        }
    }
    let size = format!("{} KiB", page_bytes >> 10);
    let [bare, ..] = &runs;
    for (name, runs) in STREAMS.iter().zip(&runs) {
        let beside = |what: fn(&Run) -> f64| {
            median(runs.iter().zip(bare).map(|(run, bare)| what(run) / what(bare)))
        };
        println!(
            "{size:<10} {name:<10} {:>6.0} {:>5.2}   {:.2}, {:.2}",
            median(runs.iter().map(Run::megabytes_per_second)),
            median(runs.iter().map(Run::processor_seconds_per_gigabyte)),
            beside(Run::megabytes_per_second),
            beside(Run::processor_seconds_per_gigabyte),
        );
    }
}

async fn measured(owner: &Owner, carried: impl Future<Output = u64>) -> Run {
    let processor_time = || {
        let of = processor_time::of_process;
        of(std::process::id()) + of(owner.process_id())
    };
    let (before, start) = (processor_time(), Instant::now());
    let bytes = carried.await;
    Run { bytes, time: start.elapsed(), processor_time: processor_time() - before }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
