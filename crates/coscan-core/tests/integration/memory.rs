//! A chunk takes few bytes of memory, however many scans there are.

use coscan_core::*;

const CHUNKS: u64 = 200_000;
const SCANS: usize = 64;
const BYTES_PER_CHUNK_MAX: f64 = 120.0;

#[test]
fn a_chunk_of_a_table_that_64_scans_read_takes_120_bytes_at_most() {
    let mut layout = Layout::builder(1);
    for _ in 0..CHUNKS {
        let page = layout.add_page(GroupIndex(0), 1);
        layout.add_chunk(1, vec![vec![page]]);
    }
    let config = Config { pool_bytes: CHUNKS, ..Config::default() };
    let mut manager = ActiveBufferManager::new(config, PolicyKind::default().build());
    let (table, _) = manager.register_layout(&layout.build(), DeviceId(0));
    let spec = ScanSpec {
        table,
        groups: vec![GroupIndex(0)],
        chunks: std::iter::once(ChunkIndex(0)..ChunkIndex(CHUNKS as u32)).collect(),
        order: Order::Any,
        workers: 1,
        weight: 1,
        pages: None,
        computation: None,
    };
    for _ in 0..SCANS {
        let scan = manager.start_scan(Time(0), &spec).unwrap();
        manager.request_chunk(Time(0), scan, WorkerIndex(0)).unwrap();
    }
    // A quarter of the table is handed out, so all that is kept of a chunk is in use.
    let mut delivered = 0;
    while let Some(action) = manager.poll_action() {
        match action {
            Action::Load { load, pages, .. } => {
                pages.iter().for_each(|&page| manager.page_loaded(Time(0), load, page));
            }
            Action::Deliver { scan, worker, .. } if delivered < CHUNKS / 4 => {
                delivered += 1;
                manager.request_chunk(Time(0), scan, worker).unwrap();
            }
            _ => {}
        }
    }
    let bytes = manager.state().memory_bytes(table) as f64 / CHUNKS as f64;
    assert!(bytes <= BYTES_PER_CHUNK_MAX, "{bytes:.1} bytes for each chunk");
}
