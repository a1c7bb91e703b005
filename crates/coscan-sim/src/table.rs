//! Tables that may change: their versions, and what a query sees of them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use coscan_core::{ChunkIndex, Index, Layout};

/// A table. Its first version may be followed by others, see [`TableChange`].
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name in reports.
    pub name: String,
    /// The chunks and pages of all its versions. The chunks of the first version come first.
    pub layout: Arc<Layout>,
    /// The number of chunks of the first version.
    pub initial_chunk_count: usize,
}

impl Table {
    /// A table that has all chunks of a layout from the start.
    #[must_use]
    pub fn at_rest(name: impl Into<String>, layout: Arc<Layout>) -> Self {
        let initial_chunk_count = layout.chunk_count();
        Self { name: name.into(), layout, initial_chunk_count }
    }

    /// The number of rows of the first version.
    #[must_use]
    pub fn rows_at_start(&self) -> u64 {
        match self.initial_chunk_count {
            0 => 0,
            chunks => self.layout.rows(ChunkIndex::from_usize(chunks - 1)).end,
        }
    }

    /// The first version.
    #[must_use]
    pub fn first_snapshot(&self) -> Snapshot {
        let chunks = self.layout.chunks().take(self.initial_chunk_count);
        Snapshot::new(&self.layout, chunks.collect())
    }
}

/// A change of a table. The next version has other chunks in the place of some, as after a checkpoint
/// [CS11 §4.7], or further ones at its end, as after an append [CS11 §4.6].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableChange {
    /// The table, as a position in [`crate::Workload::tables`].
    pub table: usize,
    /// The chunks that it replaces; none for an append. If the newest version lacks one of them, because another change
    /// replaced it, the change is not made.
    pub replaced: Vec<ChunkIndex>,
    /// The chunks that the table has from then on, in the order of their rows. They come with one change only.
    pub added: Vec<ChunkIndex>,
}

/// A version of a table: its chunks in the order of their rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    chunks: Vec<ChunkIndex>,
    /// The first row of each chunk, and after the last one the number of rows.
    starts: Vec<u64>,
    /// The position of each chunk in `chunks`.
    positions: BTreeMap<ChunkIndex, usize>,
}

impl Snapshot {
    fn new(layout: &Layout, chunks: Vec<ChunkIndex>) -> Self {
        let mut starts = vec![0];
        for &chunk in &chunks {
            let rows = layout.rows(chunk);
            starts.push(starts[starts.len() - 1] + (rows.end - rows.start));
        }
        let positions = chunks.iter().enumerate().map(|(position, &chunk)| (chunk, position));
        Self { positions: positions.collect(), chunks, starts }
    }

    /// The chunks in the order of their rows.
    #[must_use]
    pub fn chunks(&self) -> &[ChunkIndex] {
        &self.chunks
    }

    /// Whether it has a chunk.
    #[must_use]
    pub fn contains(&self, chunk: ChunkIndex) -> bool {
        self.positions.contains_key(&chunk)
    }

    /// The number of rows.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.starts[self.chunks.len()]
    }

    /// Chunks that it has, of these, in the order of their rows, each with its number of rows.
    pub(crate) fn chunks_of(&self, chunks: &[ChunkIndex]) -> Vec<(ChunkIndex, u64)> {
        let mut found: Vec<_> =
            chunks.iter().filter_map(|chunk| self.positions.get(chunk)).copied().collect();
        found.sort_unstable();
        let rows = |position: usize| self.starts[position + 1] - self.starts[position];
        found.into_iter().map(|position| (self.chunks[position], rows(position))).collect()
    }

    /// The chunks that hold any of these rows, in the order of their rows, each with the number of these rows that it
    /// holds. Rows in several of the ranges count once.
    pub(crate) fn chunks_in(&self, rows: &[Range<u64>]) -> Vec<(ChunkIndex, u64)> {
        let mut ranges: Vec<_> = rows.iter().map(|rows| (rows.start, rows.end)).collect();
        ranges.sort_unstable();
        let mut found: Vec<(ChunkIndex, u64)> = Vec::new();
        let mut from = 0;
        for (start, end) in ranges {
            let (start, end) = (start.max(from), end.min(self.row_count()));
            if start >= end {
                continue;
            }
            from = end;
            let first = self.starts.partition_point(|&first_row| first_row <= start) - 1;
            for position in first..self.chunks.len() {
                let (low, high) =
                    (self.starts[position].max(start), self.starts[position + 1].min(end));
                if low >= high {
                    break;
                }
                match found.last_mut() {
                    Some((last, rows)) if *last == self.chunks[position] => *rows += high - low,
                    _ => found.push((self.chunks[position], high - low)),
                }
            }
        }
        found
    }

    /// The version after a change; `None` if this one lacks a chunk that the change replaces. The added chunks stand where
    /// the first of the replaced ones stood, or else at the end.
    pub(crate) fn changed(&self, layout: &Layout, change: &TableChange) -> Option<Self> {
        if !change.replaced.iter().all(|&chunk| self.contains(chunk)) {
            return None;
        }
        let first = change.replaced.iter().map(|chunk| self.positions[chunk]).min();
        let (before, after) = self.chunks.split_at(first.unwrap_or(self.chunks.len()));
        let stay = after.iter().filter(|chunk| !change.replaced.contains(chunk));
        let chunks = before.iter().chain(&change.added).chain(stay).copied();
        Some(Self::new(layout, chunks.collect()))
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use coscan_core::GroupIndex;

    use super::*;

    /// Six chunks of ten rows, of which the first version has four.
    fn table() -> Table {
        let mut builder = Layout::builder(1);
        for _ in 0..6 {
            let page = builder.add_page(GroupIndex(0), 1);
            builder.add_chunk(10, vec![vec![page]]);
        }
        Table { initial_chunk_count: 4, ..Table::at_rest("t", Arc::new(builder.build())) }
    }

    fn chunks<const COUNT: usize>(chunks: [u32; COUNT]) -> Vec<ChunkIndex> {
        chunks.map(ChunkIndex).into()
    }

    #[test]
    fn added_chunks_stand_in_the_place_of_replaced_ones_or_at_the_end() {
        let table = table();
        let change = |replaced, added| TableChange { table: 0, replaced, added };
        let first = table.first_snapshot();
        assert_eq!((table.rows_at_start(), first.row_count()), (40, 40));
        let append = first.changed(&table.layout, &change(vec![], chunks([4, 5])));
        assert_eq!(append.expect("it replaces nothing").chunks(), chunks([0, 1, 2, 3, 4, 5]));
        let checkpoint = first.changed(&table.layout, &change(chunks([1, 2]), chunks([5])));
        let checkpoint = checkpoint.expect("both are there");
        assert_eq!(checkpoint.chunks(), chunks([0, 5, 3]));
        assert_eq!(checkpoint.changed(&table.layout, &change(chunks([2]), chunks([4]))), None);
    }

    #[test]
    fn rows_are_those_of_the_version() {
        let table = table();
        let change = TableChange { table: 0, replaced: chunks([0]), added: chunks([5, 4]) };
        let version = table.first_snapshot().changed(&table.layout, &change).expect("it is there");
        let found = |rows: &[Range<u64>]| {
            version.chunks_in(rows).into_iter().map(|(chunk, rows)| (chunk.0, rows)).collect()
        };
        let none: Vec<(u32, u64)> = Vec::new();
        assert_eq!(
            found(&[5..25, 22..23, 28..99]),
            vec![(5, 5), (4, 10), (1, 7), (2, 10), (3, 10)]
        );
        assert_eq!((found(&[7..7]), found(&[50..60])), (none.clone(), none));
        assert_eq!(
            version.chunks_of(&chunks([0, 3, 5])),
            [(ChunkIndex(5), 10), (ChunkIndex(3), 10)]
        );
    }
}
