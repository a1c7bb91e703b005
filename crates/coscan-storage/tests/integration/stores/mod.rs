//! Stores: reads, counts, delays, faults and listings.

#![allow(clippy::single_range_in_vec_init, reason = "one range is what is meant")]

mod direct;
mod limited;
mod listing;
mod metered;
mod options;
mod registry;
mod s3;

use std::sync::Arc;

use bytes::Bytes;
use coscan_core::SplitMix64;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

/// Bytes that differ at every offset that a wrong read could take them from.
fn content(bytes: usize) -> Vec<u8> {
    let mut random = SplitMix64(1);
    (0..bytes).map(|_| random.next_u64() as u8).collect()
}

/// A store in memory with the given files.
async fn memory_with(files: &[(&str, Vec<u8>)]) -> Arc<dyn ObjectStore> {
    let store = InMemory::new();
    for (path, content) in files {
        store.put(&Path::from(*path), Bytes::from(content.clone()).into()).await.unwrap();
    }
    Arc::new(store)
}
