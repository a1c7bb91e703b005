//! What is known of a chunk takes few bytes, however many scans there are.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use coscan_core::*;

const CHUNKS: u64 = 200_000;
const SCANS: usize = 64;
const BYTES_PER_CHUNK_MAX: f64 = 100.0;

#[test]
fn a_chunk_of_a_table_that_64_scans_read_takes_100_bytes_at_most() {
    let mut layout = Layout::builder(1);
    for _ in 0..CHUNKS {
        let page = layout.add_page(GroupIndex(0), 1);
        layout.add_chunk(1, vec![vec![page]]);
    }
    let config = Config { pool_bytes: CHUNKS, ..Config::default() };
    let mut manager = ActiveBufferManager::new(config, PolicyKind::default().build());
    let table = manager.register_table(Arc::new(layout.build()));
    let mut rows = Vec::new();
    rows.push(0..CHUNKS);
    let spec = ScanSpec {
        table,
        groups: vec![GroupIndex(0)],
        rows,
        order: Order::Any,
        workers: 1,
        weight: 1,
    };
    for _ in 0..SCANS {
        manager.start_scan(Time(0), &spec).unwrap();
    }
    let bytes = manager.state().memory_bytes(table) as f64 / CHUNKS as f64;
    assert!(bytes <= BYTES_PER_CHUNK_MAX, "{bytes:.1} bytes for each chunk");
    assert!(
        bytes > 3.0 * SCANS as f64 / 8.0,
        "{bytes:.1} bytes cannot hold what each scan needs and has"
    );
}
