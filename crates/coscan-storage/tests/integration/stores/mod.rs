//! Stores: reads, counts, delays, faults and listings.

#![allow(clippy::single_range_in_vec_init, reason = "one range is what is meant")]

mod direct;
mod faulty;
mod limited;
mod listing;
mod metered;
mod options;
mod registry;
mod s3;
mod s3_server;

use std::sync::Arc;

use bytes::Bytes;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

/// Bytes that differ at every offset that a wrong read could take them from.
fn content(bytes: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    (0..bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[0]
        })
        .collect()
}

/// A store in memory with the given files.
async fn memory_with(files: &[(&str, Vec<u8>)]) -> Arc<dyn ObjectStore> {
    let store = InMemory::new();
    for (path, content) in files {
        store.put(&Path::from(*path), Bytes::from(content.clone()).into()).await.unwrap();
    }
    Arc::new(store)
}
