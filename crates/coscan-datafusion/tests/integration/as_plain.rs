//! Sessions with coscan give the answers of plain DataFusion. The engine scans where a shared scan cannot.

use std::path::Path;

use coscan_runtime::core::PolicyKind;
use datafusion::prelude::SessionContext;

use crate::support::{create, explain, manager, plain, run, shared, slt, write_numbers};

/// A session of plain DataFusion, and one with coscan.
fn sessions() -> [SessionContext; 2] {
    [plain(), shared(&manager(PolicyKind::Relevance))]
}

fn numbers(directory: &Path, files: i64) {
    for file in 0..files {
        write_numbers(&directory.join(format!("{file}.parquet")), file * 300..file * 300 + 300);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_on_keys_without_bounds() {
    let data = tempfile::tempdir().unwrap();
    let [plain, shared] = sessions();
    for (table, map, key) in
        [("a", "MAP {'x': 1}", 3), ("b", "MAP {'x': 1}", 3), ("c", "MAP {'y': 1}", 4)]
    {
        let path = data.path().join(format!("{table}.parquet"));
        let sql =
            format!("COPY (SELECT {map} AS m, [{key}] AS l, {key} AS k) TO '{}'", path.display());
        run(&plain, &sql).await;
        for context in [&plain, &shared] {
            create(context, table, &path).await;
        }
    }
    for (on, matches) in [("a.m = b.m", "1"), ("a.m = b.m AND a.k = b.k", "1"), ("a.l = b.l", "1")]
    {
        for (left, right) in [("a", "b"), ("b", "a")] {
            let sql = format!("SELECT count(*) FROM {left} JOIN {right} ON {on}");
            assert_eq!(run(&plain, &sql).await, [matches], "{sql}");
            assert_eq!(run(&shared, &sql).await, [matches], "{sql}");
        }
    }
    assert_eq!(run(&shared, "SELECT count(*) FROM a, c WHERE a.m = c.m").await, ["0"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_of_files_and_rows() {
    let data = tempfile::tempdir().unwrap();
    numbers(data.path(), 3);
    let [plain, shared] = sessions();
    for context in [&plain, &shared] {
        create(context, "t", data.path()).await;
    }
    for (call, sql) in [
        ("input_file_name()", "SELECT id, input_file_name() FROM t ORDER BY id"),
        (
            "input_file_name()",
            "SELECT input_file_name() AS f, count(*) FROM t GROUP BY f ORDER BY f",
        ),
        ("file_row_index()", "SELECT id, file_row_index() + 1 FROM t WHERE id > 450 ORDER BY id"),
        ("input_file_name()", "SELECT (SELECT max(f) FROM (SELECT input_file_name() AS f FROM t))"),
    ] {
        assert_eq!(run(&shared, sql).await, run(&plain, sql).await, "{sql}");
        let text = explain(&shared, &format!("EXPLAIN {sql}")).await;
        assert!(text.contains(&format!("not_shared={call}")), "{text}");
    }
    let text = explain(&shared, "EXPLAIN SELECT sum(value) FROM t").await;
    assert!(text.contains("SharedScanExec"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_that_a_shared_one_does_not_support() {
    let data = tempfile::tempdir().unwrap();
    numbers(data.path(), 2);
    let [plain, shared] = sessions();
    let location = data.path().display();
    let columns = "(id BIGINT, \"key\" BIGINT DEFAULT 7, value DOUBLE, text VARCHAR)";
    let zone = "SET datafusion.execution.parquet.coerce_int96_tz = '+01:00'";
    for (table, set, columns, options, expected) in [
        (
            "a",
            "",
            "",
            "OPTIONS ('format.content_defined_chunking.enabled' 'true')",
            "SharedScanExec",
        ),
        ("b", "", "", "OPTIONS ('format.pruning' 'false')", "SharedScanExec"),
        ("c", "", columns, "", "SharedScanExec"),
        ("d", "", "", "OPTIONS ('coerce_int96' 'us', 'coerce_int96_tz' '+01:00')", "not_shared="),
        ("e", "SET datafusion.execution.parquet.coerce_int96 = 'us'", "", "", "SharedScanExec"),
        ("f", zone, "", "", "not_shared=options that coscan does not have"),
    ] {
        let mut rows = Vec::new();
        for context in [&plain, &shared] {
            if !set.is_empty() {
                run(context, set).await;
            }
            let sql = format!(
                "CREATE EXTERNAL TABLE {table} {columns} STORED AS PARQUET LOCATION '{location}/' {options}"
            );
            run(context, &sql).await;
            rows.push(
                run(context, &format!("SELECT count(*), sum(id), sum(key) FROM {table}")).await,
            );
        }
        assert_eq!(rows[0], rows[1], "{table}");
        let text = explain(&shared, &format!("EXPLAIN SELECT sum(key) FROM {table}")).await;
        assert!(text.contains(expected), "{table}: {text}");
    }
    run(&shared, "INSERT INTO c (id, value, text) VALUES (1, 2.5, 'x')").await;
    assert_eq!(run(&shared, "SELECT key FROM c WHERE value = 2.5 AND text = 'x'").await, ["7"]);
    let sql = format!(
        "CREATE EXTERNAL TABLE g STORED AS PARQUET LOCATION '{location}/' \
         OPTIONS ('replicas' '{location}/', 'format.pruning' 'false')"
    );
    let refused = slt::run(&shared, &sql).await.unwrap_err().to_string();
    assert!(refused.contains("format.pruning; leave that out"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_without_a_cache_of_lists_sees_the_files_that_are_there() {
    let data = tempfile::tempdir().unwrap();
    numbers(data.path(), 1);
    let [_, shared] = sessions();
    create(&shared, "t", data.path()).await;
    let sql = "SELECT count(*), sum(id), sum(value) FROM t";
    let first = run(&shared, sql).await;
    numbers(data.path(), 2);
    assert_eq!(run(&shared, sql).await, first);
    run(&shared, "SET datafusion.runtime.list_files_cache_limit = '0K'").await;
    assert_eq!(run(&shared, sql).await, ["600 179700 89850.0"]);
    // All pages of the file are in memory.
    write_numbers(&data.path().join("1.parquet"), 1000..1100);
    assert_eq!(run(&shared, sql).await, ["400 149800 74900.0"]);
}
