//! The chunks that a query needs whatever happens.

use coscan_core::{ChunkIndex, IndexSet, PageIndex, Time};

use crate::table::{Snapshot, Table, TableChange};
use crate::workload::{Query, Workload};

/// The chunks that a query needs of each version of its table that it may see. The rows of a part of a table that changes
/// depend on the time: of that nothing is certain.
pub(super) fn certain_chunks(workload: &Workload, query: &Query) -> Vec<ChunkIndex> {
    let table = &workload.tables[query.table];
    let later: Vec<&TableChange> = later_changes(workload, query.table).collect();
    let versions = versions_at_start(workload, query.table);
    let newest = &versions[versions.len() - 1];
    let seen = match query.version {
        Some(version) if version < versions.len() => {
            return needs(table, query, &versions[version]);
        }
        None => newest,
        Some(_) => return Vec::new(), // It is not known which chunks that version has.
    };
    let chunks = needs(table, query, seen);
    if later.is_empty() {
        return chunks;
    }
    let rows: u64 = query.needs(table, seen).into_iter().map(|(_, rows)| rows).sum();
    if query.change.is_none() && rows < seen.row_count() {
        return Vec::new();
    }
    let replaces = |change: &TableChange, chunk: &ChunkIndex| {
        query.change.as_ref() != Some(change) && change.replaced.contains(chunk)
    };
    let stays = |chunk: &ChunkIndex| !later.iter().any(|change| replaces(change, chunk));
    chunks.into_iter().filter(stays).collect()
}

/// The pages of those chunks that it needs.
pub(super) fn certain_pages(workload: &Workload, query: &Query) -> IndexSet<PageIndex> {
    let layout = &workload.tables[query.table].layout;
    let chunks = certain_chunks(workload, query);
    chunks.into_iter().flat_map(|chunk| query.pages(layout, chunk)).collect()
}

fn needs(table: &Table, query: &Query, version: &Snapshot) -> Vec<ChunkIndex> {
    query.needs(table, version).into_iter().map(|(chunk, _)| chunk).collect()
}

/// The versions that a table has before the first query starts.
fn versions_at_start(workload: &Workload, table: usize) -> Vec<Snapshot> {
    let Table { layout, .. } = &workload.tables[table];
    let mut versions = vec![workload.tables[table].first_snapshot()];
    let changes = workload.table_changes.iter().filter(|(at, _)| *at == Time(0));
    for (_, change) in changes.filter(|(_, change)| change.table == table) {
        versions.extend(versions[versions.len() - 1].changed(layout, change));
    }
    versions
}

/// The changes of a table after that.
fn later_changes(workload: &Workload, table: usize) -> impl Iterator<Item = &TableChange> {
    let timed = workload.table_changes.iter().filter(|(at, _)| *at > Time(0));
    let timed = timed.map(|(_, change)| change);
    let of_queries = workload.queries().filter_map(|query| query.change.as_ref());
    timed.chain(of_queries).filter(move |change| change.table == table)
}
