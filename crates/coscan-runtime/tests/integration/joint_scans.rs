//! Joint scans: the rows of each joint chunk are those asked for, every chunk comes once, and pages are shared with the
//! scans of each table.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::common::clustered::{Clustered, column_bytes, text_of};
use crate::common::{LARGE, assert_free, ids, in_time, int64s, manager, manager_with, sorted};
use arrow_array::{Array, StringViewArray};
use coscan_runtime::core::{PolicyKind, StartScanError};
use coscan_runtime::storage::table::{FileOptions, PageLayout};
use coscan_runtime::{
    BufferManager, JointScanRequest, JointStream, JointTable, JointTableError, Options, ScanError,
    ScanLabel, ScanRequest, SharedTable,
};
use coscan_testing::{Fate, Faults};
use futures::future::join_all;
use futures::{StreamExt, TryStreamExt};

const KEYS: i64 = 3000;
const ALL: [usize; 3] = [0, 1, 2];

/// A parent with each key once, in two files, and a child with none to six rows of a key, in three.
async fn clustered() -> [Clustered; 2] {
    let parent: Vec<_> = (0..KEYS).collect();
    let child: Vec<_> = (0..KEYS).flat_map(|key| vec![key; (key * 5 % 7) as usize]).collect();
    let rows = child.len();
    let parent = Clustered::new(parent, &[1700, 1300], 500).await;
    let child = Clustered::new(child, &[4000, 1000, rows - 5000], 1000).await;
    [parent, child]
}

/// The keys at which joint chunks begin: within chunks and at their ends, one with a single key, one of keys without
/// children, and without the first and last keys.
const BOUNDS: [i64; 8] = [3, 500, 501, 1190, 1701, 1702, 2400, KEYS - 10];

/// Rows of each table, chunk by chunk.
fn chunks_of(tables: &[Clustered; 2], bounds: &[i64]) -> Vec<Vec<Range<u64>>> {
    let [parent, child] = tables.each_ref().map(|table| table.rows_between(bounds));
    parent.into_iter().zip(child).map(|(parent, child)| vec![parent, child]).collect()
}

struct Pair {
    manager: BufferManager,
    tables: [SharedTable; 2],
    joint: JointTable,
    chunks: Vec<Vec<Range<u64>>>,
}

async fn pair(
    clustered: &[Clustered; 2],
    manager: BufferManager,
    options: FileOptions,
    bounds: &[i64],
) -> Pair {
    let [parent, child] = clustered;
    let tables = [parent.table(options).await, child.table(options).await];
    let tables = tables.map(|table| manager.register(table));
    let chunks = chunks_of(clustered, bounds);
    let joint = manager.register_joint(&tables, chunks.clone()).unwrap();
    Pair { manager, tables, joint, chunks }
}

impl Pair {
    fn request(&self, columns: [&[usize]; 2]) -> JointScanRequest {
        JointScanRequest {
            columns: columns.map(<[usize]>::to_vec).to_vec(),
            chunks: (0..self.chunks.len()).collect(),
            workers: 1,
            weight: 1,
            label: ScanLabel::default(),
        }
    }

    /// Checks that some chunks came whole: their rows in order, table by table.
    fn assert_chunks(&self, got: &Rows, chunks: impl IntoIterator<Item = usize>) {
        let expected = chunks.into_iter().flat_map(|chunk| {
            let rows = self.chunks[chunk].iter().enumerate();
            rows.map(move |(table, rows)| ((chunk, table), rows))
        });
        let expected: Rows = expected
            .filter(|(_, rows)| !rows.is_empty())
            .map(|(place, rows)| (place, (rows.start as i64..rows.end as i64).collect()))
            .collect();
        assert_eq!(got, &expected);
    }
}

/// The row numbers that came of each joint chunk and table.
type Rows = BTreeMap<(usize, usize), Vec<i64>>;

/// The column of row numbers is the `row`th of the batches. Checks that places do not come twice, and their order.
async fn rows_of(mut stream: JointStream, row: usize) -> Result<Rows, ScanError> {
    let mut rows = Rows::new();
    let mut last = None;
    while let Some(batch) = stream.try_next().await? {
        let place = (batch.chunk, batch.table);
        if last != Some(place) {
            assert!(!rows.contains_key(&place), "{place:?} comes in one piece");
            let follows = last.is_none_or(|(chunk, table)| chunk != place.0 || table < place.1);
            assert!(follows, "{place:?} comes after {last:?}");
            last = Some(place);
        }
        rows.entry(place).or_default().extend(int64s(&batch.batch, row));
    }
    Ok(rows)
}

fn layouts() -> impl Iterator<Item = FileOptions> {
    let layouts = [PageLayout::Column, PageLayout::Row].into_iter();
    // Ranges of several row groups, and parts of one.
    layouts.flat_map(|layout| {
        [1500, 250].map(|chunk_rows| FileOptions { chunk_rows, layout, ..FileOptions::default() })
    })
}

#[tokio::test]
async fn each_joint_chunk_has_the_rows_asked_for() {
    let clustered = clustered().await;
    for options in layouts() {
        for batch_rows in [8192, 64] {
            let manager = Options { batch_rows, ..Options::with_pool_bytes(LARGE, 4 << 20) };
            let pair = pair(&clustered, manager_with(manager), options, &BOUNDS).await;
            let empty = pair.chunks.iter().filter(|rows| rows[1].is_empty()).count();
            assert!(empty > 0 && pair.chunks.iter().all(|rows| !rows[0].is_empty()));

            let request = pair.request([&ALL, &ALL]);
            let scan = pair.manager.start_joint_scan(&pair.joint, request).unwrap();
            pair.assert_chunks(&rows_of(scan.worker(0), 1).await.unwrap(), 0..7);
            let metrics = scan.metrics().chunks;
            assert_eq!((metrics.chunks_needed, metrics.chunks_delivered), (7, 7));
            drop(scan);

            // Some of the chunks, other columns of each table, columns twice.
            let request =
                JointScanRequest { chunks: vec![1, 3, 4], ..pair.request([&[1], &[2, 1, 2]]) };
            let scan = pair.manager.start_joint_scan(&pair.joint, request).unwrap();
            let names = |table| {
                let fields = scan.schema(table).fields().iter();
                fields.map(|field| field.name().clone()).collect::<Vec<_>>()
            };
            assert_eq!(
                (names(0).join(" "), names(1).join(" ")),
                ("row".into(), "text row text".into())
            );
            let mut stream = scan.worker(0);
            let mut got = Rows::new();
            while let Some(batch) = stream.try_next().await.unwrap() {
                assert!(batch.batch.num_rows() <= batch_rows);
                let numbers = int64s(&batch.batch, batch.table);
                if batch.table == 1 {
                    for column in [0, 2] {
                        let texts = batch.batch.column(column).as_any();
                        let texts = texts.downcast_ref::<StringViewArray>().unwrap();
                        let expected = numbers.iter().map(|&row| text_of(row));
                        assert!(texts.iter().flatten().eq(expected));
                        assert_eq!(texts.len(), numbers.len());
                    }
                }
                got.entry((batch.chunk, batch.table)).or_default().extend(numbers);
            }
            pair.assert_chunks(&got, [1, 3, 4]);
            drop((stream, scan));
            assert_free(&pair.manager).await;
        }
    }
}

#[tokio::test]
async fn a_table_without_columns_gives_its_numbers_of_rows() {
    let clustered = clustered().await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let pair = pair(&clustered, manager, FileOptions::default(), &BOUNDS).await;
    let scan = pair.manager.start_joint_scan(&pair.joint, pair.request([&[], &[1]])).unwrap();
    let batches: Vec<_> = scan.worker(0).try_collect().await.unwrap();
    let mut rows = BTreeMap::<_, u64>::new();
    for batch in &batches {
        *rows.entry((batch.chunk, batch.table)).or_default() += batch.batch.num_rows() as u64;
    }
    for (chunk, ranges) in pair.chunks.iter().enumerate() {
        for (table, range) in ranges.iter().enumerate() {
            assert_eq!(rows.get(&(chunk, table)).copied().unwrap_or(0), range.end - range.start);
        }
    }
    assert_eq!(clustered[0].metrics.snapshot().bytes, 0, "nothing is read of it");
}

#[tokio::test]
async fn many_small_joint_chunks_some_of_them_empty() {
    let clustered = clustered().await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let options = FileOptions { chunk_rows: 1500, ..FileOptions::default() };
    // There are more chunks than are registered at once.
    let bounds: Vec<_> = (0..=KEYS).flat_map(|key| [key, key]).collect();
    let pair = pair(&clustered, manager, options, &bounds).await;
    assert_eq!(pair.joint.chunk_count(), 2 * KEYS as usize + 1);
    let scan = pair.manager.start_joint_scan(&pair.joint, pair.request([&ALL, &ALL])).unwrap();
    assert_eq!(scan.metrics().chunks.chunks_needed, KEYS as u64, "those with rows");
    assert_eq!(scan.prune(&[0, 1, 2, 3]), 2, "two have no rows");
    pair.assert_chunks(&in_time(rows_of(scan.worker(0), 1)).await.unwrap(), 4..6001);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_get_every_chunk_once_under_every_policy() {
    let clustered = clustered().await;
    let bounds: Vec<_> = (0..=60).map(|part| part * KEYS / 60).collect();
    for policy in PolicyKind::ALL {
        let options = FileOptions { chunk_rows: 1500, ..FileOptions::default() };
        let pair = pair(&clustered, manager(policy, LARGE), options, &bounds).await;
        let request = JointScanRequest { workers: 3, ..pair.request([&ALL, &ALL]) };
        let scan = pair.manager.start_joint_scan(&pair.joint, request).unwrap();
        // One worker stops within a chunk.
        let mut stopped = scan.worker(0);
        let begun = stopped.next().await.unwrap().unwrap().chunk;
        let others = [1, 2].map(|worker| tokio::spawn(rows_of(scan.worker(worker), 1)));
        drop(stopped);
        let mut got = Rows::new();
        for other in others {
            for (place, rows) in other.await.unwrap().unwrap() {
                assert!(got.insert(place, rows).is_none(), "{place:?} comes twice");
            }
        }
        pair.assert_chunks(&got, (0..60).filter(|&chunk| chunk != begun));
        drop(scan);
        assert_free(&pair.manager).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_chunk_of_which_no_row_was_taken_goes_to_another_worker() {
    let (clustered, gate) = (clustered().await, Faults::default());
    let manager = manager(PolicyKind::Relevance, LARGE);
    let parent = clustered[0].table(FileOptions::default()).await;
    let gated = |store| gate.around(store);
    let child = clustered[1].table_behind(FileOptions::default(), gated).await;
    gate.close();
    let tables = [manager.register(parent), manager.register(child)];
    let chunks = chunks_of(&clustered, &[0, 700, 1500, KEYS]);
    let joint = manager.register_joint(&tables, chunks.clone()).unwrap();
    let pair = Pair { manager, tables, joint, chunks };
    let request = JointScanRequest { workers: 2, ..pair.request([&ALL, &ALL]) };
    let scan = pair.manager.start_joint_scan(&pair.joint, request).unwrap();
    let mut waiting = scan.worker(0);
    let other = tokio::spawn(rows_of(scan.worker(1), 1));
    tokio::select! {
        _ = waiting.next() => panic!("the child cannot be read"),
        () = tokio::time::sleep(std::time::Duration::from_secs(1)) => {}
    }
    drop(waiting);
    gate.open();
    pair.assert_chunks(&in_time(other).await.unwrap().unwrap(), 0..3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_smallest_pool_and_little_memory_are_enough() {
    let clustered = clustered().await;
    let bounds: Vec<_> = (0..=12).map(|part| part * KEYS / 12).collect();
    for options in layouts() {
        let sizes = pair(&clustered, manager(PolicyKind::Relevance, LARGE), options, &bounds).await;
        let pool_bytes = sizes.joint.bytes_max(&[ALL.to_vec(), ALL.to_vec()]);
        for policy in [PolicyKind::Relevance, PolicyKind::Normal, PolicyKind::Elevator] {
            let few = Options::with_pool_bytes(pool_bytes, 2 * pool_bytes + 400_000);
            let manager = manager_with(Options { batch_rows: 100, ..few.policy(policy) });
            let pair = pair(&clustered, manager, options, &bounds).await;
            // Again and again: what was read before is collected for later scans.
            for _ in 0..3 {
                let scans = (0..4).map(|_| {
                    let request = JointScanRequest { workers: 2, ..pair.request([&ALL, &ALL]) };
                    pair.manager.start_joint_scan(&pair.joint, request).unwrap()
                });
                let scans: Vec<_> = scans.collect();
                let streams = scans.iter().flat_map(|scan| [scan.worker(0), scan.worker(1)]);
                let streams: Vec<_> =
                    streams.map(|stream| tokio::spawn(rows_of(stream, 1))).collect();
                for workers in in_time(join_all(streams)).await.chunks_mut(2) {
                    let mut rows = Rows::new();
                    for worker in workers {
                        rows.append(worker.as_mut().unwrap().as_mut().unwrap());
                    }
                    pair.assert_chunks(&rows, 0..12);
                }
                drop(scans);
            }
            assert_free(&pair.manager).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn workers_within_a_joint_chunk_do_not_wait_for_each_other() {
    let clustered = clustered().await;
    let options = FileOptions { chunk_rows: 1500, ..FileOptions::default() };
    let whole = [0, KEYS];
    let sizes = pair(&clustered, manager(PolicyKind::Relevance, LARGE), options, &whole).await;
    let stored_bytes = sizes.joint.bytes_max(&[vec![1], vec![2]]);
    // Enough for the pages of two workers with a batch of the parent each, not with a batch of the child's texts.
    let few = Options::with_pool_bytes(stored_bytes, 2 * stored_bytes + 40_000);
    // Each decodes for itself, or may keep what it decodes.
    for decode_bytes in [1, 30_000] {
        let manager = manager_with(Options { batch_rows: 100, decode_bytes, ..few.clone() });
        let pair = pair(&clustered, manager, options, &whole).await;
        for _ in 0..3 {
            let mut streams = [(); 2].map(|()| {
                let request = pair.request([&[1], &[2]]);
                pair.manager.start_joint_scan(&pair.joint, request).unwrap().worker(0)
            });
            let second = std::time::Duration::from_secs(1);
            for stream in &mut streams {
                // The second may have to wait until the first has ended.
                let _ = tokio::time::timeout(second, stream.next()).await;
            }
            let ends = streams.map(|stream| stream.try_for_each(|_| async { Ok(()) }));
            for end in in_time(join_all(ends)).await {
                end.unwrap();
            }
        }
        assert_free(&pair.manager).await;
    }
}

#[tokio::test]
async fn what_is_read_again_stays_decoded_where_a_joint_chunk_holds_it_whole() {
    let clustered = clustered().await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let options = FileOptions { chunk_rows: 500, ..FileOptions::default() };
    let pair = pair(&clustered, manager, options, &BOUNDS).await;
    let mut slices = Vec::new();
    for _ in 0..4 {
        let scan = pair.manager.start_joint_scan(&pair.joint, pair.request([&ALL, &ALL])).unwrap();
        pair.assert_chunks(&rows_of(scan.worker(0), 1).await.unwrap(), 0..7);
        let metrics = scan.metrics();
        slices.push((metrics.slices_decoded, metrics.slices_reused));
    }
    let (all, (left, kept)) = (slices[0].0, slices[2]);
    assert_eq!(slices[..2], [(all, 0), (all, 0)], "from the second use on");
    assert!(kept > 0 && left + kept == all && slices[3] == slices[2], "{slices:?}");
}

#[tokio::test]
async fn a_pool_that_cannot_hold_a_joint_chunk_is_refused() {
    let clustered = clustered().await;
    let options = FileOptions { chunk_rows: 250, ..FileOptions::default() };
    let sizes = pair(&clustered, manager(PolicyKind::Relevance, LARGE), options, &BOUNDS).await;
    let columns = [ALL.to_vec(), ALL.to_vec()];
    let needed_bytes = sizes.joint.bytes_max(&columns);
    assert!(sizes.joint.bytes_max(&[vec![0], vec![]]) < needed_bytes / 4);
    let manager = manager(PolicyKind::Relevance, needed_bytes - 1);
    let pair = pair(&clustered, manager, options, &BOUNDS).await;
    let refused = pair.manager.start_joint_scan(&pair.joint, pair.request([&ALL, &ALL]));
    let Err(ScanError::Start(StartScanError::PoolTooSmall { pool_bytes, chunk_bytes })) = refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!((pool_bytes, chunk_bytes), (needed_bytes - 1, needed_bytes));
    // A scan of fewer columns fits.
    let scan = pair.manager.start_joint_scan(&pair.joint, pair.request([&[1], &[1]])).unwrap();
    pair.assert_chunks(&rows_of(scan.worker(0), 0).await.unwrap(), 0..7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_read_and_columns_decoded_once_beside_scans_of_each_table() {
    let (clustered, gate) = (clustered().await, Faults::default());
    for options in layouts().filter(|options| options.layout == PageLayout::Column) {
        let manager = manager(PolicyKind::Relevance, LARGE);
        let mut tables = Vec::new();
        for table in &clustered {
            let table = table.table_behind(options, |store| gate.around(store)).await;
            tables.push(manager.register(table));
        }
        gate.close();
        // Whole chunks of both tables in the middle.
        let bounds = [0, 1500, KEYS];
        let chunks = chunks_of(&clustered, &bounds);
        let joint = manager.register_joint(&tables, chunks.clone()).unwrap();
        let tables: [SharedTable; 2] = tables.try_into().unwrap();
        let pair = Pair { manager, tables, joint, chunks };
        let joint = pair.manager.start_joint_scan(&pair.joint, pair.request([&ALL, &ALL])).unwrap();
        let single = pair.tables.each_ref().map(|table| {
            let request = ScanRequest::of_columns(table, vec![1, 2]);
            pair.manager.start_scan(table, request).unwrap()
        });
        let single_ids = single.each_ref().map(|scan| tokio::spawn(ids(scan.worker(0))));
        let joint_rows = tokio::spawn(rows_of(joint.worker(0), 1));
        gate.open();
        pair.assert_chunks(&in_time(joint_rows).await.unwrap().unwrap(), 0..2);
        for (found, table) in single_ids.into_iter().zip(&clustered) {
            let found = sorted(found.await.unwrap().unwrap());
            assert!(found.into_iter().eq(0..table.keys.len() as i64));
        }
        let all_bytes = pair.tables.iter().map(|table| column_bytes(table.table(), &ALL));
        let all_bytes: u64 = all_bytes.sum();
        assert_eq!(pair.manager.report().bytes_read, all_bytes, "each page once");
        // Chunks that a joint chunk holds in part are decoded by both scans, the others by one of them.
        let whole = pair.tables.iter().enumerate().map(|(table, shared)| {
            let layout = shared.table().layout();
            let is_whole = |rows: &Range<u64>| {
                let covers = |chunk: &Vec<Range<u64>>| {
                    chunk[table].start <= rows.start && rows.end <= chunk[table].end
                };
                pair.chunks.iter().any(covers)
            };
            layout.chunks().filter(|&chunk| is_whole(&layout.rows(chunk))).count() as u64
        });
        let whole: u64 = whole.sum();
        assert!(whole >= 3);
        let reused: u64 = single.iter().map(|scan| scan.metrics().slices_reused).sum();
        assert_eq!(reused + joint.metrics().slices_reused, 2 * whole);
        drop((single, joint));
        assert_free(&pair.manager).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_fails_the_joint_scan_for_all_its_workers_only() {
    let clustered = clustered().await;
    let options = FileOptions { chunk_rows: 1500, ..FileOptions::default() };
    let manager = manager(PolicyKind::Relevance, LARGE);
    let parent = manager.register(clustered[0].table(options).await);
    let faults = Faults::default();
    let child = clustered[1].table_behind(options, |store| faults.around(store)).await;
    faults.judge(|range| if range.start > 30_000 { Fate::Fail } else { Fate::Answer });
    let tables = [parent, manager.register(child)];
    let chunks = chunks_of(&clustered, &BOUNDS);
    let joint = manager.register_joint(&tables, chunks.clone()).unwrap();
    let pair = Pair { manager, tables, joint, chunks };
    let request = JointScanRequest { workers: 2, ..pair.request([&ALL, &ALL]) };
    let scan = pair.manager.start_joint_scan(&pair.joint, request).unwrap();
    let parents = ids(pair.manager.scan(&pair.tables[0], &[1], &[0..3000]).unwrap());
    let workers = [0, 1].map(|worker| tokio::spawn(rows_of(scan.worker(worker), 1)));
    let parents = tokio::spawn(parents);
    for worker in workers {
        let failed = in_time(worker).await.unwrap().unwrap_err();
        assert!(matches!(failed, ScanError::Read(_)), "{failed:?}");
    }
    assert!(sorted(in_time(parents).await.unwrap().unwrap()).into_iter().eq(0..3000));
    drop(scan);
    assert_free(&pair.manager).await;
}

#[tokio::test]
async fn a_cancelled_scan_gives_up_its_chunks() {
    let clustered = clustered().await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let pair = pair(&clustered, manager, FileOptions::default(), &BOUNDS).await;
    let scan = pair.manager.start_joint_scan(&pair.joint, pair.request([&ALL, &ALL])).unwrap();
    let mut stream = scan.worker(0);
    stream.next().await.unwrap().unwrap();
    scan.cancel();
    let rest: Vec<_> = stream.map_ok(|batch| batch.chunk).collect().await;
    assert!(matches!(rest.last(), Some(Err(ScanError::Cancelled))), "{rest:?}");
    drop(scan);
    assert_free(&pair.manager).await;
}

#[tokio::test]
async fn the_same_tables_and_ranges_are_one_table_of_the_scheduler() {
    let clustered = clustered().await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let pair = pair(&clustered, manager, FileOptions::default(), &BOUNDS).await;
    pair.tables[0].set_title("orders");
    pair.tables[1].set_title("lines");
    let other = chunks_of(&clustered, &BOUNDS[1..]);
    let other = pair.manager.register_joint(&pair.tables, other).unwrap();
    let same = pair.manager.register_joint(&pair.tables, pair.chunks.clone()).unwrap();
    assert_eq!(same.id(), pair.joint.id());
    assert_ne!(other.id(), pair.joint.id());
    let ids: BTreeSet<_> = pair.manager.tables().iter().map(|table| table.id).collect();
    assert_eq!(ids.len(), 4);
    let report = pair.manager.tables().into_iter().find(|table| table.id == other.id()).unwrap();
    assert_eq!((&*report.name, report.chunks), ("orders + lines", 6));
    assert_eq!(report.groups[1..4], ["orders.row", "orders.text", "lines.key"]);

    // Files stay as long as the joint table, even if all others release them.
    let Pair { manager, tables, joint, chunks } = pair;
    drop((tables, joint, other));
    assert_eq!(manager.tables().len(), 3);
    let request = JointScanRequest {
        columns: vec![vec![1], vec![1]],
        chunks: (0..chunks.len()).collect(),
        workers: 1,
        weight: 1,
        label: ScanLabel { query: Some("q".into()), table: Some("both".into()) },
    };
    let scan = manager.start_joint_scan(&same, request).unwrap();
    let mut stream = scan.worker(0);
    drop(same);
    stream.next().await.unwrap().unwrap();
    let reports = manager.scans();
    assert_eq!((&*reports[0].table_name, reports[0].chunks_left), ("both", 6));
    assert_eq!(reports[0].columns[..], ["row", "row"]);
    for table in manager.tables() {
        assert!(manager.pool_map(table.id, 10).is_some());
    }
    let rest: Vec<_> = stream.try_collect().await.unwrap();
    assert!(!rest.is_empty());
    drop((scan, rest));
    assert_eq!(manager.tables().len(), 0);
    assert_eq!(manager.report().pool_held_bytes, 0, "their pages go with them");
    assert_free(&manager).await;
}

#[tokio::test]
async fn impossible_tables_and_requests_are_refused() {
    let clustered = clustered().await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let pair = pair(&clustered, manager, FileOptions::default(), &BOUNDS).await;
    let [parent, child] = pair.tables.clone();
    let refused =
        |tables: &[SharedTable], chunks| pair.manager.register_joint(tables, chunks).unwrap_err();
    assert_eq!(refused(&[], vec![]), JointTableError::NoTables);
    let counts = refused(&pair.tables, vec![vec![0..1]]);
    assert!(matches!(counts, JointTableError::RangeCount { .. }), "{counts}");
    let overlap = vec![vec![0..10, 0..10], vec![10..20, 9..20]];
    let backwards = vec![vec![0..10, Range { start: 7, end: 6 }]];
    for chunks in [overlap, backwards, vec![vec![0..KEYS as u64 + 1, 0..0]]] {
        let rows = refused(&pair.tables, chunks);
        assert!(matches!(rows, JointTableError::Rows { .. }), "{rows}");
    }
    let twice = refused(&[child.clone(), parent, child], vec![]);
    assert!(twice.to_string().contains("part-0.parquet"), "{twice}");

    let start = |request| pair.manager.start_joint_scan(&pair.joint, request).unwrap_err();
    let columns = JointScanRequest { columns: vec![vec![0]], ..pair.request([&[], &[]]) };
    assert!(matches!(start(columns), ScanError::JointColumns { columns: 1, tables: 2 }));
    let unknown = start(pair.request([&[0], &[3]]));
    assert!(matches!(unknown, ScanError::UnknownColumn { column: 3, columns: 3 }));
    let chunks = JointScanRequest { chunks: vec![0, 7], ..pair.request([&[0], &[0]]) };
    assert!(matches!(start(chunks), ScanError::UnknownJointChunk { chunk: 7, chunks: 7 }));
    let workers = JointScanRequest { workers: 0, ..pair.request([&[0], &[0]]) };
    assert!(matches!(start(workers), ScanError::Start(StartScanError::NoWorkers)));
}
