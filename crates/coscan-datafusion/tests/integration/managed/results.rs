//! Results of chunks are shared, but those of changed chunks are not.

use coscan_datafusion::SharedResults;

use super::Fixture;
use crate::support::{run, share_no_results};

#[tokio::test]
async fn queries_after_changes_share_what_did_not_change() {
    let fixture = Fixture::filled().await;
    let alone = fixture.session();
    share_no_results(&alone).await;
    let queries = [
        "SELECT key > 4, count(*), sum(id), min(text) FROM t GROUP BY key > 4 ORDER BY 1",
        "SELECT count(*), max(key) FROM t WHERE id >= 0 AND key < 100",
    ];
    for change in [
        "SELECT 1",
        "DELETE FROM t WHERE id = 17",
        "UPDATE t SET id = id + 1000000 WHERE id = 30000",
        "UPDATE t SET key = 50 WHERE id = 60000",
        "INSERT INTO t VALUES (5, 6, 'new')",
        "DELETE FROM t WHERE id < 40000",
    ] {
        fixture.run(change).await;
        for query in queries {
            let expected = run(&alone, query).await;
            for _ in 0..2 {
                assert_eq!(fixture.run(query).await, expected, "after {change}: {query}");
            }
        }
    }
    let report = SharedResults::of(&fixture.manager);
    assert!(report.chunks_taken > 0, "{report:?}");
}
