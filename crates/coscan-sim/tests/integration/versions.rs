//! Tables that change: whole runs whose numbers are worked out by hand, and random changes compared with a model.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coscan_core::{ChunkIndex, GroupIndex, Layout, Order, PolicyKind, Time};
use coscan_sim::faults::random_case;
use coscan_sim::{
    Disk, End, EventKind, Machine, Options, Outcome, Query, Stream, Table, TableChange, Workload,
    run,
};

/// A table of ten rows in each chunk, one page a chunk, of which the first version has some.
fn table(chunks: usize, initial_chunk_count: usize) -> Table {
    let mut builder = Layout::builder(1);
    for _ in 0..chunks {
        let page = builder.add_page(GroupIndex(0), 100);
        builder.add_chunk(10, vec![vec![page]]);
    }
    Table { initial_chunk_count, ..Table::at_rest("table", Arc::new(builder.build())) }
}

fn change(replaced: &[u32], added: &[u32]) -> TableChange {
    let chunks = |chunks: &[u32]| chunks.iter().copied().map(ChunkIndex).collect();
    TableChange { table: 0, replaced: chunks(replaced), added: chunks(added) }
}

/// Queries that each start at this time.
fn workload(
    table: Table,
    pool_bytes: u64,
    queries: Vec<(u64, Query)>,
    changes: Vec<(u64, TableChange)>,
) -> Workload {
    let stream =
        |(start, query)| Stream { start: Time(start), queries: vec![query], ..Stream::default() };
    Workload {
        tables: vec![table],
        streams: queries.into_iter().map(stream).collect(),
        pool_bytes,
        pool_changes: Vec::new(),
        table_changes: changes.into_iter().map(|(at, change)| (Time(at), change)).collect(),
    }
}

/// Every chunk takes 100 ns to read, one at a time, and its processor time is nothing.
fn outcome(workload: &Workload, policy: PolicyKind) -> Outcome {
    let mut machine = Machine::new(Disk::Perfect { ns_per_chunk: 100 }, 4);
    machine.config.loads_in_flight_max = 1;
    let options = Options { timeline: true, audit_every: 1, ..Options::default() };
    run(workload, &machine, policy.build(), options).unwrap()
}

/// All rows of a table with this number of rows in its first version.
fn all(rows: u64) -> Query {
    Query::scan("all", 0, vec![GroupIndex(0)], 0..rows)
}

fn handed(outcome: &Outcome, query: usize) -> Vec<u32> {
    let of_query = outcome.deliveries.iter().filter(|&&(of, _)| of == query);
    of_query.map(|(_, chunk)| chunk.0).collect()
}

fn sorted(mut chunks: Vec<u32>) -> Vec<u32> {
    chunks.sort_unstable();
    chunks
}

/// The time at which the page of a chunk was evicted.
fn evicted(outcome: &Outcome, chunk: u32) -> Option<u64> {
    let evicts =
        |what: &EventKind| matches!(what, EventKind::Evicted { page, .. } if page.0 == chunk);
    outcome.timeline.iter().find(|step| evicts(&step.what)).map(|step| step.at.0)
}

#[test]
fn a_query_sees_what_was_appended_before_it_started() {
    for policy in PolicyKind::variants() {
        let queries = vec![(0, all(30)), (250, all(30))];
        let changes = vec![(200, change(&[], &[3])), (250, change(&[], &[4]))];
        let outcome = outcome(&workload(table(5, 3), 500, queries, changes), policy);
        assert_eq!(sorted(handed(&outcome, 0)), [0, 1, 2], "{policy}");
        assert_eq!(sorted(handed(&outcome, 1)), [0, 1, 2, 3, 4], "{policy}: also of its own time");
        assert_eq!((outcome.bytes_read, outcome.total_ns), (500, 500), "{policy}: each once");
    }
}

#[test]
fn a_part_of_a_table_is_a_part_of_the_version() {
    let last_half = Query::scan("half", 0, vec![GroupIndex(0)], 10..20);
    let changes = vec![(0, change(&[], &[2, 3]))];
    let outcome =
        outcome(&workload(table(4, 2), 400, vec![(10, last_half)], changes), PolicyKind::Normal);
    assert_eq!(handed(&outcome, 0), [2, 3]);
    assert!(outcome.queries[0].needed.iter().map(|chunk| chunk.0).eq([2, 3]));
}

/// A checkpoint of the first two chunks of three reads them by 200 ns. A scan that began at 150 ns goes on with them until
/// 300 ns, when the third chunk is there. The one of 210 ns gets the new ones, which come after that, and shares the third.
#[test]
fn scans_that_began_before_a_checkpoint_go_on_with_the_old_pages() {
    for policy in PolicyKind::variants() {
        let checkpoint = Query {
            change: Some(change(&[0, 1], &[3, 4])),
            order: Order::InOrder,
            ..Query::scan("checkpoint", 0, vec![GroupIndex(0)], 0..20)
        };
        let queries = vec![(0, checkpoint), (150, all(30)), (210, all(30))];
        let outcome = outcome(&workload(table(5, 3), 500, queries, Vec::new()), policy);
        assert_eq!(outcome.queries[0].ended, Time(200), "{policy}");
        assert_eq!(handed(&outcome, 0), [0, 1], "{policy}: in order");
        assert_eq!(sorted(handed(&outcome, 1)), [0, 1, 2], "{policy}");
        assert_eq!(sorted(handed(&outcome, 2)), [2, 3, 4], "{policy}");
        assert_eq!((outcome.bytes_read, outcome.total_ns), (500, 500), "{policy}");
        let old_ended = outcome.queries[1].ended.0;
        for old in [0, 1] {
            assert_eq!(evicted(&outcome, old), Some(old_ended), "{policy}: nobody comes for it");
        }
        assert_eq!(evicted(&outcome, 2), None, "{policy}");
    }
}

#[test]
fn a_named_version_stays_until_the_last_query_that_names_it() {
    for policy in PolicyKind::variants() {
        let old = || Query { version: Some(0), ..all(20) };
        let queries = vec![(0, all(20)), (1_000, old()), (2_000, old()), (3_000, all(20))];
        let changes = vec![(0, change(&[1], &[2]))];
        let outcome = outcome(&workload(table(3, 2), 300, queries, changes), policy);
        assert_eq!(sorted(handed(&outcome, 0)), [0, 2], "{policy}");
        assert_eq!(sorted(handed(&outcome, 1)), [0, 1], "{policy}");
        assert_eq!(sorted(handed(&outcome, 2)), [0, 1], "{policy}");
        assert_eq!(outcome.bytes_read, 300, "{policy}: each once");
        assert_eq!(evicted(&outcome, 1), Some(outcome.queries[2].ended.0), "{policy}");
    }
}

/// The first chunk is replaced twice, so that the manager gives an index of the first version to a chunk that stands behind
/// another.
#[test]
fn scans_in_order_follow_the_rows_of_their_version() {
    for policy in PolicyKind::variants() {
        let in_order = || Query { order: Order::InOrder, ..all(20) };
        let changes = vec![(0, change(&[0], &[2, 3])), (500, change(&[3, 1], &[4, 5]))];
        let queries = vec![(100, in_order()), (1_000, in_order()), (1_000, all(20))];
        let outcome = outcome(&workload(table(6, 2), 600, queries, changes), policy);
        assert_eq!(handed(&outcome, 0), [2, 3, 1], "{policy}");
        assert_eq!(handed(&outcome, 1), [2, 4, 5], "{policy}");
        assert_eq!(outcome.bytes_read, 500, "{policy}: both orders share the pages");
    }
}

#[test]
fn of_two_changes_of_a_chunk_the_first_is_made() {
    let changes = vec![(0, change(&[0], &[1])), (0, change(&[0], &[2]))];
    let outcome =
        outcome(&workload(table(3, 1), 300, vec![(10, all(10))], changes), PolicyKind::Normal);
    assert_eq!(handed(&outcome, 0), [1]);
}

/// What happened in runs with random changes.
#[derive(Default, Debug)]
struct Seen {
    appends: usize,
    replacements: usize,
    checkpoints: usize,
    scans_of_old_versions: usize,
    whole_scans: usize,
}

/// Compares what each query was handed with the chunks of the version that it saw: sets that are kept from the events alone.
fn check_versions(workload: &Workload, outcome: &Outcome, seen: &mut Seen) {
    let queries: Vec<&Query> = workload.queries().collect();
    let first = |table: &Table| (0..table.initial_chunk_count as u32).map(ChunkIndex).collect();
    let mut versions: Vec<Vec<BTreeSet<ChunkIndex>>> =
        workload.tables.iter().map(|table| vec![first(table)]).collect();
    let mut of_query = BTreeMap::new();
    let mut pruned = BTreeSet::new();
    for step in &outcome.timeline {
        match &step.what {
            EventKind::TableChanged(change) => {
                let versions = &mut versions[change.table];
                let mut next = versions.last().unwrap().clone();
                assert!(change.replaced.iter().all(|chunk| next.remove(chunk)));
                assert!(change.added.iter().all(|&chunk| next.insert(chunk)));
                versions.push(next);
                let replaces = !change.replaced.is_empty();
                *if replaces { &mut seen.replacements } else { &mut seen.appends } += 1;
            }
            EventKind::Started { query } => {
                let Query { table, version, .. } = *queries[*query];
                let newest = versions[table].len() - 1;
                let version = version.unwrap_or(newest).min(newest);
                seen.scans_of_old_versions += usize::from(version < newest);
                of_query.insert(*query, versions[table][version].clone());
            }
            EventKind::Pruned { query, .. } => drop(pruned.insert(*query)),
            EventKind::Ended { query, end: End::Done } => {
                let chunks = handed(outcome, *query);
                let set: BTreeSet<_> = chunks.iter().copied().map(ChunkIndex).collect();
                assert_eq!(chunks.len(), set.len(), "each chunk once");
                let (query_of, version) = (queries[*query], &of_query[query]);
                assert!(set.is_subset(version), "{set:?} of {version:?}");
                let whole = workload.tables[query_of.table].layout.row_count();
                let replaced = query_of.change.iter().flat_map(|change| &change.replaced);
                let expected = match query_of.change {
                    Some(_) => replaced.filter(|chunk| version.contains(chunk)).copied().collect(),
                    None if query_of.rows.contains(&(0..whole)) => version.clone(),
                    None => continue,
                };
                if !pruned.contains(query) {
                    assert_eq!(set, expected);
                    seen.checkpoints += usize::from(query_of.change.is_some());
                    seen.whole_scans += usize::from(query_of.change.is_none());
                }
            }
            _ => {}
        }
    }
}

#[test]
fn queries_get_their_version_whatever_goes_wrong() {
    let mut seen = Seen::default();
    for seed in 0..400 {
        let mut case = random_case(seed);
        case.options.timeline = true;
        for policy in PolicyKind::ALL {
            check_versions(&case.workload, &case.run(policy).unwrap(), &mut seen);
        }
    }
    let counts = [
        seen.appends,
        seen.replacements,
        seen.checkpoints,
        seen.scans_of_old_versions,
        seen.whole_scans,
    ];
    assert!(counts.iter().all(|&count| count > 200), "too few of a kind: {seen:?}");
}
