//! A query that scans a table several times shares with itself, and never waits for resources that it holds itself.

use std::path::Path;
use std::time::Duration;

use coscan_runtime::core::PolicyKind;
use coscan_runtime::{BufferManager, Options};
use datafusion::prelude::SessionContext;

use crate::support::{create_ordered, manager, plain, run, shared};

const ROWS: i64 = 4600;

/// Queries that each read columns `id`, `key` and `value` of the whole table at least once, and nothing else.
const QUERIES: [(&str, &str); 6] = [
    (
        "a self-join",
        "SELECT count(*), sum(a.value + b.key) FROM numbers a JOIN numbers b ON a.id = b.id + 1",
    ),
    (
        "both ends of a self-join",
        "SELECT a.id, b.value, a.key FROM numbers a FULL JOIN numbers b ON a.id = b.id + 100 \
         ORDER BY a.id, b.value",
    ),
    (
        "a common table expression",
        "WITH c AS (SELECT key, max(id) AS id, sum(value) AS total FROM numbers GROUP BY key) \
         SELECT x.key, x.id, y.total, z.total FROM c x JOIN c y ON x.key = y.key + 1 \
         JOIN c z ON z.key = y.key + 1 ORDER BY x.key",
    ),
    (
        "a correlated subquery",
        "SELECT count(*), sum(id) FROM numbers o \
         WHERE value > (SELECT avg(value) FROM numbers i WHERE i.key = o.key)",
    ),
    (
        "a union",
        "SELECT id, value FROM numbers WHERE key = 3 \
         UNION ALL SELECT id, value FROM numbers WHERE id % 2 = 0 \
         UNION ALL SELECT key, value FROM numbers ORDER BY 1, 2",
    ),
    (
        "orders and none",
        "SELECT a.id, a.key, b.value FROM (SELECT * FROM numbers ORDER BY id) a \
         JOIN numbers b ON a.id = b.id \
         WHERE a.key IN (SELECT key FROM numbers WHERE value < 100) ORDER BY a.id",
    ),
];

async fn create_table(context: &SessionContext, directory: &Path) {
    create_ordered(context, "numbers", "id", &directory.join("numbers.parquet")).await;
}

/// Runs all queries with hash joins and with merge joins, and returns the bytes that the manager read for each of them.
async fn check(directory: &Path, new_manager: impl Fn() -> BufferManager) -> Vec<u64> {
    let mut bytes = Vec::new();
    for prefer_hash_join in [true, false] {
        for (what, sql) in QUERIES {
            let manager = new_manager();
            let (context, reference) = (shared(&manager), plain());
            for context in [&context, &reference] {
                create_table(context, directory).await;
                let option = "datafusion.optimizer.prefer_hash_join";
                run(context, &format!("SET {option} = {prefer_hash_join}")).await;
            }
            let expected = run(&reference, sql).await;
            assert!(!expected.is_empty(), "{what}");
            let rows = tokio::time::timeout(Duration::from_secs(60), run(&context, sql)).await;
            let rows =
                rows.unwrap_or_else(|_| panic!("{what} does not end: {:?}", manager.report()));
            assert_eq!(rows, expected, "{what}");
            bytes.push(manager.report().bytes_read);
            crate::support::assert_all_frees(&manager).await;
        }
    }
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_query_reads_no_page_twice() {
    let data = crate::support::numbers_directory(ROWS);
    let large = || manager(PolicyKind::Relevance);
    let once = large();
    let context = shared(&once);
    create_table(&context, data.path()).await;
    run(&context, "SELECT sum(id), sum(key), sum(value) FROM numbers").await;
    let once = once.report().bytes_read;
    for (bytes, (what, _)) in check(data.path(), large).await.into_iter().zip(QUERIES.repeat(2)) {
        assert!(bytes <= once, "{what}: {bytes} bytes for {once}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_pool_of_two_chunks_is_enough_under_every_policy() {
    let data = crate::support::numbers_directory(ROWS);
    let context = shared(&manager(PolicyKind::Relevance));
    create_table(&context, data.path()).await;
    let pool_bytes = 2 * crate::support::chunk_bytes_max(&context).await;
    for policy in PolicyKind::ALL {
        // The twelve sorts of a query reserve 10 MB each.
        let options = Options::with_pool_bytes(pool_bytes, 256 << 20).policy(policy);
        check(data.path(), || BufferManager::new(options.clone()).unwrap()).await;
    }
}
