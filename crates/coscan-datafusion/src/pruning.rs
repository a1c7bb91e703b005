//! Which chunks may hold rows that a predicate lets through, by their statistics.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use coscan_runtime::core::{ChunkIndex, Index};
use coscan_storage::table::{ChunkStatistics, ParquetTable};
use datafusion::arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};
use datafusion::physical_expr::{PhysicalExpr, conjunction_opt};
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use log::debug;

/// The chunks of a table that a scan needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NeededChunks {
    /// In ascending order.
    pub(crate) chunks: Vec<ChunkIndex>,
    /// All chunks of the table.
    pub(crate) total: usize,
}

impl NeededChunks {
    /// Those that may hold rows that all filters let through.
    pub(crate) fn find(
        table: &ParquetTable,
        filters: &[Arc<dyn PhysicalExpr>],
        in_list_max: usize,
    ) -> Self {
        let total = table.layout().chunk_count();
        let Some(keep) = may_match(table, filters, in_list_max) else {
            return Self { chunks: table.layout().chunks().collect(), total };
        };
        let chunks = (0..total).filter(|&chunk| keep[chunk]).map(ChunkIndex::from_usize).collect();
        Self { chunks, total }
    }

    /// How many chunks the statistics ruled out.
    pub(crate) fn pruned(&self) -> usize {
        self.total - self.chunks.len()
    }
}

/// The rows of some chunks, which ascend, in as few ranges as possible.
pub(crate) fn rows_of(table: &ParquetTable, chunks: &[ChunkIndex]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for &chunk in chunks {
        let rows = table.layout().rows(chunk);
        match ranges.last_mut() {
            Some(last) if last.end == rows.start => last.end = rows.end,
            _ => ranges.push(rows),
        }
    }
    ranges
}

/// For each chunk whether it may hold rows that all filters let through; `None` if the filters say nothing of chunks.
///
/// A predicate that cannot be judged rules nothing out: rows are filtered above the scan in any case.
pub(crate) fn may_match(
    table: &ParquetTable,
    filters: &[Arc<dyn PhysicalExpr>],
    in_list_max: usize,
) -> Option<Vec<bool>> {
    let predicate = conjunction_opt(filters.iter().cloned())?;
    let pruning = PruningPredicateBuilder::new()
        .with_file_schema(Arc::clone(table.schema()))
        .with_max_in_list_size(in_list_max)
        .build(predicate)?;
    match pruning.prune(&TableStatistics { table }) {
        Ok(keep) => Some(keep),
        Err(error) => {
            debug!("chunks are not pruned: {error}");
            None
        }
    }
}

/// The statistics of all chunks of a table.
struct TableStatistics<'a> {
    table: &'a ParquetTable,
}

impl TableStatistics<'_> {
    fn of(&self, column: &Column) -> Option<ChunkStatistics> {
        let column = self.table.schema().index_of(&column.name).ok()?;
        match self.table.statistics(column) {
            Ok(statistics) => Some(statistics),
            Err(error) => {
                debug!("chunks are not pruned by column {column}: {error}");
                None
            }
        }
    }
}

impl PruningStatistics for TableStatistics<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        Some(self.of(column)?.min)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        Some(self.of(column)?.max)
    }

    fn num_containers(&self) -> usize {
        self.table.layout().chunk_count()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        Some(Arc::new(self.of(column)?.null_count))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let layout = self.table.layout();
        let rows = layout.chunks().map(|chunk| layout.rows(chunk));
        Some(Arc::new(rows.map(|rows| rows.end - rows.start).collect::<UInt64Array>()))
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
