//! The loads of the policies that score chunks: the scan that they read for, and the chunk.

use coscan_core::policy::Scores;
use coscan_core::*;

use crate::scenarios::{scored_world, world};
use crate::world::{NEVER, table, worker};

#[test]
fn two_queries_of_one_table_read_shared_chunks_once() {
    // CS07 §1: a scan of all and a scan of a part, the second one starting later, at different speeds.
    let (mut world, table) = world(PolicyKind::Relevance, 50).with_table(10, &[10]);
    world.start(table, &[0], 0..100, &[worker(40)]);
    world.drive_until(100);
    world.start(table, &[0], 20..80, &[worker(40)]);
    world.drive();
    let mut read = world.chunks_read();
    read.sort_unstable();
    let count = read.len();
    read.dedup();
    assert_eq!(read.len(), 10);
    assert!(count <= 12, "{count} reads of 10 chunks; normal needs more");
}

#[test]
fn a_short_scan_bypasses_the_queue() {
    let (mut world, table) = world(PolicyKind::Relevance, 60).with_table(20, &[10]);
    world.start(table, &[0], 0..150, &[worker(1)]);
    world.drive_until(35);
    let short = world.start(table, &[0], 180..190, &[worker(1)]);
    world.drive();
    assert_eq!(world.finished[0], short);
    let waited_ns = world.ended[&short].at - 35;
    assert!(waited_ns <= 20, "{waited_ns} ns: what is being read, its own chunk, no more");
}

#[test]
fn a_long_scan_is_not_starved_by_a_stream_of_short_ones() {
    // A short scan comes whenever one has been read for, so the disk always has a shorter one to serve.
    let (mut world, long) = world(PolicyKind::Relevance, 1_000).with_table(5, &[10]);
    let short = world.add_table(&table(1_000, &[10]));
    world.start(short, &[0], 0..10, &[worker(1)]);
    world.settle();
    let long = world.start(long, &[0], 0..50, &[worker(1)]);
    for newcomer in 1..1_000 {
        world.start(short, &[0], newcomer * 10..newcomer * 10 + 10, &[worker(1)]);
        world.drive_until(newcomer * 10);
        if world.finished.contains(&long) {
            break;
        }
    }
    assert!(world.finished.contains(&long));
}

#[test]
fn row_scores_count_starved_scans_before_others() {
    // Chunk 3 is needed by two other starved scans, chunk 1 by one, chunk 2 by one that has enough.
    let (mut world, table) = scored_world(Scores::Row, 1_000).with_table(12, &[10]);
    // A trigger with the fewest needed chunks goes first (queryRelevance).
    world.start(table, &[0], 10..40, &[worker(1)]);
    world.start(table, &[0], 10..20, &[NEVER]);
    world.start(table, &[0], 30..120, &[NEVER]);
    world.start(table, &[0], 30..110, &[NEVER]);
    world.settle();
    // The scan of chunk 1 alone needs least: its chunk is read first, for every scan that needs it,
    // too.
    assert_eq!(world.chunks_read(), [1]);
    world.drive_until(11);
    // Then the scan of chunks 1 to 3 chooses: L(2) = 1·Q + 1, L(3) = 3·Q + 3.
    assert_eq!(world.chunks_read(), [1, 3]);
}

#[test]
fn column_scores_weigh_scans_against_bytes() {
    // L / P: chunk 0 serves the trigger alone: 1 / 10. Chunk 1 serves two, but with a column of 100 bytes more:
    // 2 / 110. Chunk 2 serves two that read the same: 2 / 10.
    let (mut world, table) = scored_world(Scores::Column, 1_000).with_table(3, &[10, 100]);
    world.start(table, &[0], 0..30, &[worker(1)]);
    world.start(table, &[0, 1], 10..20, &[NEVER]);
    world.start(table, &[0], 20..30, &[NEVER]);
    world.drive_until(10_000);
    let mut loads = world.loads().map(|(scan, _, chunk)| (scan, chunk));
    // Scans 1 and 2 need one chunk each, scan 0 needs three: the oldest of the shortest goes first.
    assert!(loads.by_ref().eq([(ScanId(1), 1), (ScanId(2), 2), (ScanId(0), 0)]));
    assert_eq!(world.pages_read(), [2, 3, 4, 0]);
}

#[test]
fn column_scores_choose_the_cheap_chunk_that_serves_many() {
    let (mut world, table) = scored_world(Scores::Column, 1_000).with_table(5, &[10, 100]);
    world.start(table, &[0], 0..30, &[worker(100)]);
    world.start(table, &[0, 1], 10..50, &[NEVER]);
    world.start(table, &[0], 20..60, &[NEVER]);
    world.settle();
    // Scores for scan 0: chunk 0: 1 / 10, chunk 1: 2 / 110, chunk 2: 3 / 110.
    assert_eq!(world.chunks_read(), [0]);
}

#[test]
fn small_columns_are_read_first() {
    let (mut world, table) = world(PolicyKind::Relevance, 1_000).with_table(1, &[300, 20, 100]);
    world.start(table, &[0, 1, 2], 0..10, &[worker(1)]);
    world.drive();
    assert_eq!(world.pages_read(), [1, 2, 0]);
}

#[test]
fn a_scan_of_few_columns_wakes_early() {
    let (mut world, table) = world(PolicyKind::Relevance, 1_000).with_table(1, &[300, 20]);
    world.start(table, &[0, 1], 0..10, &[worker(1)]);
    let few = world.start(table, &[1], 0..10, &[worker(1)]);
    world.drive();
    assert_eq!(world.ended[&few].at, 21, "20 ns for its column, 1 ns for its work");
}

#[test]
fn a_chunk_that_helps_nobody_else_is_still_chosen() {
    // Slip 4: scores start below zero, not at zero. The scan needs no chunk that others need, has no
    // columns in common with them, and its delivery score is negative.
    for scores in [Scores::Row, Scores::Column] {
        let (mut world, table) = scored_world(scores, 1_000).with_table(4, &[10, 0]);
        let lonely = world.start(table, &[1], 30..40, &[worker(1)]);
        world.start(table, &[0], 0..20, &[worker(1)]);
        world.drive();
        assert!(world.finished.contains(&lonely), "{scores:?}");
    }
}

#[test]
fn a_scan_in_order_gets_its_next_chunk_read_whatever_others_need() {
    let (mut world, table) = world(PolicyKind::Relevance, 100).with_table(4, &[10]);
    world.try_start(table, &[0], vec![0..20], Order::InOrder, &[worker(1)]).unwrap();
    world.start(table, &[0], 10..40, &[NEVER]);
    world.settle();
    assert_eq!(world.chunks_read(), [0]);
}
