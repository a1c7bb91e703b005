//! Cuts the row groups of a file into chunks: small row groups are joined, huge ones are split.

use std::ops::Range;

use super::pages::StoredChunk;

/// The size of a row group, and how far it can be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowGroupShape {
    pub(super) rows: u64,
    /// The most parts that it can be split into: 1 unless the file lists the data pages of all its columns.
    pub(super) parts_max: u64,
}

/// The chunks of a file, in the order of rows. Row groups without rows are skipped. Unless `joins`, a chunk has one
/// row group.
pub(super) fn chunks_of_file(
    row_groups: &[RowGroupShape],
    chunk_rows: u64,
    joins: bool,
) -> Vec<StoredChunk> {
    let mut chunks = Chunks {
        joins,
        chunk_rows: chunk_rows.max(1),
        done: Vec::new(),
        run: Vec::new(),
        run_rows: 0,
    };
    for (position, row_group) in row_groups.iter().enumerate().filter(|(_, shape)| shape.rows > 0) {
        let parts = (row_group.rows / chunks.chunk_rows).min(row_group.parts_max);
        if parts >= 2 {
            chunks.end_run();
            chunks.split(position, row_group.rows, parts);
        } else {
            chunks.run.push(position);
            chunks.run_rows += row_group.rows;
            if chunks.run_rows >= chunks.chunk_rows || !joins {
                chunks.end_run();
            }
        }
    }
    chunks.end_run();
    chunks.done
}

struct Chunks {
    joins: bool,
    chunk_rows: u64,
    done: Vec<StoredChunk>,
    run: Vec<usize>,
    run_rows: u64,
}

impl Chunks {
    /// Makes the run a chunk, or joins it to the chunk before if it is small.
    fn end_run(&mut self) {
        let (run, rows) = (std::mem::take(&mut self.run), std::mem::take(&mut self.run_rows));
        if rows == 0 {
            return;
        }
        let is_small = rows < self.chunk_rows.div_ceil(2);
        match self.done.last_mut() {
            Some(last) if is_small && !last.is_part && self.joins => {
                last.row_groups.extend(run);
                last.rows.end += rows;
            }
            _ => self.push(run, 0..rows, false),
        }
    }

    /// Cuts a huge row group into parts of equal size.
    fn split(&mut self, row_group: usize, rows: u64, parts: u64) {
        let cut = |part: u64| {
            let row = u128::from(rows) * u128::from(part) / u128::from(parts);
            u64::try_from(row).expect("a cut lies within the row group")
        };
        for part in 0..parts {
            self.push(vec![row_group], cut(part)..cut(part + 1), true);
        }
    }

    fn push(&mut self, row_groups: Vec<usize>, rows: Range<u64>, is_part: bool) {
        self.done.push(StoredChunk { row_groups, rows, is_part });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The row groups and rows of each chunk.
    fn cut(row_groups: &[(u64, bool)], chunk_rows: u64) -> Vec<(Vec<usize>, Range<u64>)> {
        let parts_max = |can_split| if can_split { u64::MAX } else { 1 };
        let shape = |&(rows, can_split)| RowGroupShape { rows, parts_max: parts_max(can_split) };
        let shapes: Vec<_> = row_groups.iter().map(shape).collect();
        let chunks = chunks_of_file(&shapes, chunk_rows, true);
        chunks.into_iter().map(|chunk| (chunk.row_groups, chunk.rows)).collect()
    }

    #[test]
    fn small_row_groups_are_joined() {
        let chunks = cut(&[(4, true), (6, true), (5, true), (5, true), (5, true)], 10);
        assert_eq!(chunks, [(vec![0, 1], 0..10), (vec![2, 3], 0..10), (vec![4], 0..5)]);
    }

    #[test]
    fn a_tail_under_half_a_chunk_joins_the_chunk_before() {
        assert_eq!(cut(&[(10, true), (4, true)], 10), [(vec![0, 1], 0..14)]);
        assert_eq!(cut(&[(4, true)], 10), [(vec![0], 0..4)]);
    }

    #[test]
    fn huge_row_groups_are_split_if_they_can_be() {
        assert_eq!(cut(&[(25, true)], 10), [(vec![0], 0..12), (vec![0], 12..25)]);
        assert_eq!(cut(&[(19, true)], 10), [(vec![0], 0..19)]);
        assert_eq!(cut(&[(25, false)], 10), [(vec![0], 0..25)]);
        let chunks = cut(&[(3, true), (20, true), (3, true)], 10);
        assert_eq!(chunks, [(vec![0], 0..3), (vec![1], 0..10), (vec![1], 10..20), (vec![2], 0..3)]);
    }

    #[test]
    fn row_groups_that_are_not_to_be_joined_are_chunks_of_their_own() {
        let shapes = [4, 30, 4].map(|rows| RowGroupShape { rows, parts_max: rows / 2 });
        let chunks = chunks_of_file(&shapes, 10, false);
        assert!(chunks.iter().all(|chunk| chunk.row_groups.len() == 1));
        assert_eq!(chunks.len(), 5);
    }

    #[test]
    fn a_row_group_has_no_more_parts_than_its_data_pages_allow() {
        let shape = |parts_max| RowGroupShape { rows: 1 << 60, parts_max };
        assert_eq!(chunks_of_file(&[shape(3)], 10, true).len(), 3);
        assert_eq!(chunks_of_file(&[shape(0)], 10, true).len(), 1);
    }

    #[test]
    fn row_groups_without_rows_are_in_no_chunk() {
        assert_eq!(cut(&[(0, true), (10, true), (0, true)], 10), [(vec![1], 0..10)]);
        assert_eq!(cut(&[(0, true)], 10), []);
        assert_eq!(cut(&[], 10), []);
    }
}
