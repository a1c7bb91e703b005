//! Workload files with tables that change, and our experiments on them.

#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::sync::Arc;

use coscan_core::{ChunkIndex, Order, PolicyKind, Time};
use coscan_sim::experiment::{self, Prepared};
use coscan_sim::{Options, Spec, bound};

use crate::support::{assert_says, error};

/// A valid file. The tests change a line of it.
const FILE: &str = r#"
name = "changes"
title = "a table that changes in every way"

[machine]
cores = 4
pool = "50 %"
disk.perfect.chunk = "1 ms"

[table.sales]
rows = 1_000
chunks = 10
columns = { day = 4, price = 8 }
local_percent = 20
appends = { every = "1 s", rows = 250, count = 2 }
checkpoints = { start = "5 s", every = "3 s", count = 2, percent = 30, begin_percent = 10, cost = "2 ns/row" }

[query.report]
cost = "3 s"

[streams.new]
queries = ["report", "report-50"]

[streams.old]
version = 0
queries = ["report"]
"#;

fn chunks(chunks: std::ops::Range<u32>) -> Vec<ChunkIndex> {
    chunks.map(ChunkIndex).collect()
}

#[test]
fn a_file_says_how_its_tables_change() {
    let workload = Spec::parse(FILE).unwrap().cases[0].workload(1);
    let table = &workload.tables[0];
    assert_eq!((table.initial_chunk_count, table.rows_at_start()), (10, 1_000));
    assert_eq!(workload.pool_bytes, 6_000, "half of what the table has at the start");
    // Two local chunks, two files of three chunks, and two generations of three chunks.
    assert_eq!(table.layout.chunk_count(), 10 + 2 + 2 * 3 + 2 * 3);
    let last = table.layout.rows(ChunkIndex(14));
    assert_eq!(last.end - last.start, 50, "the end of the first file");
    let changes = workload.table_changes.iter();
    let changes: Vec<_> =
        changes.map(|(at, c)| (at.0 / 1_000_000_000, &c.replaced[..], &c.added[..])).collect();
    let expected: [(u64, Vec<_>, Vec<_>); 3] = [
        (0, chunks(8..10), chunks(10..12)),
        (1, vec![], chunks(12..15)),
        (2, vec![], chunks(15..18)),
    ];
    for (change, (at, replaced, added)) in changes.iter().zip(&expected) {
        assert_eq!(*change, (*at, &replaced[..], &added[..]));
    }
    let versions: Vec<_> = workload.queries().map(|query| query.version).collect();
    assert_eq!(versions, [None, None, Some(0), None, None]);

    let checkpoints = workload.streams.last().unwrap();
    assert_eq!((checkpoints.start, checkpoints.while_others_run), (Time(5_000_000_000), true));
    let [first, second] = checkpoints.queries.as_slice() else { panic!("two checkpoints") };
    assert_eq!((first.label.as_str(), first.order), ("checkpoint of sales", Order::InOrder));
    assert_eq!((first.think_ns, second.think_ns), (0, 3_000_000_000));
    assert_eq!((first.rows.as_slice(), first.cost.row_ps), (&[100..400][..], 2_000));
    let of = |query: &coscan_sim::Query| query.change.clone().unwrap();
    assert_eq!((of(first).replaced, of(first).added), (chunks(1..4), chunks(18..21)));
    assert_eq!((of(second).replaced, of(second).added), (chunks(18..21), chunks(21..24)));
}

#[test]
fn what_contradicts_itself_is_named() {
    let says =
        |line: &str, instead: &str, parts: &[&str]| assert_says(&error(FILE, line, instead), parts);
    let checkpoints = "table.sales.checkpoints";
    says("version = 0", "version = 2", &["streams.old.version", "versions 0 to 1"]);
    says("local_percent = 20", "local_percent = 120", &["sales.local_percent", "0 to 100"]);
    says("rows = 250", "rows = 0", &["table.sales.appends", "at least one row"]);
    says("every = \"1 s\"", "every = \"0 s\"", &["table.sales.appends", "above 0"]);
    says("rows = 250", "chunks = 2", &["unknown field `chunks`", "`rows`"]);
    says("percent = 30", "percent = 130", &[checkpoints, "at most 100"]);
    says("percent = 30", "percent = 0.1", &[checkpoints, "at least one chunk"]);
    says("begin_percent = 10", "begin_percent = 80", &[checkpoints, "no more than 100"]);
    let selection = "cost = \"3 s\"\nindex_rows = 3";
    says("cost = \"3 s\"", selection, &["query.report.index_rows", "`sales` changes"]);
    let clustered = "[table.days]\nrows = 100\nclustered_with = \"sales\"\ncolumns = { name = 9 }\n\n[query.report]\ntable = \"sales\"";
    says("[query.report]", clustered, &["table.sales", "does not change"]);
}

/// Bytes read in each case of an experiment of ours, with the first seed.
fn bytes_read(name: &str, policy: PolicyKind) -> Vec<u64> {
    let spec = experiment::find(name).unwrap();
    let cases = spec.cases.iter().map(|case| {
        let prepared = Arc::new(Prepared::new(case, 1).unwrap());
        let run = prepared.run(policy.build(), Options::default()).unwrap();
        let bytes = run.outcome.bytes_read;
        assert!(bound::lower_bound_bytes(&prepared.workload) <= bytes, "{name} {}", case.name);
        bytes
    });
    cases.collect()
}

#[test]
fn what_two_versions_have_in_common_is_read_for_both() {
    let bytes = bytes_read("two-versions", PolicyKind::Relevance);
    let [none, _, fifth, half, all] = bytes[..] else { panic!("five cases") };
    let ratio = |bytes: u64| bytes as f64 / none as f64;
    assert!(ratio(fifth) < 1.2 && ratio(half) < 1.4, "{bytes:?}");
    assert!(ratio(all) > 1.3 && ratio(all) < 2.0, "{bytes:?}");
}

#[test]
fn appends_and_checkpoints_cost_little_more_than_what_they_read() {
    let bytes = bytes_read("changing-table", PolicyKind::Relevance);
    let rest = bytes[0] as f64;
    assert!(bytes.iter().all(|&bytes| (bytes as f64) < 1.3 * rest), "{bytes:?}");
}
