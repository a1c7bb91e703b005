//! Commits of one changed row each, every one synced: how many a second, and how long one takes.
//!
//! `cargo bench -p coscan-database`. The database is in a temporary directory (`TMPDIR`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use coscan_database::wal::{LocalDisk, LogOptions};
use coscan_database::{DataFile, Database, TableId, ValueFormat, put_number};

const ROWS: u64 = 10_000_000;
const SECONDS: u64 = 5;

fn format() -> ValueFormat<u64> {
    ValueFormat { encode: |value, out| put_number(out, *value), decode: |reader| reader.number() }
}

fn main() {
    let directory = std::env::temp_dir().join(format!("coscan-commits-{}", std::process::id()));
    for threads in [1, 8, 64] {
        let root = directory.join(threads.to_string());
        std::fs::create_dir_all(&root).expect("a temporary directory");
        let disk = Arc::new(LocalDisk::open(&root).expect("a disk"));
        let database = Database::open(disk.clone(), LogOptions::default(), format());
        let database = database.expect("an empty database");
        let mut load = database.begin();
        let table = load.create_table("t", *b"").expect("a new table");
        let file = DataFile::new("file", ROWS);
        load.add_file(table, database.new_file(), file).expect("a table");
        load.commit().expect("a commit");
        measure(&database, table, threads);
        drop(database);
        let started = Instant::now();
        let database = Database::open(disk, LogOptions::default(), format()).expect("the database");
        let commits = database.begin().lsn().0;
        let seconds = started.elapsed().as_secs_f64();
        println!("  opened again in {seconds:.2} s, {:.0} records/s", commits as f64 / seconds);
    }
    std::fs::remove_dir_all(directory).expect("the temporary directory");
}

fn measure(database: &Database<u64>, table: TableId, threads: u64) {
    let started = Instant::now();
    let until = started + Duration::from_secs(SECONDS);
    let times: Vec<Vec<Duration>> = std::thread::scope(|scope| {
        let threads = (0..threads).map(|thread| {
            scope.spawn(move || {
                let (mut times, mut number) = (Vec::new(), thread);
                while Instant::now() < until {
                    let began = Instant::now();
                    let mut transaction = database.begin();
                    let version = transaction.version(table).expect("the table");
                    // Every thread has rows of its own, spread over the file.
                    let row =
                        version.row(number * 7919 % ROWS / threads_max() * threads_max() + thread);
                    let row = row.expect("a row of the file");
                    transaction.update(table, row, [(3, number)]).expect("the row");
                    transaction.commit().expect("no conflict");
                    times.push(began.elapsed());
                    number += 64;
                }
                times
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread")).collect()
    });
    let seconds = started.elapsed().as_secs_f64();
    let mut times: Vec<_> = times.into_iter().flatten().collect();
    times.sort_unstable();
    let percentile = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!(
        "{threads:2} threads: {:6.0} commits/s, median {:.2} ms, 99th percentile {:.2} ms",
        times.len() as f64 / seconds,
        percentile(50),
        percentile(99),
    );
}

/// The most threads that are measured.
fn threads_max() -> u64 {
    64
}
