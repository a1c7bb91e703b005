//! The binary, run by its command line.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use coscan_testing::s3::{BUCKET, S3Server};
use tempfile::TempDir;

#[cfg(unix)]
use crate::program::signal;
use crate::program::{assert_has, coscan, failure, run, stderr, stdout};

/// A directory with `numbers.parquet`: `n` from 1 to 1000, and `squared`.
pub(crate) fn numbers() -> (TempDir, String) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("numbers.parquet").display().to_string();
    let copy = format!(
        "COPY (SELECT value AS n, value * value AS squared FROM generate_series(1, 1000)) TO '{path}'"
    );
    stdout(&run(&["sql", "-q", "-e", &copy]));
    (directory, path)
}

#[test]
fn sql_answers_in_every_format() {
    let (_directory, path) = numbers();
    let table = format!("t={path}");
    let query = "SELECT n, squared FROM t WHERE n > 998 ORDER BY n";
    let answer =
        |format| stdout(&run(&["sql", "-q", "--table", &table, "--format", format, "-e", query]));
    assert_eq!(answer("csv"), "n,squared\n999,998001\n1000,1000000\n");
    assert_eq!(
        answer("json"),
        "[{\"n\":999,\"squared\":998001},{\"n\":1000,\"squared\":1000000}]\n"
    );
    assert!(answer("table").contains("| 1000 | 1000000 |"));
}

#[test]
fn sql_takes_statements_from_arguments_files_and_standard_input() {
    let (directory, path) = numbers();
    let script = directory.path().join("script.sql");
    let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{path}';");
    std::fs::write(
        &script,
        format!("{create}\nSELECT count(*) AS c FROM t; -- done\nSELECT max(n) AS m FROM t"),
    )
    .unwrap();
    let answer = stdout(&run(&["sql", "-q", "--format", "csv", "-f", script.to_str().unwrap()]));
    assert_eq!(answer, "c\n1000\nm\n1000\n");

    let mut child = coscan()
        .args(["sql", "-q", "--format", "csv", "--table", &format!("t={path}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"SELECT sum(n) AS s FROM t;").unwrap();
    assert_eq!(stdout(&child.wait_with_output().unwrap()), "s\n500500\n");
}

#[test]
fn a_table_has_replicas() {
    let (directory, path) = numbers();
    let replica = directory.path().join("falling.parquet").display().to_string();
    let options = "OPTIONS ('max_row_group_size' '100')";
    let copy = format!("COPY (SELECT * FROM '{path}' ORDER BY n % 10) TO '{replica}' {options}");
    stdout(&run(&["sql", "-q", "-e", &copy]));
    let (table, replica) = (format!("t={path}"), format!("t={replica}"));
    let tables = ["sql", "-q", "--format", "csv", "--table", &table, "--replica", &replica];
    let sql = |sql: &str| run(&[&tables[..], &["-e", sql]].concat());
    let plan = stdout(&sql("EXPLAIN SELECT n + 1 FROM t"));
    assert!(plan.contains("replica=") && plan.contains("falling "), "{plan}");
    assert_eq!(stdout(&sql("SELECT sum(n) AS s FROM t WHERE squared > 998000")), "s\n1999\n");
    let jobs = [&tables[..], &["--jobs", "2", "-e", "EXPLAIN SELECT n + 1 FROM t"]].concat();
    assert!(stdout(&run(&jobs)).contains("replica="), "other sessions have it, too");

    let few = directory.path().join("few.parquet").display().to_string();
    stdout(&run(&[
        "sql",
        "-q",
        "-e",
        &format!("COPY (SELECT * FROM '{path}' LIMIT 7) TO '{few}'"),
    ]));
    let refused = run(&["sql", "-t", &table, "--replica", &format!("t={few}"), "-e", "SELECT 1"]);
    let error = stderr(&refused);
    assert!(!refused.status.success(), "{error}");
    assert!(error.contains("replica few has 7 rows and table t has 1000"), "{error}");
    let unnamed = run(&["sql", "-t", &table, "--replica", "u=x", "-e", "SELECT 1"]);
    assert_has(&stderr(&unnamed), &["add it with --table u=URL"]);
}

#[test]
fn a_query_names_files() {
    let (directory, path) = numbers();
    for location in [path, format!("{}/", directory.path().display())] {
        let sql = |sql: &str| {
            let sql = sql.replace("FROM", &format!("FROM '{location}'"));
            stdout(&run(&["sql", "-q", "--format", "csv", "-e", &sql]))
        };
        assert_eq!(sql("SELECT sum(n) AS s FROM WHERE n > 998"), "s\n1999\n");
        let plan = sql("EXPLAIN SELECT sum(n + 1) AS s FROM");
        assert!(plan.contains("SharedScanExec"), "{plan}");
    }
}

#[test]
fn a_query_names_files_on_s3_with_the_credentials_of_the_environment() {
    let (_directory, path) = numbers();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(S3Server::start());
    server.put("numbers.parquet", std::fs::read(path).unwrap());
    let environment =
        |(name, value): (String, String)| (name.replace('.', "_").to_uppercase(), value);
    let sql = |file: &str| {
        let sql = format!("SELECT sum(n) AS s FROM 's3://{BUCKET}/{file}' WHERE n > 998");
        let mut command = coscan();
        command.args(["sql", "-q", "--format", "csv", "-e", &sql]);
        command.envs(server.options().into_iter().map(environment)).output().unwrap()
    };
    assert_eq!(stdout(&sql("numbers.parquet")), "s\n1999\n");
    let missing = sql("nothing.parquet");
    let told = format!("s3://{BUCKET}/nothing.parquet does not exist. Check the URL");
    assert_has(&failure(&missing), &[&told]);
}

#[test]
fn explain_analyze_shows_what_a_scan_did() {
    let (_directory, path) = numbers();
    let explain = "EXPLAIN ANALYZE SELECT sum(squared) FROM t";
    let shown = stdout(&run(&["sql", "-q", "--table", &format!("t={path}"), "-e", explain]));
    assert_has(&shown, &["SharedScanExec", "policy=relevance", "chunks_delivered=1", "bytes_read"]);
}

#[test]
fn wrong_input_is_named_and_ends_with_a_failure() {
    let (directory, path) = numbers();
    let empty = directory.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let text = directory.path().join("text.parquet");
    std::fs::write(&text, "this is no Parquet file at all").unwrap();
    let table = |location: &Path| format!("t={}", location.display());
    let good = format!("t={path}");
    let absent = table(&directory.path().join("absent.parquet"));
    let (empty, text) = (table(&empty), table(&text));
    let cases: [(Vec<&str>, &str); 9] = [
        (vec!["sql", "--table", &absent, "-e", "SELECT 1"], "absent.parquet"),
        (vec!["sql", "--table", &empty, "-e", "SELECT 1"], "empty"),
        (vec!["sql", "--table", &text, "-e", "SELECT 1"], "is not a Parquet file"),
        (vec!["sql", "--table", "t=gopher://x/y", "-e", "SELECT 1"], "gopher"),
        (vec!["sql", "--table", "t", "-e", "SELECT 1"], "NAME=URL"),
        (vec!["sql", "--table", &good, "-e", "SELECT nothing FROM t"], "nothing"),
        (vec!["sql", "--memory", "lots", "-e", "SELECT 1"], "200MB"),
        (vec!["bench", "streams", "--table", &good], "l_orderkey"),
        (vec!["bench", "updates", "--only", "stream"], "choose of queries, checkpoint"),
    ];
    for (arguments, expected) in cases {
        assert_has(&failure(&run(&arguments)), &[expected]);
    }
}

#[test]
fn scripts_run_side_by_side_and_print_in_order() {
    let (directory, path) = numbers();
    let script = |name: &str, text: &str| {
        let path = directory.path().join(name).display().to_string();
        std::fs::write(&path, text).unwrap();
        path
    };
    // The first script takes longest, and the second prints more than is kept in memory.
    let slow = "SELECT count(*) AS slow FROM t a, t b WHERE a.n + b.n = 7; SELECT 1 AS one";
    let slow = script("slow.sql", slow);
    let many = script("many.sql", "SELECT a.n, b.n FROM t a, t b WHERE b.n <= 50 ORDER BY 1, 2");
    let own = script("own.sql", "CREATE VIEW v AS SELECT sum(n) AS s FROM t; SELECT s FROM v");
    let again = script("again.sql", "CREATE VIEW v AS SELECT 7 AS s; SELECT s FROM v");
    let scripts = [&slow, &many, &own, &again];
    let table = format!("t={path}");
    let run_with = |jobs: &str| {
        let mut arguments = vec!["sql", "-q", "--format", "csv", "--table", &table, "--jobs", jobs];
        arguments.extend(scripts.iter().flat_map(|script| ["-f", script.as_str()]));
        arguments.extend(["-e", "SELECT 'given' AS first"]);
        stdout(&run(&arguments))
    };
    let many: String =
        (1..=1000).flat_map(|a| (1..=50).map(move |b| format!("{a},{b}\n"))).collect();
    let expected = format!("first\ngiven\nslow\n6\none\n1\nn,n\n{many}s\n500500\ns\n7\n");
    for jobs in ["1", "3", "64"] {
        assert!(run_with(jobs) == expected, "{jobs} at a time");
    }
}

#[test]
fn a_script_that_fails_is_named_and_the_others_go_on() {
    let (directory, path) = numbers();
    let broken = directory.path().join("broken.sql").display().to_string();
    std::fs::write(&broken, "SELECT 1 AS before; SELECT nothing FROM t; SELECT 2 AS after")
        .unwrap();
    let table = format!("t={path}");
    let arguments = ["sql", "-q", "--format", "csv", "--table", &table, "--jobs", "2"];
    let rest = ["-f", &broken, "-e", "SELECT max(n) AS m FROM t", "-e", "SELECT 'open"];
    let output = run(&[&arguments[..], &rest].concat());
    assert!(!output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "m\n1000\nbefore\n1\n");
    let errors = stderr(&output);
    assert!(
        errors.contains(&format!("coscan: {broken}: ")) && errors.contains("nothing"),
        "{errors}"
    );
    assert!(errors.contains("coscan: -e number 2: "), "{errors}");
    assert_eq!(errors.matches("coscan: ").count(), 2, "{errors}");
    let none = run(&["sql", "--table", &table, "--jobs", "2"]);
    assert_has(&failure(&none), &["--file"]);
}

#[test]
fn a_table_is_listed_again_when_it_is_refreshed() {
    let (directory, _) = numbers();
    let table = format!("t={}/", directory.path().display());
    let more = directory.path().join("more.parquet").display().to_string();
    let script = format!(
        "COPY (SELECT 0 AS n, 0 AS squared) TO '{more}'; SELECT count(n) AS c FROM t; \
         REFRESH TABLE t; SELECT count(n) AS c FROM t; REFRESH TABLE nobody"
    );
    let output = run(&["sql", "--quiet", "--format", "csv", "-t", &table, "-e", &script]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with("c\n1000\nc\n1001\n"), "{text}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("nobody"), "{error}");
}

#[test]
fn errors_are_in_our_words() {
    let (directory, path) = numbers();
    let bytes = std::fs::read(&path).unwrap();
    // The pages are zeroed, but the footer is left.
    let damaged = directory.path().join("damaged.parquet").display().to_string();
    let data = bytes.len() / 2;
    std::fs::write(&damaged, [b"PAR1", &vec![0; data - 4][..], &bytes[data..]].concat()).unwrap();
    let table = format!("t={damaged}");
    for query in ["SELECT sum(n) FROM t", "SELECT n, count(*) FROM t GROUP BY n"] {
        let output = run(&["sql", "--table", &table, "-e", query]);
        let error = stderr(&output);
        assert!(error.starts_with("coscan: column `n` of "), "{error}");
        assert!(error.contains("write or copy the file again"), "{error}");
    }
    let output = run(&["sql", "-e", "SELEC 1"]);
    assert!(stderr(&output).starts_with("coscan: sql parser error: "), "{}", stderr(&output));
}

/// A count that takes too long to end.
#[cfg(unix)]
const FOREVER: &str = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 100000000) b WHERE a.value + b.value < 0";

/// Interrupts a command once it has printed these lines. It ends.
#[cfg(unix)]
fn assert_ends_when_interrupted(command: &mut Command, lines: &[&str]) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines();
    for line in lines {
        assert_eq!(printed.next().unwrap().unwrap(), *line);
    }
    signal(&child, "INT");
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130), "{status}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_all_scripts() {
    let ready = format!("SELECT 'ready' AS r; {FOREVER}");
    let scripts = ["-e", &ready, "-e", FOREVER, "-e", FOREVER];
    let mut command = coscan();
    command.args(["sql", "-q", "--format", "csv", "--jobs", "3"]).args(scripts);
    assert_ends_when_interrupted(&mut command, &["r"]);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_running_query() {
    let mut command = coscan();
    command.args(["sql", "-q", "--format", "csv", "-e", "SELECT 'ready' AS r", "-e", FOREVER]);
    // The second statement runs once the first answer was printed.
    assert_ends_when_interrupted(&mut command, &["r", "ready"]);
}

#[test]
fn help_teaches() {
    for (arguments, expected) in [
        (vec!["--help"], "coscan demo"),
        (vec!["demo", "--help"], "--bandwidth"),
        (vec!["sql", "--help"], "NAME=URL"),
        (vec!["sql", "--help"], "--jobs 8 -f daily.sql"),
        (vec!["sql", "--help"], "predictive"),
        (vec!["bench", "streams", "--help"], "--engines"),
        (vec!["bench", "streams", "--help"], "--mix cs11-6.6"),
        (vec!["bench", "streams", "--help"], "--constants distinct"),
        (vec!["bench", "mixed", "--help"], "--in-order-streams"),
        (vec!["bench", "open", "--help"], "Poisson"),
        (vec!["bench", "small", "--help"], "90th"),
        (vec!["bench", "small", "--help"], "default: all tables"),
        (vec!["bench", "throughput", "--help"], "all 22 queries"),
        (vec!["bench", "throughput", "--help"], "default: a quarter of all tables"),
        (vec!["bench", "flatness", "--help"], "Figure 7"),
        (vec!["bench", "partitions", "--help"], "most idle partition"),
        (vec!["bench", "updates", "--help"], "--only streams,refresh"),
        (vec!["bench", "dashboard", "--help"], "--file-bytes 2MB"),
        (vec!["sim", "--help"], "virtual time"),
    ] {
        assert!(stdout(&run(&arguments)).contains(expected), "{arguments:?}");
    }
}
