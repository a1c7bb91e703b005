//! I5 under background load: short queries that keep coming do not starve others of space, processors or reads.

use std::ops::Range;
use std::sync::Arc;

use coscan_core::{GroupIndex, Layout, PolicyKind, Time};
use coscan_sim::{Cost, Disk, Machine, Options, Outcome, Query, Stream, Table, Workload, run};

const SPACE_TIMEOUT_NS: u64 = 10_000;

/// A table of chunks of one row and `chunk_bytes` bytes.
fn table(chunks: usize, chunk_bytes: u64) -> Table {
    let mut builder = Layout::builder(1);
    for _ in 0..chunks {
        let page = builder.add_page(GroupIndex(0), chunk_bytes);
        builder.add_chunk(1, vec![vec![page]]);
    }
    Table::at_rest("table", Arc::new(builder.build()))
}

/// A query that works 150 ns on each of these chunks.
fn query(table: usize, chunks: Range<u64>) -> Query {
    let cost = Cost { row_ps: 150_000, byte_ps: 0 };
    Query { cost, ..Query::scan("query", table, vec![GroupIndex(0)], chunks) }
}

/// Six streams of queries of one chunk of the first table each, for some milliseconds, and one other query that comes
/// when they run.
fn beside_background_load(tables: Vec<Table>, other: Query, pool_bytes: u64) -> Workload {
    let chunks = tables[0].layout.row_count();
    let mut streams: Vec<_> = (0..6)
        .map(|stream| {
            let chunk = move |index: u64| (stream * 3 + index * 7) % chunks;
            let queries = (0..2_500).map(|index| query(0, chunk(index)..chunk(index) + 1));
            Stream { queries: queries.collect(), ..Stream::default() }
        })
        .collect();
    streams.push(Stream { start: Time(5_000), queries: vec![other], ..Stream::default() });
    Workload { tables, streams, pool_bytes, pool_changes: Vec::new(), table_changes: Vec::new() }
}

fn run_under(policy: PolicyKind, workload: &Workload, cores: u32) -> Outcome {
    let mut machine = Machine::new(Disk::Perfect { ns_per_chunk: 100 }, cores);
    machine.config.space_timeout_ns = SPACE_TIMEOUT_NS;
    machine.config.wait_max_ns = SPACE_TIMEOUT_NS;
    machine.config.recheck_interval_ns = SPACE_TIMEOUT_NS / 10;
    machine.config.active_workers_max = 2;
    run(workload, &machine, policy.build(), Options::default()).unwrap()
}

/// The policies under which the last query of a workload waits too long for a chunk.
fn starving(workload: &Workload, cores: u32) -> Vec<PolicyKind> {
    let starves = |policy: &PolicyKind| {
        let outcome = run_under(*policy, workload, cores);
        assert!(outcome.total_ns > 100 * SPACE_TIMEOUT_NS, "the background load lasts");
        outcome.queries.last().unwrap().longest_wait_ns > 6 * SPACE_TIMEOUT_NS
    };
    PolicyKind::variants().filter(starves).collect()
}

#[test]
fn a_chunk_as_large_as_the_pool_gets_space_beside_background_load() {
    let tables = vec![table(20, 1), table(1, 5)];
    let workload = beside_background_load(tables, query(1, 0..1), 5);
    assert_eq!(starving(&workload, 1), []);
}

#[test]
fn a_long_query_gets_processors_beside_background_load() {
    let tables = vec![table(20, 1), table(30, 1)];
    let workload = beside_background_load(tables, query(1, 0..30), 50);
    assert_eq!(starving(&workload, 1), []);
}

#[test]
fn a_long_query_is_read_for_beside_background_load() {
    let tables = vec![table(20, 1), table(300, 1)];
    let workload = beside_background_load(tables, query(1, 0..300), 4);
    // The paper's waits for about as many loads as it needs chunks, times the queries that run.
    assert_eq!(starving(&workload, 2), [PolicyKind::Relevance2007]);
}
