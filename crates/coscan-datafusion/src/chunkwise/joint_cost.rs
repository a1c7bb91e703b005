//! The cost of the joint chunks of a join, estimated from statistics before any row is read.

use std::ops::Range;

use coscan_runtime::core::{ChunkIndex, GroupIndex, Index};
use coscan_storage::table::ParquetTable;
use datafusion::error::Result;

use super::joint_chunks::Clustering;
use super::needed::Needed;
use crate::execution::exec::SharedScanExec;

/// The cost of a join.
pub(crate) struct JointCost {
    /// The maximum stored bytes of a joint chunk.
    pub(crate) chunk_bytes_max: u64,
    /// The number of rows of the needed joint chunks.
    pub(crate) rows: u64,
    /// The number of rows of the chunks in which a joint chunk ends and the next begins.
    pub(crate) rows_to_search: u64,
    /// Whether the rows of one of those chunks are known not to be in the order of the key.
    pub(crate) is_impossible: bool,
}

impl JointCost {
    /// Estimates the cost of joining scans of clustered tables.
    pub(crate) fn new(
        clustering: &Clustering,
        scans: &[&SharedScanExec],
        needed: &Needed,
    ) -> Result<Self> {
        let table_of_scans = clustering.table_of_scans();
        let chunks = clustering.chunks()?;
        let mut cost =
            Self { chunk_bytes_max: 0, rows: 0, rows_to_search: 0, is_impossible: false };
        for joint in 0..clustering.joint_chunks() {
            let is_needed_by = |scan: usize| {
                let Range { start, end } = chunks[table_of_scans[scan]][joint];
                let needed = scans[scan].needed_chunks();
                let next = needed.partition_point(|chunk| chunk.as_usize() < start);
                needed.get(next).is_some_and(|chunk| chunk.as_usize() < end)
            };
            let is_needed = needed.is(&is_needed_by);
            let mut bytes = 0;
            for (table, chunks) in chunks.iter().enumerate() {
                let of_table = |scan: &usize| table_of_scans[*scan] == table;
                let of_table: Vec<_> = (0..scans.len()).filter(of_table).collect();
                let Some(&first) = of_table.first() else { continue };
                let parquet = scans[first].table().table();
                let columns = of_table.iter().flat_map(|&scan| scans[scan].projection());
                let mut groups: Vec<_> =
                    columns.map(|&column| parquet.group_of_column(column)).collect();
                groups.sort_unstable();
                groups.dedup();
                for chunk in chunks[joint].clone().map(ChunkIndex::from_usize) {
                    bytes += stored_bytes(parquet, chunk, &groups);
                    let rows = parquet.layout().rows(chunk);
                    cost.rows += if is_needed { rows.end - rows.start } else { 0 };
                }
                let before = joint.checked_sub(1).map_or(0, |before| chunks[before].end);
                if chunks[joint].start < before {
                    let rows = parquet.layout().rows(ChunkIndex::from_usize(chunks[joint].start));
                    cost.rows_to_search += rows.end - rows.start;
                    cost.is_impossible |= clustering.is_unordered(table, chunks[joint].start);
                }
            }
            cost.chunk_bytes_max = cost.chunk_bytes_max.max(bytes);
        }
        Ok(cost)
    }
}

/// The bytes of the pages of some column groups of a chunk.
fn stored_bytes(table: &ParquetTable, chunk: ChunkIndex, groups: &[GroupIndex]) -> u64 {
    let layout = table.layout();
    let pages = groups.iter().flat_map(|&group| layout.slice(chunk, group));
    pages.map(|&page| layout.bytes_of(page)).sum()
}
