//! The binary, run by its command line.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use coscan_core::log::Log;
use coscan_testing::s3::{BUCKET, S3Server};
use tempfile::TempDir;

#[cfg(unix)]
use crate::program::signal;
use crate::program::{assert_has, coscan, failure, json, run, stderr, stdout};

/// The words of a command line.
fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

/// The reports that a benchmark wrote.
fn reports(path: &str) -> Vec<serde_json::Value> {
    json(path).as_array().unwrap().clone()
}

/// A directory with `numbers.parquet`: `n` from 1 to 1000, and `squared`.
fn numbers() -> (TempDir, String) {
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
fn queries_of_the_user_run_alone_on_any_table() {
    let (_directory, path) = numbers();
    let table = format!("t={path}");
    let bench = ["bench", "alone", "--table", &table, "--engines", "relevance", "--rounds", "1"];
    let shown = stdout(&run(&[&bench[..], &["-e", "SELECT sum(squared) FROM t"]].concat()));
    assert!(shown.contains("SELECT sum(squared) FROM t"), "{shown}");
    assert!(!shown.contains("ANSWERS DIFFER"), "{shown}");
    let output = run(&bench);
    assert!(!output.status.success(), "the built-in queries need lineitem");
    assert_has(&stderr(&output), &["l_orderkey"]);
}

#[test]
fn queries_in_order_are_refused_where_the_rows_are_not() {
    let directory = TempDir::new().unwrap();
    for (name, keys) in [("a", "501, 1000"), ("b", "1, 500")] {
        let path = directory.path().join(name).with_extension("parquet").display().to_string();
        let rows = format!("SELECT value AS l_orderkey FROM generate_series({keys})");
        stdout(&run(&["sql", "-q", "-e", &format!("COPY ({rows}) TO '{path}'")]));
    }
    let table = format!("t={}", directory.path().display());
    let output = run(&["bench", "streams", "--table", &table, "--mix", "FO"]);
    assert_has(&failure(&output), &["leave out queries in order (O)"]);
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
        (vec!["sim", "--help"], "virtual time"),
    ] {
        assert!(stdout(&run(&arguments)).contains(expected), "{arguments:?}");
    }
}

#[test]
fn demo_and_bench_report_equal_answers() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (data, page, json) = (path("data"), path("demo.html"), path("streams.json"));
    let decisions = path("decisions.jsonl");
    let demo = ["demo", "--scale", "0.01", "--bandwidth", "20MB", "--data", &data, "--html", &page];
    let shown = stdout(&run(&demo));
    assert_has(&shown, &["datafusion", "normal", "attach", "elevator", "relevance", "F-100"]);
    assert!(std::fs::read_to_string(&page).unwrap().contains("<svg"));

    let table = format!("lineitem={data}");
    let numbers = "--streams 3 --queries 2 --mix F --ranges 10,100 --pool-bytes 4MB --stagger-ms 0";
    let bench = ["bench", "streams", "--table", &table, "--engines", "datafusion,relevance"];
    let files = ["--json", &json, "--record", &decisions];
    stdout(&run(&[&bench[..], &words(numbers), &files].concat()));
    let log: Log = std::fs::read_to_string(&decisions).unwrap().parse().unwrap();
    assert!(log.replay().unwrap().decisions > 0);
    let reports_of_one_round = reports(&json);
    assert_eq!(reports_of_one_round.len(), 2);
    for report in &reports_of_one_round {
        assert_eq!(report["answers_equal"], true);
        assert_eq!(report["queries"].as_array().unwrap().len(), 6);
        assert!(report["bytes_read"].as_u64().unwrap() > 0);
    }

    let rounds = ["--rounds", "6", "--constants", "distinct", "--json", &json];
    let shown = stdout(&run(&[&bench[..], &words(numbers), &rounds].concat()));
    assert_has(&shown, &["F-100", "medians of 6 rounds", "95 % interval"]);
    for report in reports(&json) {
        assert_eq!(report["answers_equal"], true);
        assert_eq!(report["runs"].as_array().unwrap().len(), 6);
        let ratio = &report["cpu_ratio"];
        let [low, high] = [0, 1].map(|end| ratio["interval"][end].as_f64().unwrap());
        assert!((low..=high).contains(&ratio["median"].as_f64().unwrap()), "{ratio}");
    }
    let none = run(&[&bench[..], &["--rounds", "0"]].concat());
    assert_has(&stderr(&none), &["at least one round"]);
}

#[test]
fn tables_that_change_are_measured_in_parts() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (data, json) = (path("data"), path("updates.json"));
    let bench = ["bench", "updates", "--scale", "0.01", "--data", &data, "--json", &json];
    let numbers = "--only streams,refresh --streams 2 --queries 2";
    let shown = stdout(&run(&[&bench[..], &words(numbers)].concat()));
    assert_has(
        &shown,
        &["2 streams of 2 queries", "MB at rest", "TPC-H, 2 streams", "rows inserted"],
    );
    assert!(!shown.contains("statements/s"), "{shown}");
    let text = std::fs::read_to_string(&json).unwrap();
    let reports: serde_json::Value = serde_json::from_str(&text).unwrap();
    let report = &reports[0];
    assert!(report["streams"]["updated_rows"].as_u64().unwrap() > 0, "{report}");
    assert!(report["refresh"]["deleted_rows"].as_u64().unwrap() > 0, "{report}");
    assert!(report["checkpoint"].is_null(), "{report}");
    let left: Vec<_> = std::fs::read_dir(&data).unwrap().collect();
    assert_eq!(left.len(), 8, "the database is removed: {left:?}");
}

#[test]
fn mixed_streams_run_together_and_alone_with_equal_answers() {
    let directory = TempDir::new().unwrap();
    coscan_bench::tpch::lineitem(directory.path(), 0.01, &|_, _| {}).unwrap();
    let table = format!("lineitem={}", directory.path().display());
    let json = directory.path().join("mixed.json").display().to_string();
    let page = directory.path().join("mixed.html").display().to_string();
    let numbers = "--in-order-streams 2 --streams 2 --short-streams 1 --point-streams 1 --queries 2 --short-queries 3";
    let rest = ["--think-ms", "0", "--stagger-ms", "0", "--json", &json, "--html", &page];
    let bench = ["bench", "mixed", "--table", &table];
    let shown = stdout(&run(&[&bench[..], &words(numbers), &rest].concat()));
    assert_has(
        &shown,
        &["datafusion", "normal", "relevance", "in order", "any order", "equal answers"],
    );
    assert!(std::fs::read_to_string(&page).unwrap().contains("<svg"));
    let runs = reports(&json);
    let name = |run: &serde_json::Value| run["run"].as_str().unwrap().to_owned();
    let names: Vec<_> = runs.iter().map(name).collect();
    assert_eq!(names, ["together", "in order", "any order", "short", "points"]);
    for engine in runs[0]["engines"].as_array().unwrap() {
        assert_eq!(engine["answers_equal"], true);
        let queries = engine["queries"].as_array().unwrap();
        let of_stream = |stream| queries.iter().filter(move |query| query["stream"] == stream);
        for (stream, kinds, count_min) in [(0, "O", 2), (2, "FS", 2), (4, "FS", 1), (5, "P", 1)] {
            assert!(of_stream(stream).count() >= count_min, "{engine}");
            let is_kind =
                |query: &serde_json::Value| kinds.contains(query["kind"].as_str().unwrap());
            assert!(of_stream(stream).all(is_kind), "{engine}");
        }
        assert!(of_stream(4).all(|query| query["percent"] == 1));
    }
}

#[test]
fn queries_that_arrive_at_random_times_get_equal_answers() {
    let directory = TempDir::new().unwrap();
    coscan_bench::tpch::lineitem(directory.path(), 0.01, &|_, _| {}).unwrap();
    let table = format!("lineitem={}", directory.path().display());
    let json = directory.path().join("open.json").display().to_string();
    let bench = ["bench", "open", "--table", &table, "--engines", "datafusion,coscan"];
    let numbers = words("--queries 6 --ranges 10,100 --mix FSP --pool-bytes 4MB");
    let loads = ["--loads", "1,3", "--json", &json];
    let shown = stdout(&run(&[&bench[..], &numbers, &loads].concat()));
    assert_has(&shown, &["6 queries", "closed loop", "coscan", "p95", "late", "highest rate"]);
    let reports = reports(&json);
    assert_eq!(reports.len(), 2);
    for report in &reports {
        let rates = report["rates"].as_array().unwrap();
        let per_s = |index: usize| rates[index]["per_s"].as_f64().unwrap();
        assert!((per_s(1) / per_s(0) - 3.0).abs() < 1e-9, "{report}");
        for rate in rates {
            assert_eq!(rate["answers_equal"], true);
            assert!(rate["late"].as_u64().unwrap() <= 6 && rate["p95_s"].as_f64() > Some(0.0));
        }
    }
    let shown = stdout(&run(&[&bench[..], &numbers, &["--rates", "50"]].concat()));
    assert_has(&shown, &["50.00", "highest rate"]);
    let output = run(&[&bench[..], &["--rates", "0"]].concat());
    assert_has(&stderr(&output), &["give numbers from 0.001"]);
}

#[test]
fn joins_and_scans_run_with_several_pools() {
    let directory = TempDir::new().unwrap();
    coscan_bench::tpch::tables(directory.path(), 0.02, &|_, _| {}).unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (table, json) = (format!("lineitem={}", path("lineitem-sf0.02.parquet")), path("a.json"));
    let bench = ["bench", "streams", "--table", &table, "--mix", "cs11-6.6", "--stagger-ms", "0"];
    let rest =
        "--streams 4 --queries 4 --ranges 10,100 --chunk-rows 8192 --engines datafusion,relevance";
    let rest = words(rest);
    let pools = ["--pools", "50,100", "--json", &json];
    let without = run(&[&bench[..], &rest, &pools].concat());
    assert_has(&stderr(&without), &["--orders"]);

    let orders = ["--orders", &path("orders-sf0.02.parquet")].map(str::to_owned);
    let orders = orders.each_ref().map(String::as_str);
    let shown = stdout(&run(&[&bench[..], &rest, &pools, &orders].concat()));
    assert_has(
        &shown,
        &["datafusion", "relevance-50", "relevance-100", "CMJ1-", "O1-", "answers equal"],
    );
    let reports = reports(&json);
    assert_eq!(reports.len(), 3);
    for report in &reports {
        assert_eq!(report["answers_equal"], true);
        assert_eq!(report["queries"].as_array().unwrap().len(), 16);
    }
    let bytes: Vec<_> = reports.iter().map(|r| r["bytes_read"].as_u64().unwrap()).collect();
    assert!(bytes[2] <= bytes[1] && bytes[1] < bytes[0], "{bytes:?}");
}

#[test]
fn a_scan_on_several_partitions_reads_every_chunk_once() {
    let directory = TempDir::new().unwrap();
    coscan_bench::tpch::lineitem(directory.path(), 0.05, &|_, _| {}).unwrap();
    let table = format!("lineitem={}", directory.path().display());
    let json = directory.path().join("partitions.json").display().to_string();
    let bench = ["bench", "partitions", "--table", &table, "--partitions", "1,2"];
    let rest = ["--engines", "datafusion,relevance", "--rounds", "1", "--json", &json];
    let shown = stdout(&run(&[&bench[..], &rest].concat()));
    for part in ["TPC-H Q1", "TPC-H Q6", "idle [%]", "relevance", "equal answers"] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    let reports = reports(&json);
    assert_eq!(reports.len(), 2 * 2 * 2, "queries, numbers of partitions, engines");
    for report in &reports {
        assert_eq!(report["answers_equal"], true);
        let scans = report["scans"].as_array().unwrap();
        let sum = |name: &str| scans.iter().map(|scan| scan[name].as_f64().unwrap()).sum::<f64>();
        // There are three row groups, the last one short and in the chunk of the one before. They
        // are read once.
        assert_eq!(sum("rows"), 299_814.0, "{report}");
        assert!((sum("chunks") - 2.0).abs() < 1e-9, "{report}");
        assert!(scans.iter().all(|scan| (0.0..=1.0).contains(&scan["idle"].as_f64().unwrap())));
        if report["engine"] != "datafusion" {
            assert_eq!(scans.len() as u64, report["partitions"].as_u64().unwrap(), "{report}");
        }
        if report["partitions"] == 1 {
            assert_eq!(report["speed"], 1.0);
        }
    }
    let none = run(&["bench", "partitions", "--table", &table, "--partitions", "0"]);
    assert_has(&stderr(&none), &["nothing to run"]);
}

#[test]
fn small_queries_give_equal_answers_on_every_engine() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (data, json) = (path("data"), path("small.json"));
    let numbers = "--scale 0.01 --streams 3 --queries 8 --rounds 2 --warm";
    let engines = ["--engines", "datafusion,normal,relevance", "--data", &data, "--json", &json];
    let bench = [&["bench", "small"][..], &words(numbers), &engines];
    let shown = stdout(&run(&bench.concat()));
    assert_has(
        &shown,
        &["relevance", "90th percentile", "join lines and parts (Q14)", "answers equal"],
    );
    let reports = reports(&json);
    assert_eq!(reports.len(), 3);
    for report in &reports {
        assert_eq!(report["answers_equal"], true);
        let counts = report["kinds"].as_array().unwrap().iter().map(|kind| kind["count"].as_u64());
        assert_eq!(counts.map(Option::unwrap).sum::<u64>(), 2 * 3 * 8);
        let times = ["median_s", "p90_s", "p99_s", "total_s"].map(|name| report[name].as_f64());
        assert!(times.into_iter().all(|time| time.unwrap() > 0.0), "{report}");
    }
    for name in ["median", "p90", "p99", "total"] {
        assert_eq!(reports[0]["ratios"][name], 1.0);
    }
    let none = run(&["bench", "small", "--data", &data, "--streams", "0"]);
    assert_has(&stderr(&none), &["nothing to run"]);
}

#[test]
fn streams_of_tpch_queries_give_equal_answers_on_every_engine() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (data, json) = (path("data"), path("throughput.json"));
    let numbers = "--scale 0.01 --streams 2 --seed 3 --bandwidth 100MB --pool-bytes 4MB";
    let engines = ["--engines", "datafusion,coscan", "--data", &data, "--json", &json];
    let bench = [&["bench", "throughput"][..], &words(numbers), &engines];
    let shown = stdout(&run(&bench.concat()));
    let parts = ["datafusion", "coscan", "queries per hour x scale", "Q22", "answers equal"];
    for part in parts.into_iter().chain(["data still needed", "5 or more"]) {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    let reports = reports(&json);
    let engines: Vec<_> = reports.iter().map(|report| report["engine"].as_str().unwrap()).collect();
    assert_eq!(engines, ["datafusion", "coscan"]);
    for report in &reports {
        assert_eq!(report["answers_equal"], true);
        let queries = report["queries"].as_array().unwrap();
        for stream in 0..2 {
            let of_stream = queries.iter().filter(|query| query["stream"] == stream);
            let mut numbers: Vec<_> =
                of_stream.map(|query| query["query"].as_u64().unwrap()).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (1..=22).collect::<Vec<u64>>());
        }
        assert!(queries.iter().all(|query| query["latency_s"].as_f64().unwrap() > 0.0));
        let figures = ["total_s", "stream_avg_s", "bytes_read", "cpu_s", "throughput_at_size"];
        assert!(figures.iter().all(|name| report[name].as_f64().unwrap() > 0.0), "{report}");
    }
    let sharing = reports.iter().map(|report| report["sharing"].as_array().unwrap());
    let needed = sharing.map(|moments| {
        let bytes = moments.iter().flat_map(|moment| moment["bytes"].as_array().unwrap());
        bytes.map(|bytes| bytes.as_u64().unwrap()).sum::<u64>()
    });
    let needed: Vec<_> = needed.collect();
    assert!(needed[0] == 0 && needed[1] > 0, "only coscan knows its scans: {needed:?}");
    let none = run(&["bench", "throughput", "--data", &data, "--streams", "0"]);
    assert_has(&stderr(&none), &["nothing to run"]);
}
