//! Random changes against plain DataFusion, in which each statement makes a new table of the old one's rows.

use coscan_core::SplitMix64;
use datafusion::prelude::SessionContext;

use super::{Fixture, load};
use crate::support::{plain, run};

/// A random condition on the columns of `t`. The engine has no lists of a query in a CASE.
fn condition(random: &mut SplitMix64, may_have_lists: bool) -> String {
    let number = random.below(3000);
    match random.below(if may_have_lists { 7 } else { 6 }) {
        0 => format!("id < {number}"),
        1 => format!("key = {}", random.below(12)),
        2 => format!("key IS NULL OR id % {} = 0", 2 + random.below(50)),
        3 => format!("text LIKE '%{}'", random.below(100)),
        4 => format!("id BETWEEN {number} AND {}", number + random.below(400)),
        5 => format!("key > (SELECT avg(key) FROM t) AND id > {number}"),
        _ => format!("id IN (SELECT id + {} FROM t WHERE key = 1)", random.below(3)),
    }
}

/// A random value of a column.
fn value(random: &mut SplitMix64, column: &str) -> String {
    match (column, random.below(4)) {
        ("id", 0 | 1) => format!("id + {}", random.below(5)),
        ("id", _) => format!("id * 2 - {}", random.below(3000)),
        ("key", 0) => "NULL".into(),
        ("key", 1) => "key + 1".into(),
        ("key", _) => format!("(id + {}) % 13", random.below(13)),
        (_, 0) => "NULL".into(),
        (_, 1) => "concat(text, 'x')".into(),
        _ => format!("'a text of more than twelve bytes {}'", random.below(9)),
    }
}

/// A random statement, and the query for the rows of the table after it.
fn change(random: &mut SplitMix64, step: u64) -> (String, String) {
    let kind = random.below(5);
    let condition = condition(random, kind == 1);
    match kind {
        0 => {
            let ids = step * 5000..step * 5000 + 1 + random.below(600);
            let rows = format!(
                "SELECT value, value % 10, concat('text ', value) FROM range({}, {})",
                ids.start, ids.end
            );
            (format!("INSERT INTO t {rows}"), format!("SELECT * FROM t UNION ALL {rows}"))
        }
        1 => (
            format!("DELETE FROM t WHERE {condition}"),
            format!("SELECT * FROM t WHERE NOT coalesce({condition}, false)"),
        ),
        2 => {
            let source = "SELECT DISTINCT id + 1 AS id, key FROM t WHERE key < 2 AND id % 3 = 0";
            let merge = format!(
                "MERGE INTO t USING (SELECT id, min(key) AS key FROM ({source}) GROUP BY id) AS s \
                 ON t.id = s.id AND t.key >= 0 \
                 WHEN MATCHED AND t.key = 5 THEN DELETE \
                 WHEN MATCHED THEN UPDATE SET key = s.key \
                 WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.key, 'merged')"
            );
            let rows = format!(
                "WITH s AS (SELECT id, min(key) AS key FROM ({source}) GROUP BY id) \
                 SELECT t.id, CASE WHEN s.id IS NULL THEN t.key ELSE s.key END AS key, t.text \
                 FROM t LEFT JOIN s ON t.id = s.id AND t.key >= 0 \
                 WHERE NOT coalesce(s.id IS NOT NULL AND t.key = 5, false) \
                 UNION ALL SELECT s.id, s.key, 'merged' FROM s \
                 WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.id = s.id AND t.key >= 0)"
            );
            (merge, rows)
        }
        _ => {
            let columns = ["id", "key", "text"];
            let mut assigned: Vec<(&str, String)> = Vec::new();
            for column in columns {
                if random.below(2) == 0 {
                    assigned.push((column, value(random, column)));
                }
            }
            if assigned.is_empty() {
                assigned.push(("key", "7".into()));
            }
            let sets: Vec<_> =
                assigned.iter().map(|(column, value)| format!("{column} = {value}")).collect();
            let selected =
                columns.map(|column| match assigned.iter().find(|(name, _)| *name == column) {
                    Some((_, value)) => {
                        format!("CASE WHEN {condition} THEN {value} ELSE {column} END AS {column}")
                    }
                    None => column.to_owned(),
                });
            (
                format!("UPDATE t SET {} WHERE {condition}", sets.join(", ")),
                format!("SELECT {} FROM t", selected.join(", ")),
            )
        }
    }
}

/// Makes table `t` of plain DataFusion one of these rows.
async fn replace(context: &SessionContext, rows: &str) {
    let rows = format!(
        "CREATE TABLE next AS SELECT arrow_cast(id, 'Int64') AS id, arrow_cast(key, 'Int64') AS key, \
         arrow_cast(text, 'Utf8View') AS text FROM ({rows})"
    );
    run(context, &rows).await;
    let table = context.table_provider("next").await.unwrap();
    context.deregister_table("t").unwrap();
    context.register_table("t", table).unwrap();
    context.deregister_table("next").unwrap();
}

/// Queries that use what is known of the rows in several ways.
const QUERIES: [&str; 9] = [
    "SELECT id, key, text FROM t ORDER BY id, key, text",
    "SELECT count(*) FROM t",
    "SELECT min(id), max(id), min(key), max(key), count(key), count(DISTINCT text) FROM t",
    "SELECT id, key FROM t WHERE key = 3 ORDER BY id, key",
    "SELECT id, text FROM t WHERE id BETWEEN 1000 AND 1200 ORDER BY id, text",
    "SELECT key, count(*), sum(id) FROM t GROUP BY key ORDER BY key",
    "SELECT id, key, text FROM t ORDER BY id DESC, key, text LIMIT 7",
    "SELECT count(*) FROM t a JOIN t b ON a.id = b.id WHERE a.key < 3",
    "SELECT count(*) FROM t WHERE key IS NULL OR text IS NULL",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_tables_have_the_rows_that_plain_tables_have() {
    for seed in 0..6 {
        let mut random = SplitMix64(seed);
        let (fixture, oracle) = (Fixture::new().await, plain());
        // Some rows are in a file, of chunks of 100 rows.
        fixture.run(&load("t", 0..66_000)).await;
        fixture.run("DELETE FROM t WHERE id >= 3000").await;
        run(&oracle, "CREATE TABLE t (id BIGINT)").await;
        replace(&oracle, "SELECT value AS id, value % 10 AS key, concat('text ', value) AS text FROM range(0, 3000)").await;
        for step in 1..15 {
            let (statement, rows) = change(&mut random, step);
            fixture.run(&statement).await;
            replace(&oracle, &rows).await;
            let query = QUERIES[random.below(QUERIES.len() as u64) as usize];
            for query in [QUERIES[0], query] {
                let (ours, theirs) = (fixture.run(query).await, run(&oracle, query).await);
                assert!(ours == theirs, "seed {seed}, step {step}, {statement}: {query}");
            }
        }
        for query in QUERIES {
            assert_eq!(fixture.run(query).await, run(&oracle, query).await, "seed {seed}: {query}");
        }
    }
}
