//! Commits of one changed row each, every one synced: how many a second, and how long one takes. Then opening with a log of a
//! gigabyte.
//!
//! `cargo bench -p coscan-database`. The database is in a temporary directory (`TMPDIR`).

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coscan_database::wal::{LocalDisk, LogOptions};
use coscan_database::{DataFile, Database, TableId, ValueFormat, put_number};

const ROWS: u64 = 10_000_000;
const SECONDS: u64 = 5;
const ROWS_OF_TRANSACTION: u64 = 1000;

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
    open_with_log(&directory.join("opening"), 64 << 20);
    std::fs::remove_dir_all(directory).expect("the temporary directory");
}

/// Fills a log with transactions of some rows each, as statements make them, and opens the database.
fn open_with_log(root: &Path, bytes: u64) {
    std::fs::create_dir_all(root).expect("a temporary directory");
    let disk = Arc::new(LocalDisk::open(root).expect("a disk"));
    let open = || Database::open(disk.clone(), LogOptions::default(), format());
    let database = open().expect("an empty database");
    let mut load = database.begin();
    let table = load.create_table("t", *b"").expect("a new table");
    load.add_file(table, database.new_file(), DataFile::new("file", ROWS)).expect("a table");
    load.commit().expect("a commit");
    let (mut number, mut rows) = (0, 0);
    while database.replayed_bytes() < bytes {
        let mut transaction = database.begin();
        let version = transaction.version(table).expect("the table");
        for _ in 0..ROWS_OF_TRANSACTION {
            number += 1;
            let row = version.row(number * 7919 % ROWS).expect("a row of the file");
            match number % 8 {
                1 if number < ROWS => transaction.delete(table, row),
                0 | 1 => transaction.insert(table, vec![number; 16]),
                _ => transaction.update(table, row, [(3, number), (7, number)]),
            }
            .expect("a row");
            rows += 1;
        }
        transaction.commit().expect("no conflict");
    }
    drop(database);
    let started = Instant::now();
    let database = open().expect("the database");
    let seconds = started.elapsed().as_secs_f64();
    let bytes = database.replayed_bytes();
    println!(
        "opened with a log of {:.0} MB, {rows} changed rows, in {seconds:.1} s",
        bytes as f64 / 1e6
    );
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
