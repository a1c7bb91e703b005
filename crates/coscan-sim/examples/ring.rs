//! Compares the gains of servers that share their reads, as a table in Markdown: `cargo run --release -p coscan-sim
//! --example ring -- --nodes 4 --pools 50,100,200,400 --seeds 2`.
//!
//! `--nodes` is the number of servers, `--pools` the megabytes of each one's pool, `--seeds` the number of runs to
//! average, `--streams` the streams of four queries on each server, and `--share` the rows to show, of Off, Reads,
//! Needs, All and One. One is a single server that has the resources of all of them. `wall` is the time that a run
//! takes here.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // An example may read its arguments and print.

use std::error::Error;
use std::time::Instant;

use coscan_core::PolicyKind;
use coscan_ring::{Config, Sharing};
use coscan_sim::{Cluster, Disk, Machine, Network, Options, SharedFiles, Spec, run_cluster};

/// The parameters that are varied.
struct Arguments {
    nodes: usize,
    pools_mb: Vec<u64>,
    seeds: u64,
    streams: usize,
    shares: Vec<String>,
}

impl Arguments {
    fn parse() -> Result<Self, Box<dyn Error>> {
        let mut arguments = Self {
            nodes: 4,
            pools_mb: vec![50, 100, 200, 400],
            seeds: 1,
            streams: 4,
            shares: ["Off", "Reads", "Needs", "All", "One"].map(str::to_owned).to_vec(),
        };
        let mut words = std::env::args().skip(1);
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| format!("{name} has no value"))?;
            match name.as_str() {
                "--nodes" => arguments.nodes = value.parse()?,
                "--pools" => {
                    let pools = value.split(',').map(str::parse);
                    arguments.pools_mb = pools.collect::<Result<_, _>>()?;
                }
                "--seeds" => arguments.seeds = value.parse()?,
                "--streams" => arguments.streams = value.parse()?,
                "--share" => arguments.shares = value.split(',').map(str::to_owned).collect(),
                _ => {
                    let known = "known are --nodes, --pools, --seeds, --streams and --share";
                    return Err(format!("{name}: {known}").into());
                }
            }
        }
        Ok(arguments)
    }
}

/// Averages over the seeds.
#[derive(Default)]
struct Means {
    store_gb: f64,
    peer_gb: f64,
    seconds: f64,
    messages: f64,
    wall_s: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse()?;
    println!("| pool of each | share | from the store | from peers | time | messages | wall |");
    println!("|--:|---|--:|--:|--:|--:|--:|");
    for &pool_mb in &arguments.pools_mb {
        for name in &arguments.shares {
            let (nodes, sharing) = match name.as_str() {
                "Off" => (arguments.nodes, Sharing::Off),
                "Reads" => (arguments.nodes, Sharing::Reads),
                "Needs" => (arguments.nodes, Sharing::Needs),
                "All" => (arguments.nodes, Sharing::All),
                "One" => (1, Sharing::Off),
                _ => return Err(format!("--share {name}: see the example's first lines").into()),
            };
            let Means { store_gb, peer_gb, seconds, messages, wall_s } =
                means(&arguments, nodes, pool_mb * 1_000_000, sharing)?;
            println!(
                "| {pool_mb} MB | {name} | {store_gb:.2} GB | {peer_gb:.2} GB | {seconds:.0} s | {messages:.0} | {wall_s:.1} s |"
            );
        }
    }
    Ok(())
}

/// Runs the workload for [`Arguments::nodes`] servers on this number of servers that have as much together.
fn means(
    arguments: &Arguments,
    nodes: usize,
    pool_bytes: u64,
    sharing: Sharing,
) -> Result<Means, Box<dyn Error>> {
    let streams = format!("count = {}", arguments.streams * arguments.nodes);
    let spec = Spec::parse(&include_str!("ring.toml").replace("count = 16", &streams))?;
    let case = &spec.cases[0];
    let times = arguments.nodes / nodes;
    let cluster = Cluster {
        nodes,
        machine: several(&case.machine, times),
        network: Network { bytes_per_second: 125_000_000, latency_ns: 200_000, racks: None },
        config: Config { sharing, ..Config::default() },
        files: SharedFiles::default(),
        incidents: Vec::new(),
        notice_ns: 0,
    };
    let mut means = Means::default();
    for seed in 1..=arguments.seeds {
        let mut workload = case.workload(seed);
        workload.pool_bytes = pool_bytes * times as u64;
        let started = Instant::now();
        let outcome = run_cluster(&workload, &cluster, PolicyKind::Relevance, Options::default())?;
        let share = |total: f64| total / arguments.seeds as f64;
        means.store_gb += share(outcome.store_bytes as f64 / 1e9);
        means.peer_gb += share(outcome.peer_bytes as f64 / 1e9);
        means.seconds += share(outcome.total_ns as f64 / 1e9);
        means.wall_s += share(started.elapsed().as_secs_f64());
        means.messages += share(outcome.messages.values().sum::<u64>() as f64);
    }
    Ok(means)
}

/// A machine with the processors and the links of several.
fn several(machine: &Machine, times: usize) -> Machine {
    let mut machine = machine.clone();
    let more = u32::try_from(times).expect("few");
    machine.cores *= more;
    if let Disk::ObjectStore {
        bytes_per_second_per_request, bytes_per_second, requests_max, ..
    } = &mut machine.disk
    {
        *bytes_per_second_per_request *= times as u64;
        *bytes_per_second *= times as u64;
        *requests_max *= more;
    }
    machine
}
