//! A mount that hangs: its reads block their threads in the kernel, where nothing cancels them. Other devices are not
//! affected, and the mount is used again when it returns.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{CHUNK_ROWS, LARGE, are_rows, file_bytes, ids, manager_with};
use coscan_runtime::storage::stores::list_files;
use coscan_runtime::storage::table::{FileOptions, ParquetTable, TableFile};
use coscan_runtime::{BufferManager, Options, SharedTable};
use parquet::basic::Compression;
use tempfile::TempDir;
use tokio::task::{JoinSet, yield_now};

const ROWS: u64 = 4 * CHUNK_ROWS;

/// The bound on the threads of a device, and the few of its directories.
const THREADS_MAX: usize = 32 + 2;
const HUNG_READS: usize = 2 * THREADS_MAX;

/// Files on one device. While it hangs, opening one of them blocks.
struct Mount {
    directory: TempDir,
}

impl Mount {
    fn new(parent: &str, files: usize) -> Self {
        let directory = TempDir::new_in(parent).unwrap();
        let bytes = file_bytes(ROWS, Compression::UNCOMPRESSED);
        for file in 0..files {
            fs::write(directory.path().join(format!("{file}.parquet")), &bytes).unwrap();
        }
        Self { directory }
    }

    fn device(&self) -> u64 {
        fs::metadata(self.directory.path()).unwrap().dev()
    }

    fn files(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.directory.path()).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|end| end == "parquet")).collect()
    }

    /// Puts a pipe in the place of each file. It opens when something writes to it.
    fn hang(&self) {
        for file in self.files() {
            fs::rename(&file, file.with_extension("real")).unwrap();
            assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
        }
    }

    /// Opens the pipes. Returns the files that keep them open.
    fn come_back(&self) -> Vec<File> {
        let come_back = |file: PathBuf| {
            let pipe = file.with_extension("pipe");
            fs::rename(&file, &pipe).unwrap();
            fs::rename(file.with_extension("real"), &file).unwrap();
            OpenOptions::new().read(true).write(true).open(pipe).unwrap()
        };
        self.files().into_iter().map(come_back).collect()
    }

    async fn open(&self, manager: &BufferManager) -> Vec<(SharedTable, TableFile)> {
        let location = self.directory.path().to_str().unwrap();
        let listing = list_files(manager.stores(), location).await.unwrap();
        let mut tables = Vec::new();
        for meta in listing.files {
            let (store, store_url) = (Arc::clone(&listing.store), listing.store_url.clone());
            let file = TableFile { store, store_url, meta };
            let options = FileOptions { chunk_rows: CHUNK_ROWS, ..FileOptions::default() };
            let files = manager.open_files([file.clone()], options).await.unwrap();
            let table = ParquetTable::of_files(files).unwrap();
            tables.push((manager.register(Arc::new(table)), file));
        }
        tables
    }
}

/// The threads of this process that wait for the other end of a pipe.
fn stuck_threads() -> usize {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let is_stuck = |thread: &Path| {
        let of_kernel = |name: &str| fs::read_to_string(thread.join(name)).unwrap_or_default();
        // openat(2) of the x86-64 and of the other ABIs. Opening a file, as tests beside this one do, never sleeps so.
        let (call, status) = (of_kernel("syscall"), of_kernel("status"));
        (call.starts_with("257 ") || call.starts_with("56 ")) && status.contains("State:\tS")
    };
    threads.filter(|thread| is_stuck(&thread.as_ref().unwrap().path())).count()
}

async fn read_all(manager: &BufferManager, table: &SharedTable) {
    let rows = ids(manager.scan(table, &[0], &[0..ROWS]).unwrap());
    assert!(are_rows(with_time(rows).await, 0..ROWS));
}

/// Waits for the result. Meanwhile time passes, which a paused clock does not let pass while threads are stuck.
async fn with_time<T>(work: impl Future<Output = T>) -> T {
    let tick = Duration::from_millis(1);
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            result = &mut work => return result,
            () = tokio::time::advance(tick) => std::thread::sleep(tick),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn other_devices_go_on_and_it_is_used_again_when_it_returns() {
    let (healthy, hung) = (Mount::new("/tmp", 2), Mount::new("/dev/shm", HUNG_READS));
    assert_ne!(healthy.device(), hung.device(), "the test needs two devices");
    let manager = manager_with(Options::with_pool_bytes(LARGE, LARGE));
    let first = healthy.open(&manager).await;
    let tables = hung.open(&manager).await;

    hung.hang();
    let mut reads = JoinSet::new();
    for (table, file) in &tables {
        let (file, manager, table) = (file.clone(), manager.clone(), table.clone());
        reads.spawn(async move { file.read(0..10).await.unwrap_err().to_string() });
        reads.spawn(async move {
            ids(manager.scan(&table, &[0], &[0..ROWS]).unwrap()).await.unwrap_err().to_string()
        });
    }
    while stuck_threads() < 32 {
        yield_now().await;
    }
    // An open table, one that is opened now, and again while more reads would block.
    read_all(&manager, &first[0].0).await;
    let second = with_time(healthy.open(&manager)).await;
    read_all(&manager, &second[1].0).await;
    assert!(stuck_threads() <= THREADS_MAX, "{} threads are stuck", stuck_threads());

    let mut errors = Vec::new();
    for _ in 0..600 {
        tokio::time::advance(Duration::from_millis(100)).await;
        while let Some(error) = reads.try_join_next() {
            errors.push(error.unwrap());
        }
    }
    assert_eq!(
        errors.len(),
        2 * HUNG_READS,
        "all fail within a minute, though all threads are stuck"
    );
    for error in &errors {
        assert!(
            error.contains("has not answered for") || error.contains("did not answer"),
            "{error}"
        );
    }
    assert!(stuck_threads() <= THREADS_MAX, "{} threads are stuck", stuck_threads());
    read_all(&manager, &first[1].0).await;

    let pipes = hung.come_back();
    while stuck_threads() > 0 {
        yield_now().await;
    }
    for (table, _) in &tables {
        read_all(&manager, table).await;
    }
    drop(pipes);
}
