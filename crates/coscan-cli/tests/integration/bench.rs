//! `coscan bench` and `coscan demo`: measurements are complete, and answers equal.

use coscan_core::log::Log;
use tempfile::TempDir;

use crate::cli::numbers;
use crate::program::{assert_has, failure, json, run, stderr, stdout};

/// The words of a command line.
fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

/// The reports that a benchmark wrote.
fn reports(path: &str) -> Vec<serde_json::Value> {
    json(path).as_array().unwrap().clone()
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

#[test]
fn a_dashboard_sees_the_files_that_are_added() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (data, json) = (path("data"), path("dashboard.json"));
    let bench = ["bench", "dashboard", "--data", &data, "--json", &json];
    let numbers = "--files 3 --file-bytes 100kB --refreshes 3 --latency-ms 1 --engines datafusion,relevance,coscan";
    let shown = stdout(&run(&[&bench[..], &words(numbers)].concat()));
    assert_has(&shown, &["3 files at first", "first refresh", "in the new file", "answers equal"]);
    let reports = reports(&json);
    let engines: Vec<_> = reports.iter().map(|report| report["engine"].as_str().unwrap()).collect();
    assert_eq!(engines, ["datafusion", "relevance", "coscan"]);
    for report in &reports {
        assert_eq!(report["answers_equal"], true);
        assert_eq!(report["refreshes"].as_array().unwrap().len(), 3);
    }
    // The pool holds all files, so that only the new one is read.
    let bytes =
        |report: &serde_json::Value, when: &str| report[when]["bytes_read"].as_u64().unwrap();
    for report in &reports[1..] {
        let (first, later) = (bytes(report, "first"), bytes(report, "later"));
        assert!(0 < later && later < first / 2, "{report}");
        assert!(later < bytes(&reports[0], "later"), "{report}");
    }
    let left: Vec<_> = std::fs::read_dir(&data).unwrap().collect();
    assert_eq!(left.len(), 1, "the directory of the run is removed: {left:?}");
    for (wrong, expected) in
        [("--panels 99", "there are 14 panels"), ("--files 1000", "at most 1000")]
    {
        assert_has(&failure(&run(&[&bench[..], &words(wrong)].concat())), &[expected]);
    }
}
