//! Random changes of tables: appends, chunks that are replaced, checkpoints, and queries on old versions.

use coscan_core::{ChunkIndex, GroupIndex, Index, Order, Time};

use crate::random::Random;
use crate::table::{Table, TableChange};
use crate::workload::{Query, Stream, Workload};

/// The most chunks that a change replaces or adds.
const CHUNKS_MAX: usize = 3;

/// The time in nanoseconds within which the next change follows.
const APART_NS: u64 = 500;

/// Makes some of the tables change. Their last chunks come later, each with a change of its own or with others.
pub(super) fn change_tables(random: &mut Random, workload: &mut Workload) {
    for position in 0..workload.tables.len() {
        let chunks = workload.tables[position].layout.chunk_count();
        if chunks > 1 && random.percent(70) {
            let at_start = random.count(1, chunks - 1);
            workload.tables[position].initial_chunk_count = at_start;
            let versions = add_changes(random, workload, position);
            let queries = workload.streams.iter_mut().flat_map(|stream| &mut stream.queries);
            for query in queries.filter(|query| query.table == position && query.change.is_none()) {
                query.version = random.percent(20).then(|| random.count(0, versions));
            }
        }
    }
    workload.table_changes.sort_by_key(|(at, _)| *at);
}

/// Adds changes until each chunk has come. Returns their number.
fn add_changes(random: &mut Random, workload: &mut Workload, position: usize) -> usize {
    let Table { layout, initial_chunk_count, .. } = workload.tables[position].clone();
    let mut later = layout.chunks().skip(initial_chunk_count).collect::<Vec<_>>();
    // The chunks of the newest version, if the changes are made in this order.
    let mut newest: Vec<ChunkIndex> = layout.chunks().take(initial_chunk_count).collect();
    let mut at = Time(0);
    let mut changes = 0;
    while !later.is_empty() {
        let added: Vec<_> = later.drain(..random.count(1, CHUNKS_MAX).min(later.len())).collect();
        let first = random.count(0, newest.len());
        let replaced_max =
            if random.percent(40) { 0 } else { CHUNKS_MAX.min(newest.len() - first) };
        let places = first..first + random.count(0, replaced_max);
        let first = if places.is_empty() { newest.len() } else { first };
        let replaced = newest.splice(first..first + places.len(), added.iter().copied()).collect();
        let change = TableChange { table: position, replaced, added };
        changes += 1;
        if !change.replaced.is_empty() && random.percent(50) {
            add_checkpoint(random, workload, change, layout.group_count());
        } else {
            at = Time(at.0 + random.choose(&[0, 1]) * random.below(APART_NS));
            workload.table_changes.push((at, change));
        }
    }
    changes
}

/// Adds a checkpoint to a stream, or a stream of its own.
fn add_checkpoint(
    random: &mut Random,
    workload: &mut Workload,
    change: TableChange,
    groups: usize,
) {
    let groups = (0..groups).map(GroupIndex::from_usize).collect();
    let scan = Query::scan("checkpoint", change.table, groups, 0..0);
    let checkpoint = Query {
        order: if random.percent(80) { Order::InOrder } else { Order::Any },
        workers: random.count(1, 2),
        think_ns: random.below(APART_NS),
        change: Some(change),
        ..scan
    };
    if random.percent(50) {
        let start = Time(random.below(APART_NS));
        let queries = vec![checkpoint];
        workload.streams.push(Stream { start, queries, while_others_run: random.percent(50) });
    } else {
        let stream = random.count(0, workload.streams.len() - 1);
        let queries = &mut workload.streams[stream].queries;
        queries.insert(random.count(0, queries.len()), checkpoint);
    }
}
