//! The effects of a user who sends very expensive statements over many connections: the throughput of another user's
//! queries compared with that alone, the latency of `SELECT 1` for an administrator, the time until a cancelled
//! statement ends, and the memory of the process.
//!
//! `cargo bench -p coscan-server --bench hostile -- --seconds 60`
#![allow(clippy::unwrap_used, dead_code)]

#[path = "../tests/hostile/statements.rs"]
mod statements;
#[path = "../tests/integration/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use futures::TryStreamExt;
use statements::statements;
use support::server::{Running, start_as};
use tokio_postgres::{Client, NoTls};

/// A query of the user who is disturbed.
const QUERY: &str = "SELECT word, count(*), sum(id) FROM numbers GROUP BY word";

/// The number of connections of that user.
const CLIENTS: usize = 4;

#[derive(Debug, Parser)]
struct Arguments {
    /// How long the attack lasts.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Connections of the hostile user.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// The server's memory, in MiB.
    #[arg(long, default_value_t = 1024)]
    memory: u64,
    /// Cargo passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Debug, Default)]
struct Seen {
    is_over: AtomicBool,
    queries: AtomicU64,
    statements: AtomicU64,
    looks: AtomicU64,
    /// The longest time, in microseconds.
    look: AtomicU64,
    cancel: AtomicU64,
}

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse().ok());
    kilobytes.unwrap_or(0_u64) >> 10
}

async fn work(running: Arc<Running>, seen: Arc<Seen>) {
    let bob = running.login("bob").await;
    while !seen.is_over.load(Ordering::Relaxed) {
        bob.simple_query(QUERY).await.unwrap();
        seen.queries.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reads a result and discards it.
async fn read(client: &Client, sql: &str) -> Result<(), tokio_postgres::Error> {
    let mut messages = std::pin::pin!(client.simple_query_raw(sql).await?);
    while messages.try_next().await?.is_some() {}
    Ok(())
}

/// Runs statements on connections. Half of them have a time limit. The other half cancel statements that take long.
async fn attack(running: Arc<Running>, seen: Arc<Seen>, number: usize) {
    let ann = running.login("ann").await;
    if number.is_multiple_of(2) {
        ann.batch_execute("SET statement_timeout = '2s'").await.unwrap();
    }
    let statements = statements();
    let mut at = number * 7;
    while !seen.is_over.load(Ordering::Relaxed) {
        let sql = &statements[at % statements.len()];
        at += 1;
        let mut answer = std::pin::pin!(read(&ann, sql));
        let late = tokio::select! {
            _ = &mut answer => false,
            () = tokio::time::sleep(Duration::from_secs(3)) => true,
        };
        if late {
            let began = Instant::now();
            ann.cancel_token().cancel_query(NoTls).await.ok();
            let _ = answer.await;
            seen.cancel.fetch_max(micros(began), Ordering::Relaxed);
        }
        assert!(!ann.is_closed(), "{sql:.200}");
        seen.statements.fetch_add(1, Ordering::Relaxed);
    }
}

async fn look(running: Arc<Running>, seen: Arc<Seen>) {
    let root = running.login("root").await;
    while !seen.is_over.load(Ordering::Relaxed) {
        let began = Instant::now();
        root.simple_query("SELECT 1").await.unwrap();
        seen.look.fetch_max(micros(began), Ordering::Relaxed);
        seen.looks.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

async fn run(arguments: Arguments) {
    let memory = arguments.memory << 20;
    let running = Arc::new(start_as(|config, _| config.memory.bytes = Some(memory)).await);
    let alone = Arc::new(Seen::default());
    let tasks: Vec<_> =
        (0..CLIENTS).map(|_| tokio::spawn(work(running.clone(), alone.clone()))).collect();
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(5)).await;
    alone.is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    let per_second = |seen: &Seen, began: Instant| {
        seen.queries.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
    };
    let alone = per_second(&alone, began);
    let before = peak_mib();
    let seen = Arc::new(Seen::default());
    let mut tasks = vec![tokio::spawn(look(running.clone(), seen.clone()))];
    for _ in 0..CLIENTS {
        tasks.push(tokio::spawn(work(running.clone(), seen.clone())));
    }
    for number in 0..arguments.connections {
        tasks.push(tokio::spawn(attack(running.clone(), seen.clone(), number)));
    }
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(arguments.seconds)).await;
    let beside = per_second(&seen, began);
    let seconds = |micros: &AtomicU64| micros.load(Ordering::Relaxed) as f64 / 1e6;
    println!("hostile statements sent        {}", seen.statements.load(Ordering::Relaxed));
    println!(
        "queries of another user, 1/s   {beside:.1}, alone {alone:.1}: {:.2} x",
        beside / alone
    );
    println!(
        "SELECT 1 of an administrator   {:.3} s at most of {}",
        seconds(&seen.look),
        seen.looks.load(Ordering::Relaxed)
    );
    println!("until a statement is cancelled {:.3} s at most", seconds(&seen.cancel));
    println!(
        "memory of the process          {} MiB, {before} before; the server's limit is {}",
        peak_mib(),
        arguments.memory
    );
    seen.is_over.store(true, Ordering::Relaxed);
    running.server.sql_service().queries().cancel_all();
    std::process::exit(0); // What does not end is not waited for.
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(run(Arguments::parse()));
}
