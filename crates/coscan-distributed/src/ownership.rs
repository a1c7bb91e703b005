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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use std::sync::Arc;

    use coscan_storage::table::{FileVersion, TableFile};
    use object_store::ObjectMeta;
    use object_store::memory::InMemory;
    use object_store::path::Path;

    use super::*;

    fn file(name: &str) -> FileVersion {
        let file = TableFile {
            store: Arc::new(InMemory::new()),
            store_url: Url::parse("memory:///").unwrap(),
            meta: ObjectMeta {
                location: Path::from(name),
                last_modified: chrono::DateTime::UNIX_EPOCH,
                size: 1,
                e_tag: None,
                version: None,
            },
        };
        file.version()
    }

    /// Two chunks of each row group.
    fn chunks(files: &[FileVersion], bytes: u64) -> Vec<ChunkToDivide<'_>> {
        let row_groups =
            files.iter().flat_map(|file| (0..20).map(move |row_group| (file, row_group)));
        let chunk = |(file, row_group)| ChunkToDivide { file, row_group, rows: 10, bytes };
        row_groups.flat_map(|row_group| [chunk(row_group), chunk(row_group)]).collect()
    }

    fn workers(count: usize) -> Vec<Url> {
        (0..count).map(|worker| Url::parse(&format!("http://w{worker}:5450")).unwrap()).collect()
    }

    #[test]
    fn chunks_of_a_row_group_have_one_owner_and_no_worker_has_far_more_than_others() {
        let files: Vec<_> = (0..10).map(|index| file(&format!("{index}.parquet"))).collect();
        for count in 1..8 {
            let owners = owners(&chunks(&files, 1), &workers(count));
            assert!(owners.as_chunks::<2>().0.iter().all(|[first, second]| first == second));
            let mut loads = vec![0; count];
            owners.iter().for_each(|&owner| loads[owner] += 1);
            let most = (owners.len() * 5).div_ceil(4 * count);
            assert!(loads.iter().all(|&load| 0 < load && load <= most), "{loads:?}");
        }
    }

    #[test]
    fn owners_do_not_depend_on_columns_or_on_the_order_of_workers() {
        let files = [file("a.parquet"), file("b.parquet")];
        let (forward, mut backward) = (workers(3), workers(3));
        backward.reverse();
        let named = |workers: &[Url], bytes| -> Vec<Url> {
            let owners = owners(&chunks(&files, bytes), workers).into_iter();
            owners.map(|owner| workers[owner].clone()).collect()
        };
        assert_eq!(named(&forward, 1), named(&forward, 1_000));
        assert_eq!(named(&forward, 1), named(&backward, 1));
    }
}
