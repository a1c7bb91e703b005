//! Batches of one decoded column share the buffers of its strings: these count once.

use crate::common::{CHUNK_ROWS, Fixture, LARGE, assert_free, in_time, manager_with};
use arrow_array::RecordBatch;
use coscan_runtime::Options;
use futures::TryStreamExt;
use futures::future::join_all;

#[tokio::test(start_paused = true)]
async fn strings_that_batches_share_count_once() {
    let fixture = Fixture::new(CHUNK_ROWS).await;
    let options = Options { batch_rows: 50, ..Options::with_pool_bytes(LARGE, LARGE) };
    let manager = manager_with(options);
    let table = manager.register(fixture.table().await);
    let strings = table.table().decoded_bytes_estimate(coscan_runtime::core::ChunkIndex(0), 2);
    for scans in [1, 2] {
        let streams: Vec<_> = (0..scans)
            .map(|_| manager.scan(&table, &[2], &[fixture.all_rows()]).unwrap().try_collect())
            .collect();
        let mut kept: Vec<Vec<RecordBatch>> =
            in_time(futures::future::try_join_all(streams)).await.unwrap();
        let decoded_bytes = manager.report().decoded_bytes;
        assert!((strings / 2..strings * 3 / 2).contains(&decoded_bytes), "{decoded_bytes}");
        // The last batch alone keeps what they share.
        let last = kept[0].pop();
        drop(kept);
        let decoded_bytes = manager.report().decoded_bytes;
        assert!((strings / 2..strings).contains(&decoded_bytes), "{decoded_bytes} of {strings}");
        drop(last);
        assert_free(&manager).await;
    }
}

#[tokio::test(start_paused = true)]
async fn strings_that_batches_share_are_charged_once_also_meanwhile() {
    let fixture = Fixture::new(CHUNK_ROWS).await;
    let options = Options { batch_rows: 50, ..Options::with_pool_bytes(LARGE, LARGE) };
    let manager = manager_with(options);
    let table = manager.register(fixture.table().await);
    let strings = table.table().decoded_bytes_estimate(coscan_runtime::core::ChunkIndex(0), 2);
    let streams = [0, 1].map(|_| manager.scan(&table, &[2], &[fixture.all_rows()]).unwrap());
    for result in in_time(join_all(streams.map(TryStreamExt::try_collect::<Vec<_>>))).await {
        result.unwrap();
    }
    let report = manager.report();
    assert!(report.held_bytes_max - report.pool_held_bytes <= strings + 1000, "{report:?}");
    assert_free(&manager).await;
}
