//! `elevator`: one cursor for the table.

use coscan_core::*;

use crate::scenarios::world;
use crate::world::worker;

#[test]
fn the_cursor_reads_the_columns_that_any_scan_needs() {
    let (mut world, table) = world(PolicyKind::Elevator, 1_000).with_table(4, &[10, 10, 10]);
    world.start(table, &[0], 0..40, &[worker(1)]);
    world.start(table, &[1], 20..40, &[worker(1)]);
    world.drive();
    assert_eq!(world.chunks_read(), [0, 1, 2, 3]);
    assert_eq!(world.pages_read(), [0, 3, 6, 7, 9, 10]);
}

#[test]
fn the_cursor_goes_on_from_where_it_is_and_wraps() {
    let (mut world, table) = world(PolicyKind::Elevator, 20).with_table(6, &[10]);
    world.start(table, &[0], 0..60, &[worker(10)]);
    world.drive_until(35);
    world.start(table, &[0], 0..60, &[worker(10)]);
    world.drive();
    let read = world.chunks_read();
    let wraps = read.windows(2).filter(|two| two[1] < two[0]).count();
    assert_eq!((&read[..6], wraps), (&[0, 1, 2, 3, 4, 5][..], 1), "{read:?}");
}

#[test]
fn the_cursor_does_not_skip_a_chunk_that_does_not_fit() {
    let mut world = world(PolicyKind::Elevator, 40);
    let mut layout = Layout::builder(1);
    for bytes in [10, 30, 30, 10] {
        let page = layout.add_page(GroupIndex(0), bytes);
        layout.add_chunk(10, vec![vec![page]]);
    }
    let table = world.add_table(&std::sync::Arc::new(layout.build()));
    world.start(table, &[0], 0..20, &[worker(500)]);
    world.start(table, &[0], 20..40, &[worker(1)]);
    world.start(table, &[0], 30..40, &[worker(1)]);
    world.drive();
    assert_eq!(world.chunks_read(), [0, 1, 2, 3], "chunk 3 would have fitted before chunk 2");
}

#[test]
fn the_fast_scan_waits_for_the_slow_one() {
    let (mut world, table) = world(PolicyKind::Elevator, 30).with_table(10, &[10]);
    let slow = world.start(table, &[0], 0..100, &[worker(1_000)]);
    let fast = world.start(table, &[0], 0..100, &[worker(1)]);
    world.drive();
    assert_eq!(world.chunks_read(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "each chunk once");
    assert_eq!(world.finished, [fast, slow]);
    let fast_ns = world.ended[&fast].at;
    assert!(fast_ns > 6_000, "held up by the slow one, done after {fast_ns} ns");
}

#[test]
fn a_page_is_evicted_only_when_no_scan_needs_it() {
    let (mut world, table) = world(PolicyKind::Elevator, 30).with_table(6, &[10]);
    let slow = world.start(table, &[0], 0..60, &[worker(900)]);
    world.start(table, &[0], 0..60, &[worker(1)]);
    world.drive_until(800);
    assert_eq!(world.evicted(), [] as [u32; 0], "the slow scan still wants them");
    world.cancel(slow);
    world.drive();
    assert_eq!(world.chunks_read(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(world.evicted(), [1, 2, 0], "the slow scan used chunk 0 until it ended");
}

#[test]
fn columns_of_several_scans_that_do_not_fit_together_come_one_after_the_other() {
    let (mut world, table) = world(PolicyKind::Elevator, 10).with_table(2, &[10, 10]);
    world.start(table, &[0], 0..20, &[worker(1)]);
    world.start(table, &[1], 0..20, &[worker(1)]);
    world.drive();
    assert_eq!(world.finished.len(), 2);
    assert_eq!(world.chunks_read(), [0, 0, 1, 1], "the cursor moves on when all is read");
}
