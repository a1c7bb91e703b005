//! The deliveries of the policies that score chunks.

use coscan_core::policy::Scores;
use coscan_core::*;

use crate::scenarios::{scored_world, world};
use crate::world::{NEVER, worker};

#[test]
fn chunks_that_few_other_scans_need_are_handed_out_first() {
    // Row: chunk 0 is needed by 2 scans, chunk 1 by 3, chunk 2 by 1.
    let (mut world, table) = scored_world(Scores::Row, 1_000).with_table(3, &[10]);
    world.warm(table, &[0], 0..30);
    world.start(table, &[0], 0..20, &[NEVER]);
    world.start(table, &[0], 10..20, &[NEVER]);
    let scan = world.start(table, &[0], 0..30, &[worker(1)]);
    world.drive_until(1_000);
    assert_eq!(world.delivered_to(scan), [2, 0, 1]);
}

#[test]
fn chunks_that_free_most_bytes_per_scan_are_handed_out_first() {
    // Column: P / U is 10 / 1 for chunk 0, (10 + 100) / 2 for chunk 1, 10 / 2 for chunk 2.
    let (mut world, table) = scored_world(Scores::Column, 1_000).with_table(3, &[10, 100]);
    world.warm(table, &[0, 1], 0..30);
    world.start(table, &[0, 1], 10..20, &[NEVER]);
    world.start(table, &[0], 20..30, &[NEVER]);
    let scan = world.start(table, &[0], 0..30, &[worker(1)]);
    world.drive_until(1_000);
    assert_eq!(world.delivered_to(scan), [1, 0, 2]);
}

#[test]
fn decoded_chunks_are_handed_out_first() {
    let (mut world, table) = world(PolicyKind::Relevance, 1_000).with_table(3, &[10, 10]);
    world.warm(table, &[0, 1], 0..30);
    let scan = world.start(table, &[0, 1], 0..30, &[worker(1)]);
    for (chunk, group) in [(1, 0), (2, 0), (2, 1)] {
        world.decode(table, ChunkIndex(chunk), GroupIndex(group), true);
    }
    world.drive();
    assert_eq!(world.delivered_to(scan), [2, 1, 0]);
}
