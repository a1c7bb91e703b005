//! `coscan sql` with unusual names, files, settings, memory limits and nesting depth.

use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use crate::program::{self, coscan, stderr, stdout};

/// Runs `coscan sql` in a directory.
fn sql(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = coscan();
    command.current_dir(directory).args(["sql", "-q", "--format", "csv"]);
    command.args(arguments).output().unwrap()
}

/// Returns the output of a successful run.
fn answer(directory: &Path, arguments: &[&str]) -> String {
    stdout(&sql(directory, arguments))
}

/// Returns the error output of a failed run.
fn failure(directory: &Path, arguments: &[&str]) -> String {
    program::failure(&sql(directory, arguments))
}

/// A directory with files that have the rows of queries.
fn files(files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().unwrap();
    for (name, query) in files {
        answer(directory.path(), &["-e", &format!("COPY ({query}) TO 'written.parquet'")]);
        let written = directory.path().join("written.parquet");
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::rename(written, path).unwrap();
    }
    directory
}

#[test]
fn a_file_that_exists_is_never_a_pattern() {
    let directory = files(&[
        ("data1.parquet", "SELECT 1 AS a"),
        ("data[1].parquet", "SELECT 100 AS a"),
        ("qx.parquet", "SELECT 2 AS a"),
        ("q?.parquet", "SELECT 200 AS a"),
        ("d[x]/1.parquet", "SELECT 300 AS a"),
        ("dx/1.parquet", "SELECT 3 AS a"),
    ]);
    let at = directory.path();
    for (path, value) in
        [("data[1].parquet", 100), ("q?.parquet", 200), ("d[x]/", 300), ("d[x]", 300)]
    {
        let expected = format!("a\n{value}\n");
        let table = format!("t={path}");
        assert_eq!(answer(at, &["-t", &table, "-e", "SELECT a FROM t"]), expected, "-t {table}");
        let sql = format!("SELECT a FROM '{path}'");
        assert_eq!(answer(at, &["-e", &sql]), expected, "{sql}");
        let absolute = format!("SELECT a FROM '{}/{path}'", at.display());
        assert_eq!(answer(at, &["-e", &absolute]), expected, "{absolute}");
    }
    let both = answer(at, &["-t", "t=data*.parquet", "-e", "SELECT sum(a) AS s FROM t"]);
    assert_eq!(both, "s\n101\n", "other patterns are patterns");
}

#[test]
fn a_table_that_cannot_be_refreshed_says_so_once() {
    let directory = files(&[("t/1.parquet", "SELECT 1 AS a")]);
    let count = "SELECT count(*) AS c FROM t;";
    let no_parquet = "COPY (SELECT 'no Parquet') TO 't/2.parquet' STORED AS CSV;";
    let script =
        format!("SET coscan.refresh_interval = '0s'; {count} {no_parquet} {count} {count}");
    let output = sql(directory.path(), &["-t", "t=t/", "-e", &script]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stderr(&output);
    let about = |line: &&str| line.starts_with("warning: t keeps its last list of files: ");
    assert_eq!(text.lines().filter(about).count(), 1, "{text}");
    assert!(text.contains("2.parquet"), "{text}");
}

#[test]
fn the_memory_budget_is_set_by_memory_alone() {
    let directory = files(&[]);
    let at = directory.path();
    for sql in
        ["SET datafusion.runtime.memory_limit = '1G'", "RESET datafusion.runtime.memory_limit"]
    {
        let error = failure(at, &["-e", sql]);
        assert!(error.contains("which --memory sets"), "{error}");
    }
    let sort = "SELECT value, repeat(md5(cast(value AS varchar)), 20) AS s FROM generate_series(1, 60000) ORDER BY s";
    let error = failure(at, &["--memory", "12MB", "-e", sort]);
    assert!(error.contains("Give coscan more memory (--memory), or decrease"), "{error}");
    assert!(!error.contains("memory_limit") && !error.contains("at once"), "{error}");
    let error = failure(at, &["--memory", "12MB", "--jobs", "2", "-e", sort]);
    assert!(error.contains("(--memory), or let fewer scripts run at once (--jobs)"), "{error}");
}

#[test]
fn a_long_condition_is_planned() {
    let directory =
        files(&[("n.parquet", "SELECT value AS n, value / 2.0 AS f FROM generate_series(1, 10)")]);
    let terms: Vec<_> = (0..1500).map(|term| format!("f <> {term}.25")).collect();
    let sql = format!("SELECT count(*) AS c FROM 'n.parquet' WHERE {}", terms.join(" AND "));
    assert_eq!(answer(directory.path(), &["-e", &sql]), "c\n10\n");
}

#[test]
fn errors_about_names_say_what_to_write() {
    let directory = files(&[("my trips.parquet", "SELECT 1 AS a")]);
    let at = directory.path();
    for sql in ["SELECT * FROM Trips", "DESCRIBE Trips"] {
        let error = failure(at, &["-t", "Trips=my trips.parquet", "-e", sql]);
        assert!(error.contains("in double quotes: \"Trips\""), "{error}");
    }
    let error = failure(at, &["-e", "SELECT * FROM trips"]);
    assert!(error.contains("'datafusion.public.trips' not found"), "{error}");
    assert!(!error.contains("quotes"), "{error}");
    for path in ["nosuch.parquet", "nosuch/", "./nosuch*.parquet"] {
        let error = failure(at, &["-e", &format!("SELECT * FROM '{path}'")]);
        let table = failure(at, &["-t", &format!("t={path}"), "-e", "SELECT 1"]);
        assert_eq!(error, table, "as where a table is added");
    }
    let create =
        "CREATE EXTERNAL TABLE t STORED AS PARQUET WITH ORDER (nosuch) LOCATION 'my trips.parquet'";
    let error = failure(at, &["-e", create]);
    assert!(error.contains("names column nosuch, but it has a"), "{error}");
}

#[test]
fn settings_of_coscan_are_shown_and_reset() {
    let directory = files(&[]);
    let at = directory.path();
    let shown = answer(
        at,
        &[
            "-e",
            "SET coscan.weight = 4; SET coscan.refresh_interval = '5s'; SHOW coscan.weight; RESET coscan.weight;
             SHOW coscan.weight;
             SELECT name, value FROM information_schema.df_settings WHERE name LIKE 'coscan%' ORDER BY name;
             RESET coscan.refresh_interval; SHOW coscan.refresh_interval",
        ],
    );
    let expected = "name,value\ncoscan.weight,4\nname,value\ncoscan.weight,1\nname,value\ncoscan.refresh_interval,5s\n\
                    coscan.share_results,true\ncoscan.sharing,true\ncoscan.weight,1\nname,value\ncoscan.refresh_interval,\n";
    assert_eq!(shown, expected);
    for (sql, expected) in [
        ("SET coscan.weight = 0", "a number of at least 1"),
        ("SET coscan.weight = 'x'", "a number of at least 1"),
        ("SET coscan.sharing = 2", "true or false"),
        ("SET coscan.refresh_interval = '-1s'", "a time with its unit"),
        ("SET coscan.nosuch = 1", "there is no setting coscan.nosuch"),
        ("RESET coscan.nosuch", "there is no setting coscan.nosuch"),
    ] {
        let error = failure(at, &["-e", sql]);
        assert!(error.contains(expected), "{sql}: {error}");
    }
}

#[test]
fn a_replica_may_have_any_path() {
    let rows = "SELECT value AS n FROM generate_series(1, 10)";
    let directory = files(&[("t.parquet", rows), ("d/a,b \"c\".parquet", rows)]);
    let arguments = ["-t", "t=t.parquet", "--replica", "t=d/a,b \"c\".parquet"];
    let plan = answer(
        directory.path(),
        &[&arguments[..], &["-e", "EXPLAIN SELECT n + 1 FROM t"]].concat(),
    );
    assert!(plan.contains("a,b"), "{plan}");
}

#[test]
fn a_large_result_is_printed_as_a_table_with_little_memory() {
    let rows = "SELECT value AS n, repeat(md5(cast(value AS varchar)), 30) AS s FROM generate_series(1, 30000)";
    let directory = files(&[("t.parquet", rows)]);
    let arguments = ["sql", "-q", "--memory", "24MB", "--max-rows", "0"];
    let mut command = coscan();
    command.args(arguments).args(["-e", "SELECT * FROM 't.parquet'"]).current_dir(directory.path());
    let table = stdout(&command.output().unwrap());
    assert_eq!(table.lines().filter(|line| line.starts_with("| ")).count(), 30_001);
}

#[test]
fn a_replaced_file_is_refreshed_by_name() {
    let directory = files(&[("t.parquet", "SELECT value AS n FROM generate_series(1, 1000)")]);
    let replace = "COPY (SELECT value AS n FROM generate_series(1, 2000)) TO 't.parquet'";
    let sql = format!("{replace}; SELECT sum(n * n) FROM t");
    let error = failure(directory.path(), &["-t", "t=t.parquet", "-e", &sql]);
    assert!(error.contains("has changed") && error.contains("REFRESH TABLE"), "{error}");
}
