//! Results of chunks are shared, those of changed chunks by queries that see the same changes.

use coscan_datafusion::SharedResults;

use super::Fixture;
use super::durable::{another, session};
use crate::support::{execute, run, share_no_results};

const QUERIES: [&str; 2] = [
    "SELECT key > 4, count(*), sum(id), min(text) FROM t GROUP BY key > 4 ORDER BY 1",
    "SELECT count(*), max(key) FROM t WHERE id >= 0 AND key < 100",
];

fn taken(fixture: &Fixture) -> u64 {
    SharedResults::of(&fixture.manager).chunks_taken
}

#[tokio::test]
async fn queries_after_changes_share_what_they_see_alike() {
    let fixture = Fixture::filled().await;
    let alone = fixture.session();
    share_no_results(&alone).await;
    let (mut first_took, mut second_took) = (Vec::new(), Vec::new());
    for change in [
        "SELECT 1",
        "DELETE FROM t WHERE id = 17",
        "UPDATE t SET id = id + 1000000 WHERE id = 30000",
        "UPDATE t SET key = 50 WHERE id = 60000",
        "INSERT INTO t VALUES (5, 6, 'new')",
        "DELETE FROM t WHERE id < 40000",
    ] {
        fixture.run(change).await;
        let mut took = Vec::new();
        for _ in 0..2 {
            let before = taken(&fixture);
            for query in QUERIES {
                let expected = run(&alone, query).await;
                assert_eq!(fixture.run(query).await, expected, "after {change}: {query}");
            }
            took.push(taken(&fixture) - before);
        }
        first_took.push(took[0]);
        second_took.push(took[1]);
    }
    // The last change leaves chunks without rows.
    let all = second_took[0];
    assert_eq!(first_took[0], 0, "nothing is published yet");
    assert!(all > 0 && second_took[..5].iter().all(|&took| took == all), "{second_took:?}");
    assert!(first_took[1..=3].iter().all(|&took| 0 < took && took < all), "{first_took:?}");
    assert_eq!(first_took[4], all, "an inserted row is in none of the chunks");
}

#[tokio::test]
async fn chunks_with_few_rows_left_do_not_end_sharing() {
    let fixture = Fixture::filled().await;
    // Six chunks have two rows left, of two groups.
    fixture.run("DELETE FROM t WHERE id < 6000 AND id % 1000 NOT IN (4, 5)").await;
    let mut took = Vec::new();
    for change in ["SELECT 1", "DELETE FROM t WHERE id = 65017"] {
        fixture.run(change).await;
        fixture.run(QUERIES[0]).await;
        let before = taken(&fixture);
        fixture.run(QUERIES[0]).await;
        took.push(taken(&fixture) - before);
    }
    assert!(took[0] > 50 && took[1] == took[0], "{took:?} of 70 chunks");
}

#[tokio::test]
async fn a_transaction_shares_with_nobody_what_it_has_changed() {
    let directory = tempfile::tempdir().unwrap();
    let (database, context) = session(directory.path()).await.unwrap();
    let other = another(&database);
    execute(&context, "CREATE TABLE t (id BIGINT)").await.unwrap();
    execute(&context, "INSERT INTO t SELECT value FROM range(0, 70000)").await.unwrap();
    let count = "SELECT count(*), min(id) FROM t";
    let before = run(&context, count).await;
    execute(&context, "BEGIN").await.unwrap();
    execute(&context, "DELETE FROM t WHERE id < 100").await.unwrap();
    let inside = run(&context, count).await;
    assert_eq!(inside, ["69900 100"]);
    assert_eq!(run(&other, count).await, before);
    assert_eq!(run(&context, count).await, inside);
    // Only the transaction has these blocks. Its next change must not be taken for the one before.
    execute(&context, "DELETE FROM t WHERE id < 200").await.unwrap();
    assert_eq!(run(&context, count).await, ["69800 200"]);
    execute(&context, "ROLLBACK").await.unwrap();
    assert_eq!(run(&context, count).await, before);
}
