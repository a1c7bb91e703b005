//! Hive partitioning, and the choice of files that belong to a table, are as in plain DataFusion.

use std::path::Path;

use crate::support::{leaf, manager, plain, plan, run, shared, slt, write_numbers};
use coscan_datafusion::SharedScanExec;
use coscan_runtime::core::PolicyKind;
use datafusion::prelude::SessionContext;

/// Writes numbers into a file, and creates its directory.
fn write(root: &Path, path: &str, ids: std::ops::Range<i64>) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_numbers(&path, ids);
}

fn sessions() -> [SessionContext; 2] {
    [plain(), shared(&manager(PolicyKind::Relevance))]
}

/// Runs a statement on both sessions, and returns their common answer.
async fn on_both(sessions: &[SessionContext; 2], sql: &str) -> Vec<String> {
    let [expected, found] = [run(&sessions[0], sql).await, run(&sessions[1], sql).await];
    assert_eq!(found, expected, "{sql}");
    found
}

async fn create(sessions: &[SessionContext; 2], clauses: &str, location: &str) {
    let sql = format!("CREATE EXTERNAL TABLE t {clauses} LOCATION '{location}'");
    on_both(sessions, &sql).await;
}

/// The number of chunks that the scan of a query needs.
async fn chunks(session: &SessionContext, sql: &str) -> String {
    let text = crate::support::explain(session, &format!("EXPLAIN {sql}")).await;
    let after = text.split("chunks=").nth(1).unwrap_or_else(|| panic!("{text}"));
    after.split(" (").next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn directories_are_columns() {
    let data = tempfile::tempdir().unwrap();
    for (year, month, first) in [(2023, "1", 0), (2023, "2", 300), (2024, "1", 600)] {
        let path = format!("year={year}/month={month}/a.parquet");
        write(data.path(), &path, first..first + 200);
    }
    let sessions = sessions();
    create(&sessions, "STORED AS PARQUET", &data.path().display().to_string()).await;
    for sql in [
        "SELECT * FROM t ORDER BY id LIMIT 5",
        "SELECT arrow_typeof(year), arrow_typeof(month) FROM t LIMIT 1",
        "SELECT year, month, count(*), min(id) FROM t GROUP BY year, month ORDER BY year, month",
        "SELECT count(*) FROM t WHERE year = '2023'",
        "SELECT sum(id) FROM t WHERE year = '2023' AND month = '2' AND id % 3 = 0",
        "SELECT min(year), max(year), count(month) FROM t",
        "SELECT DISTINCT month FROM t ORDER BY month",
        "SELECT count(*) FROM t WHERE month > '1' OR id < 10",
        "SELECT id FROM t WHERE year = '2024' AND id = 601",
        "SELECT count(*) FROM t WHERE year = '1999'",
    ] {
        on_both(&sessions, sql).await;
    }
    let of_one_file = "SELECT sum(id) FROM t WHERE year = '2023' AND month = '2'";
    assert_eq!(chunks(&sessions[1], of_one_file).await, "2 of 6");
    assert!(
        leaf(&plan(&sessions[1], of_one_file).await).downcast_ref::<SharedScanExec>().is_some()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn declared_directories_have_declared_types() {
    let data = tempfile::tempdir().unwrap();
    for day in [9, 10, 11] {
        write(data.path(), &format!("day={day}/a.parquet"), day * 100..day * 100 + 50);
    }
    let sessions = sessions();
    let clauses = "(id BIGINT, text VARCHAR, day INT) STORED AS PARQUET PARTITIONED BY (day)";
    create(&sessions, clauses, &format!("{}/", data.path().display())).await;
    for sql in [
        "SELECT arrow_typeof(day), * FROM t ORDER BY id LIMIT 3",
        "SELECT day, count(*) FROM t GROUP BY day ORDER BY day",
        "SELECT sum(id) FROM t WHERE day > 9",
        "SELECT min(day), max(day) FROM t",
    ] {
        on_both(&sessions, sql).await;
    }
    assert_eq!(chunks(&sessions[1], "SELECT id FROM t WHERE day > 9").await, "2 of 3");

    let wrong = format!(
        "CREATE EXTERNAL TABLE u STORED AS PARQUET PARTITIONED BY (month) LOCATION '{}/'",
        data.path().display()
    );
    for session in &sessions {
        slt::run(session, &wrong).await.unwrap_err();
    }
    let not_a_date =
        wrong.replace("(month)", "(day)").replace("TABLE u", "TABLE u (id BIGINT, day DATE)");
    let error = slt::run(&sessions[1], &not_a_date).await.unwrap_err().to_string();
    assert!(error.contains("day=") && error.contains("a.parquet"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_are_decoded() {
    let data = tempfile::tempdir().unwrap();
    write(data.path(), "city=S%C3%A3o%20Paulo/a.parquet", 0..10);
    write(data.path(), "city=a%2Fb/a.parquet", 10..20);
    write(data.path(), "city=100%25/a.parquet", 20..30);
    let sessions = sessions();
    create(&sessions, "STORED AS PARQUET", &data.path().display().to_string()).await;
    let cities =
        on_both(&sessions, "SELECT city, count(*) FROM t GROUP BY city ORDER BY city").await;
    assert_eq!(cities.len(), 3);
    assert_eq!(on_both(&sessions, "SELECT count(*) FROM t WHERE city = 'a/b'").await, ["10"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_inference_directories_are_no_columns() {
    let data = tempfile::tempdir().unwrap();
    write(data.path(), "day=1/a.parquet", 0..10);
    let sessions = sessions();
    on_both(&sessions, "SET datafusion.execution.listing_table_factory_infer_partitions = false")
        .await;
    create(&sessions, "STORED AS PARQUET", &data.path().display().to_string()).await;
    on_both(&sessions, "SELECT * FROM t ORDER BY id").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_has_the_files_that_plain_datafusion_finds_there() {
    let data = tempfile::tempdir().unwrap();
    let mut first = 0;
    for path in [
        "a.parquet",
        "_b.parquet",
        ".c.parquet",
        "d.parq",
        "e.PARQUET",
        "f.parquet.crc",
        "below/g.parquet",
        "_below/h.parquet",
    ] {
        write(data.path(), path, first..first + 7);
        first += 100;
    }
    std::fs::write(data.path().join("_SUCCESS"), "").unwrap();
    std::fs::write(data.path().join("empty.parquet"), "").unwrap();
    std::fs::write(data.path().join("README.md"), "not Parquet").unwrap();
    let root = data.path().display().to_string();
    for ignores in [true, false] {
        for location in [
            root.clone(),
            format!("{root}/"),
            format!("file://{root}/"),
            format!("{root}/*.parquet"),
            format!("{root}/[a_]*.parquet"),
            format!("{root}/d.parq"),
            format!("{root}/e.PARQUET"),
            format!("{root}/below"),
        ] {
            let sessions = sessions();
            let set =
                format!("SET datafusion.execution.listing_table_ignore_subdirectory = {ignores}");
            on_both(&sessions, &set).await;
            create(&sessions, "STORED AS PARQUET", &location).await;
            on_both(&sessions, "SELECT id FROM t ORDER BY id").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_outside_the_partitions_are_named_in_errors() {
    let data = tempfile::tempdir().unwrap();
    write(data.path(), "day=1/a.parquet", 0..10);
    write(data.path(), "month=1/b.parquet", 10..20);
    let create =
        format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", data.path().display());
    let sessions = sessions();
    slt::run(&sessions[0], &create).await.unwrap_err();
    let error = slt::run(&sessions[1], &create).await.unwrap_err().to_string();
    assert!(error.contains("day=1/a.parquet") && error.contains("month=1/b.parquet"), "{error}");
}
