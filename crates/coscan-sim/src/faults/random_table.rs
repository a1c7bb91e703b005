//! Small random tables.

use std::sync::Arc;

use coscan_core::{GroupIndex, Index, Layout, LayoutBuilder, PageIndex};

use crate::random::Random;
use crate::table::Table;

/// A table of up to nine chunks and four column groups, whose pages lie in one of several ways.
pub(super) fn table(random: &mut Random) -> Table {
    let mut slices = vec![Vec::new(); random.count(1, 9)];
    let groups = random.count(1, 4);
    let mut builder = Layout::builder(groups);
    for group in (0..groups).map(GroupIndex::from_usize) {
        add_group(random, &mut builder, group, &mut slices);
    }
    for slices in slices {
        builder.add_chunk(random.between(1, 15), slices);
    }
    Table::at_rest("random", Arc::new(builder.build()))
}

/// Adds the pages of a column group to the slices of each chunk.
fn add_group(
    random: &mut Random,
    builder: &mut LayoutBuilder,
    group: GroupIndex,
    slices: &mut [Vec<Vec<PageIndex>>],
) {
    let bytes_max = random.between(1, 20);
    let shape = random.below(4);
    let count = random.count(1, 4);
    let mut page = || builder.add_page(group, random.between(1, bytes_max));
    match shape {
        // Several pages for each chunk.
        0 => slices.iter_mut().for_each(|slices| slices.push((0..count).map(|_| page()).collect())),
        // One page for several chunks in a row.
        1 => slices.chunks_mut(count).for_each(|chunks| {
            let shared = page();
            chunks.iter_mut().for_each(|slices| slices.push(vec![shared]));
        }),
        // Each chunk shares a page with the next.
        2 => {
            let pages: Vec<_> = (0..=slices.len()).map(|_| page()).collect();
            let pairs = slices.iter_mut().zip(pages.windows(2));
            pairs.for_each(|(slices, pair)| slices.push(pair.to_vec()));
        }
        // One page that all chunks need, and one for each.
        _ => {
            let all = page();
            slices.iter_mut().for_each(|slices| slices.push(vec![all, page()]));
        }
    }
}
