//! Opening files: each footer is read once, tried again like pages, counted as it is read, and kept if another fails.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{CHUNK_ROWS, LARGE, file_bytes, in_time, manager_with};
use coscan_runtime::storage::table::{FileOptions, TableFile};
use coscan_runtime::{BufferManager, OpenError, Options, ScanError};
use coscan_testing::{Fate, Faults};
use futures::FutureExt;
use futures::future::join_all;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use parquet::basic::Compression;

const FILE_OPTIONS: FileOptions = FileOptions {
    chunk_rows: CHUNK_ROWS,
    layout: coscan_runtime::storage::table::PageLayout::Column,
    types: coscan_runtime::storage::table::ColumnTypes::USUAL,
};

/// The files of one store, and a count of its reads.
async fn files(
    count: usize,
    rows: u64,
    judge: impl Fn(usize) -> Fate + Send + Sync + 'static,
) -> (Vec<TableFile>, Arc<AtomicUsize>) {
    let memory = InMemory::new();
    let bytes = file_bytes(rows, Compression::UNCOMPRESSED);
    let mut metas = Vec::new();
    for file in 0..count {
        let path = Path::from(format!("{file}.parquet"));
        memory.put(&path, bytes.clone().into()).await.unwrap();
        metas.push(memory.head(&path).await.unwrap());
    }
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reads);
    let judge = move |_: &_| judge(counted.fetch_add(1, Ordering::SeqCst));
    let store = Faults::new(judge).around(Arc::new(memory));
    let file = |meta| TableFile {
        store: Arc::clone(&store),
        store_url: "memory:///".parse().unwrap(),
        meta,
    };
    (metas.into_iter().map(file).collect(), reads)
}

fn manager() -> BufferManager {
    manager_with(Options::with_pool_bytes(LARGE, LARGE))
}

#[tokio::test(start_paused = true)]
async fn those_who_open_a_file_at_once_read_it_once() {
    let (files, reads) = files(20, CHUNK_ROWS, |_| Fate::Answer).await;
    let gate = Faults::default();
    gate.close();
    let store = gate.around(Arc::clone(&files[0].store));
    let files: Vec<_> =
        files.into_iter().map(|file| TableFile { store: Arc::clone(&store), ..file }).collect();
    let manager = manager();
    let mut first = Box::pin(manager.open_files(files.clone(), FILE_OPTIONS));
    let others = [(); 3].map(|()| manager.open_files(files.clone(), FILE_OPTIONS));
    let mut others = Box::pin(join_all(others));
    assert!(first.as_mut().now_or_never().is_none());
    assert!(others.as_mut().now_or_never().is_none());
    drop(first); // The others go on.
    gate.open();
    let opened = in_time(others).await;
    assert_eq!(reads.load(Ordering::SeqCst), 20);
    let first = opened[0].as_ref().unwrap();
    for others in &opened {
        let others = others.as_ref().unwrap();
        assert!(first.iter().zip(others).all(|(a, b)| Arc::ptr_eq(a, b)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_footer_that_cannot_be_read_is_tried_again() {
    let (files, reads) =
        files(1, CHUNK_ROWS, |read| if read < 3 { Fate::Fail } else { Fate::Answer }).await;
    in_time(manager().open_files(files, FILE_OPTIONS)).await.unwrap();
    assert_eq!(reads.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn a_footer_that_never_comes_is_an_error() {
    let (files, _) = files(1, CHUNK_ROWS, |_| Fate::Hang).await;
    let error = in_time(manager().open_files(files, FILE_OPTIONS)).await.unwrap_err().to_string();
    assert!(error.contains("0.parquet") && error.contains("did not answer within 30s"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_was_read_before_a_file_failed_is_not_read_again() {
    let (mut files, reads) = files(100, CHUNK_ROWS, |_| Fate::Answer).await;
    let good = files[99].clone();
    files[99].meta.location = Path::from("missing.parquet");
    let manager = manager();
    in_time(manager.open_files(files.clone(), FILE_OPTIONS)).await.unwrap_err();
    let before = reads.load(Ordering::SeqCst);
    files[99] = good;
    let opened = in_time(manager.open_files(files, FILE_OPTIONS)).await.unwrap();
    assert_eq!(reads.load(Ordering::SeqCst), before + 1);
    drop(opened);
    // They were kept for this attempt only.
    assert!(manager.report().metadata_bytes > 0);
    let (other, _) = self::files(1, CHUNK_ROWS, |_| Fate::Answer).await;
    let kept = in_time(manager.open_files(other, FILE_OPTIONS)).await.unwrap();
    assert_eq!(manager.report().metadata_bytes, kept[0].memory_bytes());
}

#[tokio::test(start_paused = true)]
async fn footers_are_counted_as_they_are_read() {
    let (files, reads) = files(1_000, CHUNK_ROWS, |_| Fate::Answer).await;
    let one = in_time(manager().open_files([files[0].clone()], FILE_OPTIONS)).await.unwrap();
    let footer_bytes = one[0].memory_bytes();
    reads.store(0, Ordering::SeqCst);
    // There is memory for a tenth of them.
    let memory_bytes = 100 * footer_bytes;
    let options = Options { memory_bytes, ..Options::with_pool_bytes(1, 1) };
    let manager = manager_with(options);
    let error = in_time(manager.open_files(files, FILE_OPTIONS)).await.unwrap_err();
    assert!(matches!(error, OpenError::Memory(ScanError::Exhausted { .. })), "{error}");
    let reads = reads.load(Ordering::SeqCst);
    assert!(reads <= 200, "{reads} footers were read");
}

#[tokio::test(start_paused = true)]
async fn what_is_made_of_a_footer_later_is_counted() {
    let (files, _) = files(1, 100 * CHUNK_ROWS, |_| Fate::Answer).await;
    let manager = manager();
    let opened = in_time(manager.open_files(files, FILE_OPTIONS)).await.unwrap();
    let before = manager.report().metadata_bytes;
    opened[0].statistics(0).unwrap();
    let made = manager.report().metadata_bytes - before;
    assert!(made >= 100 * 2 * 8, "{made} bytes for least and largest values of 100 chunks");
}
