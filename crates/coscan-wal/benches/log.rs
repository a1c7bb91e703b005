//! The cost of the log on this machine's disk: commits per second of 64 threads with records of 200 bytes, and the time in
//! which a gigabyte of records is replayed, each beside the least that the disk needs.
//!
//! `cargo bench -p coscan-wal` runs it in the directory for temporary files, `TMPDIR=DIRECTORY` elsewhere (half a minute,
//! three gigabytes). The disk must be idle.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed benchmark")]
#![allow(clippy::disallowed_types, reason = "a benchmark measures time")]

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use coscan_wal::*;

const PAYLOAD: [u8; 200] = [7; 200];
const THREADS: usize = 64;
const TIME: Duration = Duration::from_secs(3);
const GIGABYTE: u64 = 1_000_000_000;

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let alone = plain_syncs(directory.path());
    println!("a write of 200 bytes and a sync, one after another:  {alone:>9.0} per second");
    for threads in [1, THREADS] {
        let (commits, syncs) = commits(directory.path(), threads);
        println!(
            "commits of {threads:>2} threads:{commits:>41.0} per second, {:.1} times the first, {:.1} in a group",
            commits / alone,
            commits / syncs,
        );
    }
    for bytes in [200, 4_000, 1_000_000] {
        replay(bytes);
    }
}

/// What the disk does without a log: each write is synced, in a file that is preallocated.
fn plain_syncs(directory: &Path) -> f64 {
    let disk = LocalDisk::open(directory).unwrap();
    let file = disk.create("plain").unwrap();
    file.preallocate(64 << 20).unwrap();
    file.sync().unwrap();
    let begin = Instant::now();
    let mut writes = 0;
    while begin.elapsed() < TIME {
        file.write_at(&PAYLOAD, writes * 200).unwrap();
        file.sync().unwrap();
        writes += 1;
    }
    writes as f64 / begin.elapsed().as_secs_f64()
}

/// Commits and groups per second.
fn commits(directory: &Path, threads: usize) -> (f64, f64) {
    let disk = LocalDisk::open(directory.join(format!("commits-{threads}"))).unwrap();
    let (log, _) = Log::open(Arc::new(disk), LogOptions::default()).unwrap();
    let log = GroupCommit::new(log);
    let (commits, groups) = (AtomicU64::new(0), AtomicU64::new(0));
    let begin = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while begin.elapsed() < TIME {
                    log.make_room().unwrap();
                    let lsn = log.submit(PAYLOAD).unwrap();
                    log.wait(lsn).unwrap();
                    commits.fetch_add(1, Ordering::Relaxed);
                    // Exactly one record of a group is the last one that is durable then.
                    if log.durable() == lsn {
                        groups.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let seconds = begin.elapsed().as_secs_f64();
    log.close().unwrap();
    (commits.into_inner() as f64 / seconds, groups.into_inner() as f64 / seconds)
}

/// Replays a gigabyte of records of one size, from the page cache.
fn replay(bytes: usize) {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(LocalDisk::open(directory.path()).unwrap());
    let (mut log, _) = Log::open(disk.clone(), LogOptions::default()).unwrap();
    let group = vec![vec![7; bytes]; (10_000_000 / bytes).max(1)];
    let begin = Instant::now();
    while log.durable().0 * bytes as u64 + 1 < GIGABYTE {
        log.append_all(&group).unwrap();
    }
    let written = begin.elapsed();
    drop(log);
    let begin = Instant::now();
    let (_log, recovery) = Log::open(disk, LogOptions::default()).unwrap();
    let opened = begin.elapsed();
    let begin = Instant::now();
    let mut sum = 0;
    recovery
        .for_each(recovery.first(), |record| {
            sum += record.payload.len() as u64;
            Ok::<(), LogError>(())
        })
        .unwrap();
    let replayed = begin.elapsed();
    assert!(sum >= GIGABYTE - bytes as u64);
    println!(
        "a gigabyte in records of {bytes:>7} bytes: appended in {:.2} s, opened in {:.3} s, replayed in {:.2} s; \
         reading its files alone takes {:.2} s",
        written.as_secs_f64(),
        opened.as_secs_f64(),
        replayed.as_secs_f64(),
        plain_read(&directory.path().join("wal")).as_secs_f64(),
    );
}

fn plain_read(directory: &Path) -> Duration {
    let begin = Instant::now();
    let mut buffer = vec![0; 1 << 20];
    for entry in std::fs::read_dir(directory).unwrap() {
        let mut file = File::open(entry.unwrap().path()).unwrap();
        while file.read(&mut buffer).unwrap() > 0 {}
    }
    begin.elapsed()
}
