//! `coscan sql --database`: tables that statements change, also after the process was killed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};

use crate::program::{assert_has, coscan, failure, run, stdout};

/// Runs statements on a database, and returns what they print as CSV.
fn sql(database: &Path, statements: &str) -> String {
    let database = database.to_str().unwrap();
    let output =
        run(&["sql", "--quiet", "--database", database, "--format", "csv", "-e", statements]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    stdout(&output)
}

#[test]
fn statements_change_tables_of_a_database() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("trips.db");
    sql(
        &database,
        "CREATE TABLE trips AS SELECT value AS id, value * 2 AS fare FROM range(0, 100000)",
    );
    assert_eq!(sql(&database, "UPDATE trips SET fare = -1 WHERE id >= 99990"), "count\n10\n");
    assert_eq!(sql(&database, "DELETE FROM trips WHERE id < 1000"), "count\n1000\n");
    let script = "BEGIN; INSERT INTO trips VALUES (1, 1); DELETE FROM trips WHERE id > 1; ROLLBACK";
    sql(&database, script);
    let counted = sql(&database, "SELECT count(*), min(id), min(fare) FROM trips");
    assert_eq!(counted.lines().nth(1), Some("99000,1000,-1"));
    let plan = sql(&database, "EXPLAIN SELECT id FROM trips");
    assert_has(&plan, &["SharedScanExec", "table=trips", "version=", "deleted_rows=1000"]);
}

#[test]
fn rows_of_files_are_copied() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("a.db");
    sql(&database, "CREATE TABLE t (id BIGINT NOT NULL, text VARCHAR, day DATE)");
    let (csv, parquet) = (directory.path().join("rows.csv"), directory.path().join("rows.parquet"));
    std::fs::write(&csv, "text;id\na;1\n;2\n\"b;c\";3\n").unwrap();
    let copy = format!("COPY t (text, id) FROM '{}' (HEADER, DELIMITER ';')", csv.display());
    assert_eq!(sql(&database, &copy), "count\n3\n");
    sql(
        &database,
        &format!(
            "COPY (SELECT text, DATE '2026-01-01' AS day, id + 10 AS id FROM t) TO '{}'",
            parquet.display()
        ),
    );
    assert_eq!(sql(&database, &format!("COPY t FROM '{}'", parquet.display())), "count\n3\n");
    let rows =
        "id,text,day\n1,a,\n2,,\n3,b;c,\n11,a,2026-01-01\n12,,2026-01-01\n13,b;c,2026-01-01\n";
    assert_eq!(sql(&database, "SELECT * FROM t ORDER BY id"), rows);
    std::fs::write(&csv, "x,a,\n").unwrap();
    let copy = format!("COPY t FROM '{}'", csv.display());
    let output = run(&["sql", "--database", database.to_str().unwrap(), "-e", &copy]);
    assert_has(&failure(&output), &["'x'", "line"]);
    let output =
        run(&["sql", "--database", database.to_str().unwrap(), "-e", "COPY t FROM 'none.csv'"]);
    assert_has(&failure(&output), &["none.csv is no file"]);
    assert_eq!(sql(&database, "SELECT count(*) FROM t"), "count(*)\n6\n");
}

#[test]
fn timestamps_have_microseconds_unless_they_say_otherwise() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("a.db");
    sql(&database, "CREATE TABLE t (a TIMESTAMP, b TIMESTAMP(9), c TIMESTAMPTZ)");
    let types = sql(
        &database,
        "SELECT arrow_typeof(a), arrow_typeof(b), arrow_typeof(c) FROM (VALUES (1)) LEFT JOIN t ON true",
    );
    assert_has(&types, &["Timestamp(µs)", "Timestamp(ns)"]);
}

#[test]
fn errors_of_databases_say_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("a.db");
    sql(&database, "CREATE TABLE t (id BIGINT NOT NULL)");
    let arguments = |statement| {
        ["sql", "--database", database.to_str().unwrap(), "-e", statement].map(str::to_owned)
    };
    for (statement, part) in [
        ("SELECT * FROM t FOR UPDATE", "update the rows"),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", "snapshot isolation"),
        ("CREATE TABLE t (id INT)", "exists already"),
        ("COMMIT", "BEGIN one first"),
        ("CREATE TABLE u (id INT) LOCATION '/tmp/u'", "in the directory of the database"),
    ] {
        let arguments = arguments(statement);
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        assert_has(&failure(&run(&arguments)), &[part]);
    }
    let file = directory.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let output = run(&["sql", "--database", file.to_str().unwrap(), "-e", "SELECT 1"]);
    assert_has(&failure(&output), &["cannot be opened"]);
}

/// A shell that inserts the numbers from `first` on, one statement each, until it is killed.
fn inserting(database: &Path, first: u64) -> Child {
    let mut shell = coscan()
        .args(["sql", "--quiet", "--format", "csv", "--database", database.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = shell.stdin.take().unwrap();
    let rows = first..first + 400;
    let statements = rows.map(|row| match row % 7 {
        // Kills also come while a checkpoint replaces files, and cuts the log.
        0 => format!("INSERT INTO t VALUES ({row});\nVACUUM FULL t;\n"),
        _ => format!("INSERT INTO t VALUES ({row});\n"),
    });
    let script: String = statements.collect();
    std::thread::spawn(move || drop(input.write_all(script.as_bytes())));
    shell
}

#[test]
fn a_killed_process_loses_nothing_that_it_has_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("killed.db");
    sql(&database, "CREATE TABLE t (id BIGINT)");
    let kills = std::env::var("COSCAN_KILLS").map_or(5, |kills| kills.parse().unwrap());
    let mut rows: u64 = 0;
    for kill in 0..kills {
        let mut shell = inserting(&database, rows);
        // Each statement prints a line for its column, and one for its row.
        let lines = BufReader::new(shell.stdout.take().unwrap()).lines();
        let until = 2 * (1 + (kill * 37) % 90);
        let acknowledged = lines.take(until).filter(|line| line.as_ref().unwrap() == "1").count();
        shell.kill().unwrap();
        shell.wait().unwrap();
        let counted = sql(&database, "SELECT count(*), count(DISTINCT id), max(id) FROM t");
        let counts: Vec<u64> = counted
            .lines()
            .nth(1)
            .unwrap()
            .split(',')
            .map(|count| count.parse().unwrap())
            .collect();
        assert!(
            counts[0] >= rows + acknowledged as u64,
            "{counts:?} after {rows} + {acknowledged}"
        );
        assert!(counts[1] == counts[0] && counts[2] == counts[0] - 1, "{counts:?}");
        rows = counts[0];
    }
}
