//! Owners of chunks: the worker that reads a chunk for all queries.

use std::hash::{Hash, Hasher};

use coscan_datafusion::ChunkToDivide;
use coscan_ring::{NodeId, owners_of};
use twox_hash::XxHash64;
use url::Url;

/// The rows of a worker are at most 5/4 of the mean, as far as whole row groups allow.
const LOAD_MAX: (u64, u64) = (5, 4);

/// The owner of each chunk among some workers, as an index into the workers.
///
/// The owner is found by rendezvous hashing of the version of the file and the row group, with bounded loads: a worker that
/// has its share leaves chunks to the next in rank. All queries that read the same chunks find the same owners, whatever
/// columns they read. There must be at least one worker.
pub(crate) fn owners(chunks: &[ChunkToDivide<'_>], workers: &[Url]) -> Vec<usize> {
    let nodes: Vec<_> = workers.iter().map(|url| NodeId(hash(url.as_str()))).collect();
    let all: u64 = chunks.iter().map(|chunk| chunk.rows).sum();
    let most = (all * LOAD_MAX.0).div_ceil(LOAD_MAX.1 * workers.len() as u64);
    let mut loads = vec![0; workers.len()];
    let mut owners = Vec::with_capacity(chunks.len());
    for chunks in chunks.chunk_by(is_same_row_group) {
        let rows: u64 = chunks.iter().map(|chunk| chunk.rows).sum();
        let file = hash(chunks[0].file);
        let has_room = |&worker: &usize| loads[worker] + rows <= most;
        let owner = find(&nodes, (0..workers.len()).filter(has_room), file, chunks[0].row_group)
            .or_else(|| (0..workers.len()).min_by_key(|&worker| loads[worker]))
            .unwrap_or_default();
        loads[owner] += rows;
        owners.extend(std::iter::repeat_n(owner, chunks.len()));
    }
    owners
}

/// The first of some candidates in the rank of a row group.
fn find(
    nodes: &[NodeId],
    candidates: impl Iterator<Item = usize>,
    file: u64,
    row_group: usize,
) -> Option<usize> {
    let candidates: Vec<_> = candidates.collect();
    let owner = owners_of(candidates.iter().map(|&worker| nodes[worker]), file, row_group)?.owner;
    candidates.into_iter().find(|&worker| nodes[worker] == owner)
}

fn is_same_row_group(a: &ChunkToDivide<'_>, b: &ChunkToDivide<'_>) -> bool {
    a.file == b.file && a.row_group == b.row_group
}

/// A hash that is the same in all processes of one version of coscan.
fn hash(value: impl Hash) -> u64 {
    let mut hasher = XxHash64::with_seed(0);
    value.hash(&mut hasher);
    hasher.finish()
}
