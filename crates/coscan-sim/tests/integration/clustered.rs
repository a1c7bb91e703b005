//! Clustered tables: chunks of the same keys, scans of one table, and merge joins that are one scan over several.

#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::sync::Arc;

use coscan_core::PolicyKind;
use coscan_sim::experiment::Prepared;
use coscan_sim::{Options, Spec, Workload};

use crate::support::{assert_says, error};

/// Four chunks with 10 rows of `items` and 3 or 2 of `sales`; a megabyte takes a second.
const FILE: &str = r#"
name = "mine"
title = "a merge join of items and sales beside scans of one of them"

[machine]
cores = 8
pool = "100 %"
loads_in_flight = 1

[machine.disk.seek-transfer]
seek = "0 s"
bandwidth = "1 MB/s"

[table.sales]
rows = 10
clustered_with = "items"
columns = { day = 200_000, customer = 200_000 }

[table.items]
rows = 40
chunks = 4
columns = { price = 100_000, day = 100_000 }

[query.join]
table = "items"
columns = ["price", "sales.day"]
cost = "10 ns/row"

[query.items]
table = "items"
percent = 50
begin_percent = 0
cost = "10 ns/row"

[query.sales]
table = "sales"
columns = ["day"]
cost = "10 ns/row"

[streams.one]
queries = ["join"]

[streams.two]
queries = ["items"]

[streams.three]
queries = ["sales"]
"#;

fn workload(text: &str) -> Workload {
    Spec::parse(text).unwrap().cases[0].workload(1)
}

#[test]
fn clustered_tables_are_one_table_of_the_workload() {
    let workload = workload(FILE);
    let [table] = workload.tables.as_slice() else { panic!("one table") };
    assert_eq!(table.name, "items + sales");
    assert_eq!((table.layout.chunk_count(), table.layout.row_count()), (4, 40));
    let groups = |stream: usize| {
        let query = &workload.streams[stream].queries[0];
        query.groups.iter().map(|group| group.0).collect::<Vec<_>>()
    };
    // `items` has the first two groups, though it comes last in the file; `day` is that of the query's own table.
    assert_eq!((groups(0), groups(1), groups(2)), (vec![0, 2], vec![0, 1], vec![2]));
    assert_eq!(workload.pool_bytes, 12_000_000);
}

#[test]
fn costs_and_ranges_are_those_of_the_query_s_own_table() {
    let rows = "columns = [\"day\"]\nrows = [[3, 5]]";
    let workload = workload(&FILE.replacen("columns = [\"day\"]", rows, 1));
    let [join, items, sales] = [0, 1, 2].map(|stream| &workload.streams[stream].queries[0]);
    assert_eq!((&join.rows, &items.rows), (&vec![0..40], &vec![0..20]));
    assert_eq!(sales.rows, [12..20], "rows 3 and 4 of ten, where the items of the same keys are");
    let cost_ps = |query: &coscan_sim::Query| query.cost.row_ps * query.row_count();
    assert_eq!((cost_ps(join), cost_ps(items)), (400_000, 200_000));
    assert_eq!(cost_ps(sales), 20_000, "10 ns for each of its two rows");
}

/// Everything fits in the pool, so each page that is needed is read once, whichever scan asks for it: 4 s for `price`,
/// 2 s for half of the items' `day`, 2 s for that of the sales.
#[test]
fn a_merge_join_shares_what_it_reads_with_scans_of_either_table() {
    for policy in PolicyKind::ALL {
        let case = &Spec::parse(FILE).unwrap().cases[0];
        let prepared = Arc::new(Prepared::new(case, 1).unwrap());
        let outcome = prepared.run(policy.build(), Options::default()).unwrap().outcome;
        assert_eq!(outcome.bytes_read, 8_000_000, "{policy}");
        assert_eq!(outcome.queries.iter().map(|query| query.chunks).collect::<Vec<_>>(), [4, 2, 4]);
        assert_eq!(outcome.queries[0].bytes_used, 6_000_000, "both sides of each chunk");
        assert_eq!(prepared.standalone_ns[0] / 1_000_000_000, 6, "{policy}");
    }
}

#[test]
fn errors_name_what_a_table_can_be_clustered_with() {
    let line = "clustered_with = \"items\"";
    assert_says(
        &error(FILE, line, "clustered_with = \"orders\""),
        &["table.sales.clustered_with", "`orders`", "choose one of items"],
    );
    assert_says(
        &error(FILE, line, "clustered_with = \"sales\""),
        &["table.sales.clustered_with", "choose one of items"],
    );
    assert_says(
        &error(FILE, line, &format!("{line}\nchunks = 4")),
        &["leave out `chunks`", "`items`"],
    );
    assert_says(&error(FILE, "rows = 10", "rows = 3"), &["fewer rows than `items` has chunks"]);
    let missing = error(FILE, "\"sales.day\"", "\"sales.price\"");
    assert_says(&missing, &["query.join.columns", "`sales.price`", "choose from day, customer"]);
    assert_says(
        &error(FILE, "\"sales.day\"", "\"orders.day\""),
        &["query.join.columns", "`orders.day`", "choose from price, day"],
    );
}

/// The streams' labels.
fn labels(workload: &Workload) -> Vec<Vec<String>> {
    let streams = workload.streams.iter();
    streams.map(|stream| stream.queries.iter().map(|query| query.label.clone()).collect()).collect()
}

#[test]
fn shuffled_lists_stay_together_and_each_stream_has_all_of_them() {
    let lists = "shuffle = [[\"join\", \"sales\"], [\"items-1\"], [\"items-2\"], [\"items-3\"]]";
    let text = FILE.replacen("queries = [\"join\"]", &format!("count = 6\n{lists}"), 1);
    let case = &Spec::parse(&text).unwrap().cases[0];
    let streams = labels(&case.workload(1)).into_iter().take(6).collect::<Vec<_>>();
    for stream in &streams {
        let mut sorted = stream.clone();
        sorted.sort();
        assert_eq!(sorted, ["items-1", "items-2", "items-3", "join", "sales"]);
        let join = stream.iter().position(|label| label == "join").unwrap();
        assert_eq!(stream[join + 1], "sales");
    }
    assert!(streams.iter().any(|stream| stream != &streams[0]), "each has an order of its own");
    assert_eq!(labels(&case.workload(1)), labels(&case.workload(1)));
    assert_ne!(labels(&case.workload(1)), labels(&case.workload(2)));

    let unknown = text.replacen("\"items-1\"", "\"parts\"", 1);
    assert_says(
        &Spec::parse(&unknown).unwrap_err().to_string(),
        &["streams.one.shuffle", "`parts`"],
    );
}
