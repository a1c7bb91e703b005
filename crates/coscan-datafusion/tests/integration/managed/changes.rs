//! What statements change, and what the next one sees.

use super::{Fixture, MANY, load};

#[tokio::test]
async fn rows_are_inserted_in_memory_and_in_files() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.run("SELECT count(*), sum(id) FROM t").await, ["0 NULL"]);
    assert_eq!(fixture.run("INSERT INTO t VALUES (1, 2, 'a'), (2, NULL, NULL)").await, ["2"]);
    assert_eq!(fixture.run("SELECT * FROM t ORDER BY id").await, ["1 2 a", "2 NULL NULL"]);
    assert_eq!(fixture.run(&load("t", 10..MANY)).await, [(MANY - 10).to_string()]);
    let sum: i64 = 3 + (10..MANY).sum::<i64>();
    let all = fixture.run("SELECT count(*), sum(id), count(text), max(id) FROM t").await;
    assert_eq!(all, [format!("{} {sum} {} {}", MANY - 8, MANY - 9, MANY - 1)]);
    assert_eq!(fixture.run("SELECT text FROM t WHERE id = 69999").await, ["text 69999"]);
    assert_eq!(fixture.run("INSERT INTO t (text, id) VALUES ('b', 3)").await, ["1"]);
    assert_eq!(fixture.run("SELECT * FROM t WHERE id = 3").await, ["3 NULL b"]);
    let copied = fixture.run("INSERT INTO t SELECT id + 1000000, key, text FROM t").await;
    assert_eq!(copied, [(MANY - 7).to_string()]);
    assert_eq!(fixture.run("SELECT count(*) FROM t").await, [(2 * (MANY - 7)).to_string()]);
}

#[tokio::test]
async fn rows_of_files_and_of_memory_are_updated() {
    let fixture = Fixture::filled().await;
    let updated = fixture.run("UPDATE t SET key = key + 100, text = 'new' WHERE id < 5").await;
    assert_eq!(updated, ["6"]);
    let rows = fixture.run("SELECT * FROM t WHERE id < 6 ORDER BY id").await;
    assert_eq!(
        rows,
        [
            "-1 NULL new",
            "0 100 new",
            "1 101 new",
            "2 102 new",
            "3 103 new",
            "4 104 new",
            "5 5 text 5"
        ]
    );
    // Bounds of the file say that no key is above 9.
    assert_eq!(fixture.run("SELECT count(*) FROM t WHERE key > 50").await, ["5"]);
    assert_eq!(fixture.run("SELECT max(key) FROM t").await, ["104"]);
    assert_eq!(
        fixture.run("SELECT id FROM t ORDER BY key DESC NULLS LAST LIMIT 2").await,
        ["4", "3"]
    );
    assert_eq!(fixture.run("UPDATE t AS u SET key = NULL WHERE u.key = 104").await, ["1"]);
    assert_eq!(fixture.run("SELECT count(*) FROM t WHERE key IS NULL").await, ["2"]);
    assert_eq!(fixture.run("UPDATE t SET id = id + 1").await, [(MANY + 1).to_string()]);
    let sum: i64 = (1..=MANY).sum();
    assert_eq!(fixture.run("SELECT sum(id), min(id) FROM t").await, [format!("{sum} 0")]);
}

#[tokio::test]
async fn dynamic_filters_leave_values_outside_of_the_bounds_of_files() {
    let fixture = Fixture::filled().await;
    fixture.run("UPDATE t SET key = key + 100 WHERE id >= 60000").await;
    fixture.create("u").await;
    fixture.run("INSERT INTO u VALUES (1, 3, NULL), (2, 105, NULL), (3, 500, NULL)").await;
    let groups = "SELECT key, count(*) AS rows FROM t GROUP BY key";
    let joined =
        format!("SELECT u.id, rows FROM u JOIN ({groups}) g ON u.key = g.key ORDER BY u.id");
    assert_eq!(fixture.run(&joined).await, ["1 6000", "2 1000"]);
    let plan = fixture.run(&format!("EXPLAIN {joined}")).await.join("\n");
    assert!(plan.contains("DynamicFilterExec"), "{plan}");
}

#[tokio::test]
async fn only_the_rows_of_the_condition_are_deleted() {
    let fixture = Fixture::filled().await;
    fixture.create("u").await;
    fixture.run("INSERT INTO u VALUES (7, 1, NULL), (8, NULL, NULL), (-1, 0, NULL)").await;
    for (condition, count) in [
        ("WHERE false", 0),
        ("WHERE NULL", 0),
        ("WHERE id IN (SELECT id FROM u)", 3),
        ("WHERE EXISTS (SELECT 1 FROM u WHERE u.id + 10 = t.id)", 3),
        ("WHERE id NOT IN (SELECT key FROM u)", 0),
        ("WHERE id = (SELECT max(id) FROM t)", 1),
        ("WHERE key = 3 AND id < 40", 4),
        ("WHERE key = 5 LIMIT 10", 10),
    ] {
        let before: i64 = fixture.run("SELECT count(*) FROM t").await[0].parse().unwrap();
        let deleted = fixture.run(&format!("DELETE FROM t {condition}")).await;
        assert_eq!(deleted, [count.to_string()], "{condition}");
        let after = fixture.run("SELECT count(*) FROM t").await;
        assert_eq!(after, [(before - count).to_string()], "{condition}");
        // From the rows, not from what is known of them.
        let counted = fixture.run("SELECT count(id + 0 * length(text)) FROM t").await;
        assert_eq!(counted, after, "{condition}");
    }
    assert_eq!(fixture.run("SELECT min(id), max(id) FROM t").await, ["0 69998"]);
    fixture.run("TRUNCATE TABLE t").await;
    assert_eq!(fixture.run("SELECT count(*), sum(id) FROM t").await, ["0 NULL"]);
    fixture.run("INSERT INTO t VALUES (1, 1, 'again')").await;
    assert_eq!(fixture.run("SELECT * FROM t").await, ["1 1 again"]);
    assert_eq!(fixture.run("DELETE FROM t").await, ["1"]);
}

#[tokio::test]
async fn a_merge_updates_deletes_and_inserts() {
    let fixture = Fixture::filled().await;
    fixture.create("u").await;
    fixture
        .run("INSERT INTO u VALUES (1, 50, 'one'), (2, NULL, 'two'), (100000, 7, 'three')")
        .await;
    let merged = fixture
        .run(
            "MERGE INTO t USING u ON t.id = u.id \
             WHEN MATCHED AND u.key IS NULL THEN DELETE \
             WHEN MATCHED THEN UPDATE SET key = u.key, text = concat(t.text, u.text) \
             WHEN NOT MATCHED THEN INSERT (id, text) VALUES (u.id, u.text)",
        )
        .await;
    assert_eq!(merged, ["3"]);
    let rows = fixture.run("SELECT * FROM t WHERE id IN (1, 2, 100000) ORDER BY id").await;
    assert_eq!(rows, ["1 50 text 1one", "100000 NULL three"]);
    let merged = fixture
        .run(
            "MERGE INTO t AS x USING (SELECT id FROM u) AS s ON x.id = s.id \
             WHEN NOT MATCHED BY SOURCE AND x.id >= 10 THEN DELETE \
             WHEN NOT MATCHED BY SOURCE THEN UPDATE SET key = -1",
        )
        .await;
    // The rows 1, 2 and 100000 match; 2 was deleted.
    assert_eq!(merged, [(MANY - 1).to_string()]);
    let rows = fixture.run("SELECT id, key FROM t ORDER BY id").await;
    let kept = [-1, 0, 3, 4, 5, 6, 7, 8, 9].map(|id| format!("{id} -1"));
    let mut expected: Vec<_> =
        kept.into_iter().chain(["1 50".into(), "100000 NULL".into()]).collect();
    expected.sort_by_key(|row| row.split(' ').next().unwrap().parse::<i64>().unwrap());
    assert_eq!(rows, expected);
}

#[tokio::test]
async fn inserted_rows_replace_all_others() {
    let fixture = Fixture::filled().await;
    fixture.run("DELETE FROM t WHERE id = 3").await;
    assert_eq!(fixture.run("INSERT OVERWRITE t VALUES (1, 1, 'one')").await, ["1"]);
    assert_eq!(fixture.run("SELECT * FROM t").await, ["1 1 one"]);
}

#[tokio::test]
async fn explain_changes_nothing_and_says_what_would_be_changed() {
    let fixture = Fixture::filled().await;
    let plan = fixture.run("EXPLAIN UPDATE t SET key = 1 WHERE id = 3").await.join("\n");
    assert!(plan.contains("UPDATE table=t, columns=[key]"), "{plan}");
    fixture.run("EXPLAIN DELETE FROM t").await;
    assert_eq!(fixture.run("SELECT key FROM t WHERE id = 3").await, ["3"]);
    assert_eq!(fixture.run("SELECT count(*) FROM t").await, [(MANY + 1).to_string()]);
    fixture.run("EXPLAIN ANALYZE DELETE FROM t WHERE id = 3").await;
    assert_eq!(fixture.run("SELECT count(*) FROM t").await, [MANY.to_string()]);
}

#[tokio::test]
async fn a_prepared_statement_changes_what_is_there_when_it_is_executed() {
    let fixture = Fixture::filled().await;
    fixture.run("PREPARE change(BIGINT) AS UPDATE t SET key = key + 1 WHERE id = $1").await;
    for _ in 0..3 {
        assert_eq!(fixture.run("EXECUTE change(20)").await, ["1"]);
    }
    assert_eq!(fixture.run("SELECT key FROM t WHERE id = 20").await, ["3"]);
}

#[tokio::test]
async fn joins_and_aggregations_read_changed_rows() {
    let fixture = Fixture::filled().await;
    fixture.run("UPDATE t SET key = 77 WHERE id % 1000 = 0").await;
    fixture.run("DELETE FROM t WHERE id % 1000 = 1").await;
    let joined = "SELECT count(*) FROM t a JOIN t b ON a.id = b.id + 1 WHERE a.key = 77";
    assert_eq!(fixture.run(joined).await, ["70"]);
    let keys = "SELECT key, count(*) FROM t WHERE key IN (0, 1, 77) GROUP BY key ORDER BY key";
    assert_eq!(fixture.run(keys).await, ["0 6930", "1 6930", "77 70"]);
    assert_eq!(fixture.run("SELECT id FROM t ORDER BY id LIMIT 3").await, ["-1", "0", "2"]);
    assert_eq!(fixture.run("SELECT id, key FROM t LIMIT 2").await.len(), 2);
    let distinct = "SELECT count(DISTINCT key) FROM t";
    assert_eq!(fixture.run(distinct).await, ["11"]);
}

#[tokio::test]
async fn new_values_have_the_types_of_their_columns() {
    let fixture = Fixture::new().await;
    fixture.run("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, NULL, 'c')").await;
    let all = "SELECT key FROM t ORDER BY id";
    // The branches of a CASE get a common type, after the planner has cast the whole of it.
    for (value, expected) in [
        ("CASE WHEN id = 1 THEN key ELSE 2.5 END", ["10", "2", "2"]),
        ("CASE WHEN id = 1 THEN key ELSE '77' END", ["10", "77", "77"]),
        ("coalesce(NULLIF(key, 10), 1.5)", ["1", "77", "77"]),
    ] {
        fixture.run(&format!("UPDATE t SET key = {value}")).await;
        assert_eq!(fixture.run(all).await, expected, "{value}");
    }
    let error = fixture.error("UPDATE t SET key = CASE WHEN id = 1 THEN text ELSE 'x' END").await;
    assert!(error.contains("Cannot cast"), "{error}");
    fixture.run("INSERT INTO t SELECT 4, CASE WHEN id = 1 THEN key ELSE 2.5 END, 'd' FROM t").await;
    assert_eq!(
        fixture.run("SELECT DISTINCT key FROM t WHERE id = 4 ORDER BY key").await,
        ["1", "2"]
    );
}

#[tokio::test]
async fn changed_tables_are_read_also_without_sharing() {
    let fixture = Fixture::filled().await;
    fixture.run("SET coscan.sharing = false").await;
    assert_eq!(fixture.run("SELECT count(*), min(id) FROM t").await, [format!("{} -1", MANY + 1)]);
    assert_eq!(fixture.run("DELETE FROM t WHERE id < 10").await, ["11"]);
    assert_eq!(fixture.run("SELECT count(id) FROM t").await, [(MANY - 10).to_string()]);
}
