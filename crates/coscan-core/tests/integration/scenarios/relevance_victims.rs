//! The victims of the policies that score chunks.

use coscan_core::policy::Scores;
use coscan_core::*;

use crate::scenarios::{scored_world, world};
use crate::world::{NEVER, SPACE_TIMEOUT_NS, World, table, worker};

#[test]
fn row_scores_keep_chunks_that_almost_starved_scans_need() {
    let (mut world, table) = scored_world(Scores::Row, 40).with_table(7, &[10]);
    world.warm(table, &[0], 0..40);
    let start = |world: &mut World, rows: &[std::ops::Range<u64>]| {
        world.try_start(table, &[0], rows.to_vec(), Order::Any, &[NEVER]).unwrap();
    };
    start(&mut world, &[10..40]); // Has three: enough.
    start(&mut world, &[0..20, 30..40]); // Has three: enough.
    start(&mut world, &[0..10, 30..40]); // Has two: at the border of starvation.
    // Keep: chunk 0: 1·Q + 2, chunk 1: 2, chunk 2: 1, chunk 3: 1·Q + 3.
    world.start(table, &[0], 40..70, &[worker(1)]);
    world.drive_until(500);
    assert_eq!(world.evicted(), [2, 4, 5], "2 for the first, then its own, used");
}

#[test]
fn column_scores_keep_columns_that_serve_most_scans_per_byte() {
    let (mut world, table) = scored_world(Scores::Column, 440).with_table(5, &[10, 100]);
    world.warm(table, &[0, 1], 0..40);
    // All are at the border of starvation. Keep: chunks 0 and 1: 1 / 110, chunks 2 and 3: 2 / 110.
    world.start(table, &[0, 1], 0..20, &[NEVER]);
    world.start(table, &[0, 1], 20..40, &[NEVER]);
    world.start(table, &[0, 1], 20..40, &[NEVER]);
    world.start(table, &[0, 1], 40..50, &[worker(1)]);
    world.drive_until(500);
    assert_eq!(world.evicted(), [0, 1], "both columns of chunk 0");
}

#[test]
fn columns_that_no_scan_needs_are_evicted_before_chunks_that_some_scan_needs() {
    let (mut world, table) = scored_world(Scores::Column, 40).with_table(3, &[10, 10]);
    world.warm(table, &[0, 1], 0..20);
    world.start(table, &[0], 0..20, &[NEVER]);
    world.start(table, &[0, 1], 20..30, &[worker(1)]);
    world.drive_until(500);
    assert_eq!(world.evicted(), [1, 3]);
}

#[test]
fn ready_chunks_of_starved_scans_stay() {
    let (mut world, table) = world(PolicyKind::Relevance, 20).with_table(8, &[10]);
    world.warm(table, &[0], 0..20);
    world.start(table, &[0], 0..10, &[NEVER]);
    world.start(table, &[0], 20..80, &[worker(30)]);
    world.drive_until(5_000);
    assert_eq!(world.evicted(), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn the_pages_of_the_scan_that_space_is_made_for_stay() {
    let (mut world, table) = scored_world(Scores::Column, 40).with_table(4, &[10, 10]);
    world.warm(table, &[0], 0..40);
    world.start(table, &[0], 20..40, &[NEVER]);
    world.start(table, &[0, 1], 0..20, &[worker(1)]);
    world.drive_until(world.now);
    // Column 0 of chunk 1 has the score of column 0 of chunks 2 and 3 and comes before them, but it is its own.
    assert_eq!(world.evicted(), [4]);
}

#[test]
fn a_page_of_more_classes_than_a_choice_looks_at_is_evicted_when_a_scan_waits_for_space() {
    for policy in [PolicyKind::Relevance, PolicyKind::Relevance2007, PolicyKind::Relevance2004] {
        let mut world = world(policy, 100);
        let mut builder = Layout::builder(1);
        let page = builder.add_page(GroupIndex(0), 100);
        (0..300).for_each(|_| {
            builder.add_chunk(10, vec![vec![page]]);
        });
        let shared = world.add_table(&std::sync::Arc::new(builder.build()));
        world.warm(shared, &[0], 0..10);
        for end in 1..=300 {
            world.start(shared, &[0], 0..10 * end, &[NEVER]);
        }
        let other = world.add_table(&table(1, &[100]));
        let waits = world.start(other, &[0], 0..10, &[worker(1)]);
        world.drive_until(world.now + 100 * SPACE_TIMEOUT_NS);
        assert!(world.finished.contains(&waits), "{policy}");
    }
}

#[test]
fn a_scan_alone_reads_nothing_twice() {
    let (mut world, table) = world(PolicyKind::Relevance, 30).with_table(6, &[10]);
    let scan = world.start(table, &[0], 0..60, &[worker(1)]);
    world.drive();
    assert_eq!(world.delivered_to(scan).len(), 6);
    assert_eq!(world.chunks_read(), [0, 1, 2, 3, 4, 5], "nothing read twice");
}

#[test]
fn scans_that_read_ahead_do_not_evict_what_was_read_ahead_for_others() {
    for policy in [PolicyKind::Relevance, PolicyKind::Attach, PolicyKind::Elevator] {
        let (mut world, table) = world(policy, 30).with_table(8, &[10]);
        world.start(table, &[0], 0..40, &[worker(5_000)]);
        world.start(table, &[0], 40..80, &[worker(5_000)]);
        world.drive_until(4_000);
        assert_eq!(world.chunks_read().len(), 3, "{policy}: {:?}", world.chunks_read());
    }
}
