//! The shares of partitions: the chunks that each partition of a plan owns.

use coscan_runtime::core::{ChunkIndex, Layout};

/// The owner of each chunk of a plan, which is the partition that returns its rows.
///
/// The owners follow from the plan alone. If copies of a plan are executed in different places, their partitions
/// together return the table. A chunk may change its owner once, as long as both the old and the new one could return
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    /// The chunks in ascending order.
    chunks: Vec<ChunkIndex>,
    /// The partition of each chunk.
    owners: Vec<usize>,
}

impl Shares {
    /// Divides chunks into shares with about equal numbers of rows, as far as whole chunks allow. A share is a run of
    /// chunks.
    pub(crate) fn new(layout: &Layout, chunks: &[ChunkIndex], partitions: usize) -> Self {
        let rows = |&chunk: &ChunkIndex| {
            let rows = layout.rows(chunk);
            u128::from(rows.end - rows.start)
        };
        let all: u128 = chunks.iter().map(rows).sum::<u128>().max(1);
        let mut before = 0;
        let owner = |chunk: &ChunkIndex| {
            // The middle of the chunk decides, in units of half a row.
            let middle = 2 * before + rows(chunk);
            before += rows(chunk);
            let owner = middle * partitions as u128 / (2 * all);
            usize::try_from(owner).unwrap_or(usize::MAX).min(partitions.saturating_sub(1))
        };
        Self { owners: chunks.iter().map(owner).collect(), chunks: chunks.to_vec() }
    }

    /// The chunks of some partitions, in ascending order.
    pub(crate) fn of(&self, is_selected: impl Fn(usize) -> bool) -> Vec<ChunkIndex> {
        let shares = self.chunks.iter().zip(&self.owners);
        shares.filter(|(_, owner)| is_selected(**owner)).map(|(&chunk, _)| chunk).collect()
    }

    /// The owner of a chunk.
    pub(crate) fn owner(&self, chunk: ChunkIndex) -> usize {
        self.owners[self.position(chunk)]
    }

    /// Makes this partition the owner of the chunk.
    pub(crate) fn assign(&mut self, chunk: ChunkIndex, partition: usize) {
        let position = self.position(chunk);
        self.owners[position] = partition;
    }

    fn position(&self, chunk: ChunkIndex) -> usize {
        self.chunks.binary_search(&chunk).expect("the scans of a plan read its chunks only")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use coscan_runtime::core::Index;

    use super::*;

    fn layout(rows: &[u64]) -> Layout {
        let mut layout = Layout::builder(0);
        rows.iter().for_each(|&rows| {
            layout.add_chunk(rows, Vec::new());
        });
        layout.build()
    }

    #[test]
    fn shares_are_runs_of_about_as_many_rows() {
        let layout = layout(&[10, 10, 10, 10, 5, 5, 30, 10, 10]);
        let chunks: Vec<_> = [0, 1, 2, 3, 4, 5, 6].map(ChunkIndex::from_usize).to_vec();
        let shares = Shares::new(&layout, &chunks, 2);
        assert_eq!(shares.owners, [0, 0, 0, 0, 1, 1, 1]);
        assert_eq!(Shares::new(&layout, &chunks, 1).owners, [0; 7]);
        assert_eq!(Shares::new(&layout, &[], 4).of(|_| true), []);
    }

    #[test]
    fn every_partition_has_a_share_if_chunks_are_alike() {
        for chunks in 1..20 {
            let layout = layout(&vec![10; chunks]);
            let all: Vec<_> = layout.chunks().collect();
            for partitions in 1..=chunks {
                let shares = Shares::new(&layout, &all, partitions);
                let count = |partition| shares.of(|owner| owner == partition).len();
                let counts = (0..partitions).map(count);
                let (least, most) = (counts.clone().min().unwrap(), counts.max().unwrap());
                assert!(least >= 1 && most - least <= 1, "{chunks} chunks, {partitions}");
            }
        }
    }

    #[test]
    fn a_chunk_may_change_its_owner() {
        let layout = layout(&[10; 4]);
        let all: Vec<_> = layout.chunks().collect();
        let mut shares = Shares::new(&layout, &all, 2);
        shares.assign(all[0], 1);
        assert_eq!(shares.of(|owner| owner == 1), [all[0], all[2], all[3]]);
    }
}
