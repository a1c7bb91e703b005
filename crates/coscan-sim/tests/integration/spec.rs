//! Errors of workload files name the place and the remedy; valid files give the workload that they describe.

#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use coscan_core::{Order, Time};
use coscan_sim::claim::{Measure, Verdict};
use coscan_sim::{Disk, Query, Spec, experiment};

use crate::support::{assert_says, error};

/// A valid file. The tests change a line of it.
const FILE: &str = r#"name = "mine"
title = "two users of one table"

[machine]
cores = 4
clock = "2 GHz"
pool = "25 %"

[machine.disk.seek-transfer]
seek = "8 ms"
bandwidth = "200 MB/s"

[table.sales]
rows = 1_000_000
chunks = 100
columns = { day = 4, price = 8 }

[query.report]
columns = ["day", "price"]
cost = "3 s"

[query.peek]
columns = ["day"]
percent = 2
cost = "10 cycles/row"

[streams.users]
count = 2
apart = "1 s"
think = "500 ms"
queries = ["report-50", "peek"]
"#;

#[test]
fn a_right_file_gives_the_workload_that_it_describes() {
    let spec = Spec::parse(FILE).unwrap();
    let case = &spec.cases[0];
    let workload = case.workload(1);
    assert_eq!((spec.cases.len(), case.name.as_str()), (1, ""));
    assert_eq!(workload.pool_bytes, 3_000_000);
    assert_eq!(workload.tables[0].layout.page_count(), 200);
    assert_eq!(
        workload.streams.iter().map(|s| s.start).collect::<Vec<_>>(),
        [Time(0), Time(1_000_000_000)]
    );
    let [report, peek] = workload.streams[1].queries.as_slice() else { panic!("two queries") };
    assert_eq!((report.label.as_str(), report.think_ns), ("report-50", 0));
    assert_eq!(report.rows[0].end - report.rows[0].start, 500_000);
    assert_eq!(report.cost.row_ps, 3_000_000, "3 s for a million rows");
    assert_eq!((peek.label.as_str(), peek.think_ns, peek.groups.len()), ("peek", 500_000_000, 1));
    assert_eq!(peek.cost.row_ps, 5_000, "10 cycles at 2 GHz");
    let disk = Disk::SeekTransfer { seek_ns: 8_000_000, bytes_per_second: 200_000_000 };
    assert_eq!((case.machine.disk, case.machine.cores), (disk, 4));
}

#[test]
fn limits_and_other_disks_are_read() {
    let disk = "[machine.disk.object-store]\nlatency = \"30 ms\"\nrequest_bandwidth = \"90 MB/s\"\n\
                bandwidth = \"1 GB/s\"\nrequests = 16";
    let limits = "loads_in_flight = 8\nquantum = \"64 KiB\"\nactive_workers = 5\nspace_timeout = \"2 s\"\nwait_max = \"9 s\"\n\
                  pool_changes = [{ at = \"1 min\", pool = \"50 %\" }]";
    let text = FILE
        .replace("[machine.disk.seek-transfer]\nseek = \"8 ms\"\nbandwidth = \"200 MB/s\"", disk)
        .replace("cores = 4", &format!("cores = 4\n{limits}"));
    let case = &Spec::parse(&text).unwrap().cases[0];
    let disk = Disk::ObjectStore {
        latency_ns: 30_000_000,
        bytes_per_second_per_request: 90_000_000,
        bytes_per_second: 1_000_000_000,
        requests_max: 16,
    };
    let config = case.machine.config;
    assert_eq!((case.machine.disk, case.machine.quantum_bytes), (disk, 65_536));
    assert_eq!((config.loads_in_flight_max, config.active_workers_max), (8, 5));
    assert_eq!((config.space_timeout_ns, config.wait_max_ns), (2_000_000_000, 9_000_000_000));
    assert_eq!(case.workload(1).pool_changes, [(Time(60_000_000_000), 6_000_000)]);
}

#[test]
fn the_seed_decides_what_is_random_and_nothing_else() {
    let spec = Spec::parse(FILE).unwrap();
    let places = |seed| {
        let workload = spec.cases[0].workload(seed);
        workload.streams.iter().map(|stream| stream.queries[0].rows.clone()).collect::<Vec<_>>()
    };
    assert_eq!(places(1), places(1));
    assert_ne!(places(1), places(2));
}

#[test]
fn how_many_queries_are_in_order_changes_nothing_else() {
    let queries = |percent: &str| {
        let line = format!("in_order_percent = {percent}\ncount = 2");
        let spec = Spec::parse(&FILE.replacen("count = 2", &line, 1)).unwrap();
        let streams = spec.cases[0].workload(1).streams;
        streams.into_iter().flat_map(|stream| stream.queries).collect::<Vec<_>>()
    };
    let as_before = Spec::parse(FILE).unwrap().cases[0].workload(1).streams;
    let as_before: Vec<_> = as_before.into_iter().flat_map(|stream| stream.queries).collect();
    let in_order = |queries: &[Query]| {
        queries.iter().map(|query| query.order == Order::InOrder).collect::<Vec<_>>()
    };
    let (none, some, all) = (queries("0"), queries("50"), queries("100"));
    assert_eq!(none, as_before);
    assert_eq!((in_order(&none), in_order(&all)), (vec![false; 4], vec![true; 4]));
    assert!(in_order(&some).contains(&true) && in_order(&some).contains(&false));
    let anyhow = |queries: Vec<Query>| {
        let any = queries.into_iter().map(|query| Query { order: Order::Any, ..query });
        any.collect::<Vec<_>>()
    };
    assert_eq!((anyhow(some), anyhow(all)), (none.clone(), none));
}

#[test]
fn an_index_finds_rows_and_the_pages_that_hold_them() {
    let text = FILE.replacen("percent = 2\n", "percent = 2\nindex_rows = 3\n", 1);
    let before = Spec::parse(FILE).unwrap().cases[0].workload(1);
    let workload = Spec::parse(&text).unwrap().cases[0].workload(1);
    for (stream, before) in workload.streams.iter().zip(&before.streams) {
        let (report, peek) = (&stream.queries[0], &stream.queries[1]);
        assert_eq!((&report.rows, &report.selected), (&before.queries[0].rows, &None));
        let range = &before.queries[1].rows[0];
        assert!(peek.rows.len() <= 3 && peek.rows.iter().all(|row| range.contains(&row.start)));
        // A page for each column of each chunk; there is one column.
        let layout = &workload.tables[0].layout;
        let chunks = peek.chunks(layout).iter().map(|chunk| chunk.0).collect::<Vec<_>>();
        let selected = peek.selected.iter().flatten().map(|page| page.0).collect::<Vec<_>>();
        assert_eq!(selected, chunks);
    }
}

#[test]
fn unreadable_text_is_shown_with_its_line() {
    assert_says(
        &error(FILE, "seek = \"8 ms\"", "seek = 8"),
        &["line 10", "a time such as \"3 s\""],
    );
    assert_says(
        &error(FILE, "pool = \"25 %\"", "pool = \"25\""),
        &["line 7", "\"1 GiB\", or \"40 %\""],
    );
    assert_says(&error(FILE, "cost = \"3 s\"", "cost = \"3\""), &["line 20", "\"20 ns/row\""]);
    assert_says(
        &error(FILE, "cores = 4", "core = 4"),
        &["line 5", "unknown field `core`", "`cores`"],
    );
    assert_says(
        &error(FILE, "[machine.disk.seek-transfer]", "[machine.disk.tape]"),
        &["`tape`", "`raid`"],
    );
    assert_says(&error(FILE, "rows = 1_000_000\n", ""), &["missing field `rows`"]);
}

#[test]
fn unknown_names_are_answered_with_known_ones() {
    let says =
        |line: &str, instead: &str, parts: &[&str]| assert_says(&error(FILE, line, instead), parts);
    says("\"peek\"]", "\"look\"]", &["streams.users.queries", "`look`", "report, peek"]);
    says(
        "columns = [\"day\"]",
        "columns = [\"date\"]",
        &["query.peek.columns", "`date`", "day, price"],
    );
    says("percent = 2", "table = \"buys\"", &["query.peek.table", "`buys`", "sales"]);
}

#[test]
fn invalid_parts_are_named() {
    let says =
        |line: &str, instead: &str, parts: &[&str]| assert_says(&error(FILE, line, instead), parts);
    says("clock = \"2 GHz\"\n", "", &["query.peek.cost", "`clock`", "[machine]"]);
    says("chunks = 100", "", &["table.sales", "`chunks`", "`chunk_rows`"]);
    says("chunks = 100", "chunks = 0", &["table.sales", "`chunk_rows`"]);
    says("percent = 2", "percent = 200", &["query.peek.percent", "at most 100"]);
    says("percent = 2", "percent = 2\nrows = [[0, 5]]", &["query.peek", "only one of"]);
    says("percent = 2", "chunks = [[90, 101]]", &["query.peek.chunks", "100 chunks"]);
    says("count = 2", "count = 0", &["streams.users.count", "at least 1"]);
    says("count = 2", "draw = 3", &["streams.users", "`draw = 4`"]);
    says("queries =", "percent = [1]\nqueries =", &["streams.users", "need `draw`"]);
    says("count = 2", "in_order_percent = 101", &["streams.users.in_order_percent", "0 to 100"]);
    says("percent = 2", "index_rows = 0", &["query.peek.index_rows", "at least one"]);
    says("cores = 4", "cores = 0", &["machine.cores", "at least 1"]);
}

#[test]
fn a_sweep_gives_a_case_for_each_value_and_its_errors_name_the_case() {
    let swept = |sweep: &str| Spec::parse(&format!("{FILE}\n{sweep}"));
    let pools = r#"
        [[sweep]]
        key = "machine.pool"
        values = ["10 %", "50 %"]
        [[sweep]]
        name = "part of the table"
        key = "query.peek.percent"
        values = { few = 1, many = 30 }
    "#;
    let spec = swept(pools).unwrap();
    let names: Vec<_> = spec.cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["10 %-few", "10 %-many", "50 %-few", "50 %-many"]);
    let pools: Vec<_> = spec.cases.iter().map(|case| case.workload(1).pool_bytes).collect();
    assert_eq!(pools, [1_200_000, 1_200_000, 6_000_000, 6_000_000]);
    assert_eq!(spec.sweeps[1].name, "part of the table");

    let wrong = |sweep: &str| swept(sweep).unwrap_err().to_string();
    let nowhere = wrong("[[sweep]]\nkey = \"machines.pool\"\nvalues = [\"10 %\"]");
    assert_says(&nowhere, &["sweep of machines.pool", "`machines`", "machine"]);
    let bad = wrong("[[sweep]]\nkey = \"query.peek.percent\"\nvalues = [1, 101]");
    assert_says(&bad, &["case `101`", "query.peek.percent"]);
    assert_says(&wrong("[[sweep]]\nkey = \"machine.cores\"\nvalues = []"), &["values = [1, 2]"]);
}

#[test]
fn published_results_name_metrics_and_cases_that_exist() {
    let with = |text: &str| Spec::parse(&format!("{FILE}\n{text}"));
    let spec = with("[[paper]]\npolicy = \"normal\"\nbytes_read = \"2 MB\"").unwrap();
    assert_eq!(spec.paper[0].value, 2_000_000.0);
    let wrong = |text: &str| with(text).unwrap_err().to_string();
    assert_says(
        &wrong("[[paper]]\npolicy = \"normal\"\ntime = 3"),
        &["paper.time", "stream_avg_s"],
    );
    let case = wrong("[[paper]]\npolicy = \"normal\"\ncase = \"x\"\ntotal_s = 3");
    assert_says(&case, &["paper.case", "`x`"]);
}

#[test]
fn claims_say_how_they_are_judged() {
    let with = |text: &str| {
        let figures = "[[paper]]\npolicy = \"normal\"\ntotal_s = 8\n[[paper]]\npolicy = \"attach\"\ntotal_s = 4";
        let claim = format!("[[claim]]\nsays = \"so\"\nmetric = \"total_s\"\n{text}");
        Spec::parse(&format!("{FILE}\n{figures}\n{claim}"))
    };
    let printed = with("policy = \"attach\"\nto = \"normal\"").unwrap();
    let judged = printed.claims[0].judge(&printed.paper, |_, policy| match policy {
        "attach" => Some(3.0),
        _ => Some(6.0),
    });
    assert_eq!((judged.verdict, judged.comparisons[0].paper), (Verdict::Holds, Some(0.5)));
    let order = with("smallest_first = [\"attach\", \"normal\"]").unwrap();
    let policies = ["attach", "normal"].map(str::to_owned).to_vec();
    assert_eq!(order.claims[0].measure, Measure::Order(policies));
    let wrong = |text: &str| with(text).unwrap_err().to_string();
    assert_says(&wrong("policy = \"elevator\""), &["claim `so`", "`[[paper]]`", "`at_most`"]);
    assert_says(&wrong(""), &["claim `so`", "`smallest_first`"]);
    assert_says(&wrong("policy = \"normal\"\ncases = [\"x\"]"), &["claim `so`", "`x`"]);
}

#[test]
fn every_experiment_can_be_read_under_its_own_name() {
    for name in experiment::names() {
        let spec = experiment::find(name).unwrap();
        assert_eq!(spec.name, name);
        assert!(!spec.source.is_empty() && !spec.cases.is_empty(), "{name}");
    }
    assert_says(&experiment::find("cs07").unwrap_err().to_string(), &["`cs07`", "cs07-table2"]);
}

/// The example in `docs/workloads.md`.
#[test]
fn the_documented_workload_can_be_read() {
    let page = include_str!("../../../../docs/workloads.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let extending =
        page.split("```toml\n").nth(2).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(Spec::parse(extending).unwrap().cases.len(), 3);
    let spec = Spec::parse(example).unwrap();
    assert_eq!(spec.cases.len(), 4);
    let workload = spec.cases[0].workload(1);
    assert_eq!(workload.streams.len(), 7);
    let today = &workload.streams[6].queries[0];
    assert_eq!(today.rows, [490_000_000..500_000_000]);
    assert!(workload.streams.windows(2).take(5).all(|pair| pair[0].start < pair[1].start));
}

#[test]
fn a_file_inherits_what_it_does_not_override() {
    let text = r#"
        name = "mine"
        title = "the load of cs07-table2, with another pool and other slow queries"
        extends = "cs07-table2"
        [machine]
        pool = "2 GiB"
        [query.S]
        cost = "70 s"
        [[sweep]]
        key = "streams.all.count"
        values = [4, 16]
    "#;
    let spec = Spec::parse(text).unwrap();
    let base = experiment::find("cs07-table2").unwrap();
    let (mine, other) = (spec.cases[1].workload(1), base.cases[0].workload(1));
    assert_eq!((mine.pool_bytes, other.pool_bytes), (2 << 30, 512 << 20));
    assert_eq!(spec.cases[1].machine.disk, base.cases[0].machine.disk);
    let costs = |workload: &coscan_sim::Workload, kind: &str| {
        let queries = workload.queries().filter(|query| query.label.starts_with(kind));
        queries.map(|query| query.cost).collect::<Vec<_>>()
    };
    assert_eq!(costs(&mine, "F"), costs(&other, "F"));
    assert_eq!(costs(&mine, "S")[0].row_ps, 2 * costs(&other, "S")[0].row_ps - 6_667);
    // Texts about the other experiment are not inherited.
    assert!(!base.paper.is_empty() && spec.paper.is_empty() && spec.source.is_empty());
    assert_eq!(spec.parameters.iter().find(|part| part.0 == "query S").unwrap().1, "cost 70 s");

    let wrong = Spec::parse(&text.replace("cs07-table2\"", "cs07\"")).unwrap_err().to_string();
    assert_says(&wrong, &["extends", "`cs07`", "cs07-table2"]);
}
