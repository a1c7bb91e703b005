//! The cost of the runtime itself: many scans of one table in memory, with enough memory and with too little.
//!
//! `cargo bench -p coscan-runtime --bench scans -- [SCANS]` prints a line for each case: the time of all scans
//! together, the 99.9th percentile and the longest time that dropping a batch took (it returns memory), and the number
//! of times that an operator that asked for memory was refused. Then one scan takes chunk by chunk. Its wait for each
//! is measured from its request to its rows, alone and beside one busy thread per processor. Compare two versions by
//! running both several times in turn.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow_array::{Int64Array, RecordBatch, StringArray};
use coscan_runtime::storage::table::ParquetTable;
use coscan_runtime::{BufferManager, Options, ScanRequest};
use coscan_testing::{parquet_file, table_in_memory};
use futures::StreamExt;
use parquet::file::properties::WriterProperties;

const ROW_GROUPS: i64 = 64;
const ROWS: i64 = 16_384;

/// The number of operators that take and return memory all the time.
const OPERATORS: usize = 8;

async fn table() -> Arc<ParquetTable> {
    let batch = |group: i64| {
        let ids = group * ROWS..(group + 1) * ROWS;
        let numbers =
            |factor: i64| Arc::new(ids.clone().map(|id| id * factor).collect::<Int64Array>());
        let texts: StringArray =
            ids.clone().map(|id| Some(format!("number {}", id % 1000))).collect();
        let columns: [(&str, Arc<dyn arrow_array::Array>); 4] =
            [("a", numbers(1)), ("b", numbers(7)), ("c", numbers(13)), ("d", Arc::new(texts))];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(ROWS as usize));
    let batches: Vec<_> = (0..ROW_GROUPS).map(batch).collect();
    table_in_memory(parquet_file(&batches, properties.build()), ROWS as u64).await
}

/// The measurements of one case.
struct Measured {
    all: Duration,
    drops: Vec<Duration>,
    refused: u64,
}

async fn measure(
    table: &Arc<ParquetTable>,
    options: Options,
    scans: usize,
    operators: usize,
) -> Measured {
    let manager = BufferManager::new(options).unwrap();
    let shared = manager.register(Arc::clone(table));
    let (is_over, refused) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let operators: Vec<_> = (0..operators)
        .map(|_| {
            let (memory, is_over, refused) =
                (manager.operator_memory(), Arc::clone(&is_over), Arc::clone(&refused));
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let taken = (0..16).filter(|_| memory.try_take(64 << 10)).count() as u64;
                    refused.fetch_add(16 - taken, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                    (0..taken).for_each(|_| memory.give(64 << 10));
                }
            })
        })
        .collect();
    let started = Instant::now();
    let running: Vec<_> = (0..scans)
        .map(|_| {
            let scan = manager
                .start_scan(&shared, ScanRequest::of_columns(&shared, vec![0, 1, 2, 3]))
                .unwrap();
            tokio::spawn(async move {
                let (mut stream, mut drops, mut rows) = (scan.worker(0), Vec::new(), 0);
                while let Some(batch) = stream.next().await {
                    let batch = batch.unwrap();
                    rows += batch.num_rows() as i64;
                    let dropped = Instant::now();
                    drop(batch);
                    drops.push(dropped.elapsed());
                }
                assert_eq!(rows, ROW_GROUPS * ROWS);
                drops
            })
        })
        .collect();
    let mut drops = Vec::new();
    for scan in running {
        drops.extend(scan.await.unwrap());
    }
    let all = started.elapsed();
    is_over.store(true, Ordering::Relaxed);
    for operator in operators {
        operator.await.unwrap();
    }
    drops.sort_unstable();
    Measured { all, drops, refused: refused.load(Ordering::Relaxed) }
}

/// The waits of one scan for its chunks, where the pool has room for one, so none is read before it is asked for.
async fn waits(table: &Arc<ParquetTable>, busy_threads: usize) -> Vec<Duration> {
    const SCANS: usize = 100;
    let pages = table.layout().page_bytes();
    // The pool holds two chunks, less a tenth.
    let pool_bytes = pages.iter().sum::<u64>() / ROW_GROUPS as u64 * 19 / 10;
    let manager = BufferManager::new(Options::with_pool_bytes(pool_bytes, 64 << 20)).unwrap();
    let shared = manager.register(Arc::clone(table));
    let is_over = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..busy_threads)
        .map(|_| {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || while !is_over.load(Ordering::Relaxed) {})
        })
        .collect();
    let waiting = tokio::spawn(async move {
        let mut waits = Vec::new();
        for _ in 0..SCANS {
            let request = ScanRequest::of_columns(&shared, vec![0, 1, 2, 3]);
            let mut worker = manager.start_scan(&shared, request).unwrap().worker(0);
            loop {
                let asked = Instant::now();
                let Some(batch) = worker.next().await else { break };
                batch.unwrap();
                waits.push(asked.elapsed());
            }
        }
        waits.sort_unstable();
        waits
    });
    let waits = waiting.await.unwrap();
    is_over.store(true, Ordering::Relaxed);
    busy.into_iter().for_each(|thread| thread.join().unwrap());
    waits
}

fn main() {
    let scans = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(64);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let table = table().await;
        let stored = table.layout().page_bytes().iter().sum::<u64>();
        let enough = || Options::with_pool_bytes(2 * stored, 1 << 30);
        let short = || Options { memory_timeout: Duration::from_secs(60), ..Options::with_pool_bytes(stored / 4, 12 << 20) };
        println!("{scans} scans of {ROW_GROUPS} chunks, {stored} bytes stored");
        for (name, options, operators) in [
            ("enough memory", enough(), 0),
            ("memory is short", short(), 0),
            ("memory is short, with operators", short(), OPERATORS),
        ] {
            for _ in 0..3 {
                let Measured { all, drops, refused } = measure(&table, options.clone(), scans, operators).await;
                let percentile = drops[drops.len() * 999 / 1000];
                println!(
                    "{name}: {:.3} s; drop of a batch: 99.9 % {:.1} us, longest {:.1} us; refused {refused}",
                    all.as_secs_f64(),
                    percentile.as_secs_f64() * 1e6,
                    drops[drops.len() - 1].as_secs_f64() * 1e6,
                );
            }
        }
        let processors = std::thread::available_parallelism().unwrap().get();
        for (name, busy_threads) in [("alone", 0), ("beside busy threads", processors)] {
            for _ in 0..3 {
                let waits = waits(&table, busy_threads).await;
                println!(
                    "one scan, {name}: waits for a chunk, median {:.1} us, 99.9 % {:.1} us",
                    waits[waits.len() / 2].as_secs_f64() * 1e6,
                    waits[waits.len() * 999 / 1000].as_secs_f64() * 1e6,
                );
            }
        }
    });
}
