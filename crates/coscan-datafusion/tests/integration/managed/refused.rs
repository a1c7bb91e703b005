//! Statements that are refused, after which the table is as it was.

use super::{Fixture, MANY};

#[tokio::test]
async fn a_column_that_is_not_null_takes_no_null() {
    let fixture = Fixture::filled().await;
    for sql in [
        "INSERT INTO t VALUES (5, 5, 'a'), (NULL, 1, 'b')",
        "INSERT INTO t (key) VALUES (1)",
        "UPDATE t SET id = NULL WHERE id = 3",
        "MERGE INTO t USING (SELECT 3 AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = NULL",
        "MERGE INTO t USING (SELECT -3 AS id) AS s ON t.id = s.id \
         WHEN NOT MATCHED THEN INSERT (key) VALUES (s.id)",
    ] {
        let error = fixture.error(sql).await;
        let is_said = error.contains("column id of table t is NOT NULL");
        // The engine notices some by itself.
        assert!(is_said || error.contains("declared as non-nullable"), "{sql}: {error}");
    }
    let all = fixture.run("SELECT count(*), count(id), min(id) FROM t").await;
    assert_eq!(all, [format!("{0} {0} -1", MANY + 1)]);
}

#[tokio::test]
async fn a_row_is_merged_once() {
    let fixture = Fixture::filled().await;
    let error = fixture
        .error(
            "MERGE INTO t USING (VALUES (3), (4), (3)) AS s(id) ON t.id = s.id \
             WHEN MATCHED THEN UPDATE SET key = 0",
        )
        .await;
    assert!(error.contains("twice"), "{error}");
    assert_eq!(fixture.run("SELECT key FROM t WHERE id IN (3, 4) ORDER BY id").await, ["3", "4"]);
}

#[tokio::test]
async fn a_statement_that_fails_half_way_changes_nothing() {
    let fixture = Fixture::filled().await;
    for sql in [
        "UPDATE t SET key = 1 / (id - 60000) WHERE id >= 0",
        "INSERT INTO t SELECT id, 1 / (id - 69999), text FROM t",
        "DELETE FROM t WHERE 1 / (id - 60000) < 5",
    ] {
        let error = fixture.error(sql).await;
        assert!(error.to_lowercase().contains("divide by zero"), "{sql}: {error}");
        let all = fixture.run("SELECT count(*), sum(key) FROM t").await;
        assert_eq!(all, [format!("{} {}", MANY + 1, 45 * MANY / 10)], "{sql}");
    }
}

#[tokio::test]
async fn what_managed_tables_lack_is_said() {
    let fixture = Fixture::new().await;
    for (sql, part) in [
        ("REPLACE INTO t VALUES (1, 1, 'a')", "MERGE"),
        ("UPDATE t SET nothing = 1", "nothing"),
        ("INSERT INTO t VALUES (1)", "expected 3"),
        ("DELETE FROM t WHERE \"row number\" = 1", "row number"),
    ] {
        let error = fixture.error(sql).await;
        assert!(error.contains(part), "{sql}: {error}");
    }
    let twice =
        fixture.database.create_table("t", &super::columns()).await.unwrap_err().to_string();
    assert!(twice.contains("exists already"), "{twice}");
}
